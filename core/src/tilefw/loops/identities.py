"""What a reduction may begin with, where its function is one row: the number that changes no other."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import numpy as np

from tilefw.api.dtypes import DTYPES
from tilefw.loops.access import element_name
from tilefw.loops.machine import LoopMachine
from tilefw.tile import numbers
from tilefw.tile.dialect.combine_op import CombineOp
from tilefw.tile.dialect.elementwise_op import ElementwiseOp

_FLOATS = {"addf": -0.0, "mulf": 1.0, "maxf": nan, "minf": nan, "maxf_nan": -inf, "minf_nan": inf}
_ZERO = ("addi", "ori", "xori", "maxu")
_ONES = ("andi", "minu")
_TYPES = {d.ir: d for d in DTYPES.values() if d.ir in ("f16", "bf16", "f32", "f64", "i1", "i8", "i16", "i32", "i64")}
IDEMPOTENT = ("maxf", "minf", "maxf_nan", "minf_nan", "maxs", "mins", "maxu", "minu", "andi", "ori")
"""Rows that make of a number and itself that number."""


def row_of(op: CombineOp) -> str | None:
    """The row that combines two elements; None where there is more to it, or where elements have several parts."""
    inner = list(op.combine.ops)
    if len(op.operands) != 1 or len(inner) != 2 or not isinstance(inner[0], ElementwiseOp):
        return None
    if inner[1].operands[0] is not inner[0].result or set(inner[0].operands) != set(op.combine.args):
        return None
    return inner[0].row.name


def identity(machine: LoopMachine[Any], op: CombineOp) -> Any:
    """The constant that a reduction's row changes no element with; None where none is known."""
    row, dtype = row_of(op), _TYPES.get(element_name(op.operands[0].type))
    if row is None or dtype is None or element_name(op.results[0].type) != dtype.ir:
        return None
    if row in _FLOATS:
        code = numbers.to_bytes(np.array([_FLOATS[row]]), dtype).tobytes()
        return machine.const(int.from_bytes(code, "little"), dtype.ir)
    ones = (1 << dtype.bits) - 1
    signed = {"muli": 1, "maxs": 1 << (dtype.bits - 1), "mins": ones >> 1}
    codes = signed | dict.fromkeys(_ZERO, 0) | dict.fromkeys(_ONES, ones)
    return machine.const(codes[row], dtype.ir) if row in codes else None
