"""The rows of the library kernel `elementwise`: each operation as a kernel's author writes it, and as NumPy says it.

NumPy's word is on float64 of the operands' exact values, or on 64-bit integers that are wrapped afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

import tilefw
from tilefw.kernels import generated
from tilefw.kernels.index import FLOATS, INTEGERS

_WIDE = ("fp64", "fp32")
_BOTH = "propagate_nan=tl.PropagateNan.ALL"


@dataclass(frozen=True, slots=True)
class Operation:
    """`text` is an expression of x, y, z; `numpy` computes it from their values.

    `types` are the element types that it is there for, `widened` says that narrower floats are computed in fp32; `result` is an
    element type where it is not the operands'.
    """

    text: str
    numpy: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    types: tuple[str, ...]
    widened: bool = False
    result: str = ""


def _function(text: str, numpy: Callable[[np.ndarray], np.ndarray]) -> Operation:
    return Operation(text, lambda x, y, z: numpy(x), FLOATS, widened=True)


def _compare(text: str, numpy: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Operation:
    return Operation(f"tl.where({text}, 1, 0)", lambda x, y, z: numpy(x, y).astype(np.int64), FLOATS + INTEGERS, result="int32")


def _each(one: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """A function of Python numbers on arrays of floats, or on arrays of Python integers."""
    made = np.frompyfunc(one, len(one.__code__.co_varnames[: one.__code__.co_argcount]), 1)
    return lambda *arrays: made(*arrays).astype(np.float64 if arrays[0].dtype.kind == "f" else object)


def _least(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Of a NaN and a number the number; -0 is below +0 (IEEE 754-2019, minimumNumber)."""
    return np.where(x == y, np.where(_negative(x), x, y), np.fmin(x, y))


