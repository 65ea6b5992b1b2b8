"""What the rows of the vector unit compute: pure functions on arrays of vectors, `[n, lanes]`, exact to the bit.

    meaning("ADD", "fp32", (x, y))
    meaning("CVT.fp16", "fp32", (x,))
    meaning("TRED.add", "fp32", (x,), every=4)       # [n, lanes] -> [n // 4, lanes]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilefw_spatial.isa import floats, functions, integers
from tilefw_spatial.isa.conversions import ROUNDED, convert
from tilefw_spatial.isa.table import OPS
from tilefw_spatial.isa.types import TYPES

Array = NDArray[Any]
Meaning = Callable[..., Array]


def meaning(op: str, dtype: str, operands: Sequence[Array], every: int = 1) -> Array:
    """What `op` (a row with its variant) makes of operands of type `dtype`, each [n, lanes] or broadcast to it; a mask is of bool.

    `every` is TRED's: n is a multiple of it, and its second operand, if there is one, the start. The result is of `result_type`.
    Raises KeyError for an op that is none of the vector unit's, or not there for the type.
    """
    row, variant = OPS[op]
    with np.errstate(all="ignore"):
        if row.name == "TRED":
            return _over_time(_FOLDS[variant], dtype, operands, every)
        if row.name == "CVT":
            x = operands[0]
            return floats.quiet("fp32", ROUNDED[variant](x)) if variant in ROUNDED else convert(dtype, variant, x)
        if row.name in _ANY:
            return _ANY[row.name](*operands)
        if row.name == "CMP":
            return _COMPARED[variant](*(_comparable(dtype, x) for x in operands))
        if TYPES[dtype].is_float:
            return floats.quiet(dtype, _FLOAT[op](*operands))
        return _INTEGER[op](*operands)


def modified(x: Array, negate: bool = False, absolute: bool = False) -> Array:
    """An operand with its modifiers, which are for floats: |x| first, then -x."""
    return floats.modified(x, negate, absolute) if negate or absolute else x


def immediate(dtype: str, bits: int) -> Array:
    """The immediate's low bits as one element of `dtype`: [1, 1]."""
    if dtype == "int1":
        return np.array([[bits & 0xFF != 0]])
    nbytes = TYPES[dtype].nbytes
    return np.frombuffer((bits & (1 << 8 * nbytes) - 1).to_bytes(nbytes, "little"), TYPES[dtype].numpy).reshape(1, 1)


def _over_time(fold: str, dtype: str, operands: Sequence[Array], every: int) -> Array:
    """Combined over each `every` successive vectors, from the first to the last."""
    points = operands[0]
    groups = points.reshape(-1, every, points.shape[-1])
    started = len(operands) > 1
    total = np.broadcast_to(operands[1], points.shape)[::every] if started else groups[:, 0]
    table = _FLOAT if TYPES[dtype].is_float else _INTEGER
    for i in range(0 if started else 1, every):
        total = table[fold](total, groups[:, i])
    return floats.quiet(dtype, total) if TYPES[dtype].is_float else total


def _comparable(dtype: str, x: Array) -> Array:
    """Floats below 32 bits as fp32, exactly: ml_dtypes compares some of its types slowly, others not at all."""
    return x.astype(np.float32) if TYPES[dtype].is_float else x


def _select(mask: Array, x: Array, y: Array) -> Array:
    return np.where(mask, x, y)


def _same(x: Array) -> Array:
    return x


_ANY: Mapping[str, Meaning] = MappingProxyType({"MOV": _same, "CST": _same, "SELM": _select})

_COMPARED: Mapping[str, Meaning] = MappingProxyType({
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
})

_FLOAT: Mapping[str, Meaning] = MappingProxyType({
    "ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "FMA": floats.fused,
    "MIN": floats.minimum, "MIN.num": floats.minimum_number, "MAX": floats.maximum, "MAX.num": floats.maximum_number,
    "EX2": functions.exp2, "LG2": functions.log2, "RCP": functions.reciprocal, "RSQ": functions.reciprocal_root,
    "SQR": functions.root,
})

_INTEGER: Mapping[str, Meaning] = MappingProxyType({
    "ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "FMA": lambda x, y, z: x * y + z,
    "ADD.sat": integers.saturated(np.add), "SUB.sat": integers.saturated(np.subtract), "MUL.sat": integers.product_saturated,
    "MUL.hi": integers.product_high, "MIN": np.minimum, "MAX": np.maximum,
    "LOGIC.and": np.bitwise_and, "LOGIC.or": np.bitwise_or, "LOGIC.xor": np.bitwise_xor, "NOT": np.invert,
    "SHIFT.left": integers.shift_left, "SHIFT.right": integers.shift_right, "SHIFT.arith": integers.shift_arithmetic,
})

# What TRED combines with, by its variant.
_FOLDS: Mapping[str, str] = MappingProxyType({
    "add": "ADD", "mul": "MUL", "min": "MIN", "max": "MAX", "minnum": "MIN.num", "maxnum": "MAX.num",
    "and": "LOGIC.and", "or": "LOGIC.or", "xor": "LOGIC.xor",
})