def _most(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.where(x == y, np.where(_negative(x), y, x), np.fmax(x, y))


def _negative(x: np.ndarray) -> np.ndarray:
    return np.signbit(x) if x.dtype.kind == "f" else x < 0


def _or_nan(numbers: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(x) | np.isnan(y), np.nan, numbers)


def _fused(x: float, y: float, z: float) -> float:
    """x · y + z rounded once to float64."""
    if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
        return x * y + z
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    try:
        return float(exact) if exact else x * y + z  # which knows the sign of a zero
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _gamma(x: float) -> float:
    """With the limits where `math.gamma` raises."""
    if x == 0:
        return math.copysign(math.inf, x)
    if x == -math.inf or (x < 0 and x == math.floor(x)):
        return math.nan
    try:
        return math.gamma(x)
    except OverflowError:
        return math.inf


@tilefw.jit
def larger_or_sum(x, y, z):
    if x > y:
        return x
    return y + z


_erf = _each(lambda x: math.erf(x))
_UNSIGNED = tuple(name for name in INTEGERS if name.startswith("u"))

OPERATIONS: dict[str, Operation] = {
    # Functions.
    "exp": _function("tl.exp(x)", np.exp),
    "exp2": _function("tl.exp2(x)", np.exp2),
    "expm1": _function("libdevice.expm1(x)", np.expm1),
    "log": _function("tl.log(x)", np.log),
    "log2": _function("tl.log2(x)", np.log2),
    "log1p": _function("libdevice.log1p(x)", np.log1p),
    "sin": _function("tl.sin(x)", np.sin),
    "cos": _function("tl.cos(x)", np.cos),
    "tanh": _function("libdevice.tanh(x)", np.tanh),
    "erf": _function("tl.erf(x)", _erf),
    "sqrt": _function("tl.sqrt(x)", np.sqrt),
    "rsqrt": _function("tl.rsqrt(x)", lambda x: 1 / np.sqrt(x)),
    "sqrt_rn": Operation("tl.sqrt_rn(x)", lambda x, y, z: np.sqrt(x), ("fp32",)),
    "pow": Operation("libdevice.pow(tl.abs(x), y)", lambda x, y, z: np.power(np.abs(x), y), FLOATS, widened=True),
    "sigmoid": _function("tl.sigmoid(x)", lambda x: 1 / (1 + np.exp(-x))),
    # Of libdevice, made of many operations; in fp32, which all but ties of the exact value round to alike.
    "tan": Operation("libdevice.tan(x)", lambda x, y, z: np.tan(x), ("fp32",)),
    "hypot": Operation("libdevice.hypot(x, y)", lambda x, y, z: np.hypot(x, y), ("fp32",)),
    "gamma": Operation("libdevice.tgamma(x)", lambda x, y, z: _each(_gamma)(x), ("fp32",)),
    # A function of scalars with a branch, on every element.
    "map": Operation(
        "tl.map_elementwise(larger_or_sum, x, y, z)", lambda x, y, z: np.where(x > y, x, y + z), FLOATS + INTEGERS,
    ),
    # To whole numbers.
    "floor": _function("tl.floor(x)", np.floor),
    "ceil": _function("tl.ceil(x)", np.ceil),
    "trunc": _function("libdevice.trunc(x)", np.trunc),
    "rint": _function("libdevice.rint(x)", np.rint),
    # Arithmetic.
    "add": Operation("x + y", lambda x, y, z: x + y, FLOATS + INTEGERS),
    "sub": Operation("x - y", lambda x, y, z: x - y, FLOATS + INTEGERS),
    "mul": Operation("x * y", lambda x, y, z: x * y, FLOATS + INTEGERS),
    "div": Operation("x / y", lambda x, y, z: x / y, FLOATS),
    "div_rn": Operation("tl.div_rn(x, y)", lambda x, y, z: x / y, ("fp32",)),
    "rem": Operation("x % y", lambda x, y, z: np.fmod(x, y), FLOATS + INTEGERS),
    "quotient": Operation("x // y", lambda x, y, z: (x - np.fmod(x, y)) // y, INTEGERS),
    "fma": Operation("tl.fma(x, y, z)", _each(_fused), _WIDE),
    "neg": Operation("-x", lambda x, y, z: -x, FLOATS + tuple(name for name in INTEGERS if name not in _UNSIGNED)),
    "abs": Operation("tl.abs(x)", lambda x, y, z: np.abs(x), FLOATS + INTEGERS),
    # Order.
    "min": Operation("tl.minimum(x, y)", lambda x, y, z: _least(x, y), FLOATS + INTEGERS),
    "max": Operation("tl.maximum(x, y)", lambda x, y, z: _most(x, y), FLOATS + INTEGERS),
    "min_nan": Operation(f"tl.minimum(x, y, {_BOTH})", lambda x, y, z: _or_nan(_least(x, y), x, y), FLOATS),
    "max_nan": Operation(f"tl.maximum(x, y, {_BOTH})", lambda x, y, z: _or_nan(_most(x, y), x, y), FLOATS),
    "clamp": Operation("tl.clamp(x, -tl.abs(y), tl.abs(y))", lambda x, y, z: _least(_most(x, -abs(y)), abs(y)), FLOATS),
    "where": Operation("tl.where(x > y, z, y)", lambda x, y, z: np.where(x > y, z, y), FLOATS + INTEGERS),
    # Compares; with a NaN all but `not equal` are false.
    "eq": _compare("x == y", np.equal),
    "ne": _compare("x != y", np.not_equal),
    "lt": _compare("x < y", np.less),
    "le": _compare("x <= y", np.less_equal),
    "gt": _compare("x > y", np.greater),
    "ge": _compare("x >= y", np.greater_equal),
    "isnan": Operation("tl.where(libdevice.isnan(x), 1, 0)", lambda x, y, z: np.isnan(x).astype(np.int64), _WIDE, result="int32"),
    # Bits.
    "and": Operation("x & y", lambda x, y, z: x & y, INTEGERS),
    "or": Operation("x | y", lambda x, y, z: x | y, INTEGERS),
    "xor": Operation("x ^ y", lambda x, y, z: x ^ y, INTEGERS),
    "not": Operation("~x", lambda x, y, z: ~x, INTEGERS),
    "shl": Operation("x << (y & 7)", lambda x, y, z: x << (y & 7), INTEGERS),
    "shr": Operation("x >> (y & 7)", lambda x, y, z: x >> (y & 7), INTEGERS),
    "umulhi": Operation("tl.umulhi(x, y)", _each(lambda x, y, z: int(x) * int(y) >> 32), ("uint32",)),
    "clz": Operation("libdevice.clz(x)", _each(lambda x, y, z: 32 - (int(x) % 2**32).bit_length()), ("int32",)),
    "popc": Operation("libdevice.popc(x)", _each(lambda x, y, z: (int(x) % 2**32).bit_count()), ("int32",)),
}


@cache
def function(name: str) -> Any:
    """The jit function of the operation `name`, of x, y and z."""
    return generated.function(f"{name}_of", "x, y, z", OPERATIONS[name].text, larger_or_sum=larger_or_sum)
