"""The elementwise functions of `tl` and `tl.math`: which types each takes, and its row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tilefw.language as tl
from tilefw.api.dtypes import DTYPES
from tilefw.api.errors import CompileError
from tilefw.frontend import arithmetic
from tilefw.frontend.arithmetic import element_type, in_type, promoted, refuse_narrow, stretched
from tilefw.frontend.builder import Builder
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.casts import bitcast, cast, constant, to_value
from tilefw.frontend.semantics import broadcast_shapes, number_type, promote
from tilefw.frontend.values import RuntimeValue, describe, is_number

meaning = Meanings()

_FLOATS = ("fp32", "fp64")
_UNARY = {
    "exp": _FLOATS, "exp2": _FLOATS, "log": _FLOATS, "log2": _FLOATS, "sin": _FLOATS, "cos": _FLOATS, "sqrt": _FLOATS,
    "sqrt_rn": ("fp32",), "rsqrt": _FLOATS, "erf": _FLOATS, "floor": _FLOATS, "ceil": _FLOATS,
}


def require(function: str, allowed: tuple[str, ...], *operands: Any) -> None:
    """Raise unless every tensor among the operands has one of the allowed element types, by their short names."""
    for operand in operands:
        if isinstance(operand, RuntimeValue) and operand.dtype.name not in allowed:
            raise CompileError(
                f"Expected dtype {' or '.join(allowed)} for tl.{function}, not {operand.dtype}",
                "TFW0209",
                help="cast explicitly, e.g. `x.to(tl.float32)`, and back where the narrow type is wanted",
            )


def _unary(name: str, allowed: tuple[str, ...]) -> Callable[[Builder, Any], RuntimeValue]:
    def compute(b: Builder, x: Any) -> RuntimeValue:
        require(name, allowed, x)
        value = to_value(b, x)
        require(name, allowed, value)
        return b.row(name, value)

    return compute


for _name, _allowed in _UNARY.items():
    meaning(_name)(_unary(_name, _allowed))


@meaning("abs")
def absolute(b: Builder, x: Any) -> RuntimeValue:
    value = to_value(b, x)
    if value.dtype.is_ptr():
        raise CompileError("tl.abs takes numbers, not pointers", "TFW0209")
    if value.dtype.is_fp8():
        return _without_sign(b, value)
    refuse_narrow(value.dtype)
    if value.dtype.is_floating():
        return b.row("absf", value)
    return b.row("absi", value) if value.dtype.is_int_signed() else value


def _without_sign(b: Builder, value: RuntimeValue) -> RuntimeValue:
    """A float of 8 bits with its sign cleared, by its bits: no format needs arithmetic for it.

    The sign alone is the NaN of the formats without minus zero, and stays."""
    codes = bitcast(b, value, tl.uint8)
    cleared = arithmetic.BINARY["&"](b, codes, 0x7F)
    if DTYPES[value.dtype.name].specials == "fnuz":
        cleared = b.row("select", arithmetic.compare(b, "==", codes, 0x80), codes, cleared)
    return bitcast(b, cleared, value.dtype)


@meaning("sigmoid")
def sigmoid(b: Builder, x: Any) -> RuntimeValue:
    value = to_value(b, x)
    require("sigmoid", _FLOATS, value)
    return arithmetic.true_divide(b, 1, arithmetic.add(b, 1, b.row("exp", b.row("negf", value))))


@meaning("cdiv")
def cdiv(b: Builder, x: Any, div: Any) -> Any:
    if is_number(x) and is_number(div):
        return (x + (div - 1)) // div
    last = div - 1 if is_number(div) else arithmetic.subtract(b, div, 1)
    return arithmetic.BINARY["//"](b, arithmetic.add(b, x, last), div)


@meaning("add")
def add(b: Builder, x: Any, y: Any, sanitize_overflow: Any) -> RuntimeValue:
    return arithmetic.add(b, *_one_value(b, x, y))


@meaning("sub")
def sub(b: Builder, x: Any, y: Any, sanitize_overflow: Any) -> RuntimeValue:
    return arithmetic.subtract(b, *_one_value(b, x, y))


@meaning("mul")
def mul(b: Builder, x: Any, y: Any, sanitize_overflow: Any) -> RuntimeValue:
    return arithmetic.BINARY["*"](b, *_one_value(b, x, y))


def _one_value(b: Builder, x: Any, y: Any) -> tuple[Any, Any]:
    """Two Python numbers have no tile to take a type from: they meet as run-time scalars of their own common type."""
    if not (is_number(x) and is_number(y)):
        return x, y
    common = promote(number_type(x), True, number_type(y), True)
    return constant(b, x, common), constant(b, y, common)


def _extremum(name: str, float_rows: tuple[str, str], signed: str, unsigned: str) -> None:
    @meaning(name)
    def compute(b: Builder, x: Any, y: Any, propagate_nan: Any) -> RuntimeValue:
        left, right = promoted(b, x, y)
        row = arithmetic.by_type(float_rows[_keeps_nan(propagate_nan)], signed, unsigned)(left.dtype)
        return b.row(row, left, right)


def _keeps_nan(propagate_nan: Any) -> bool:
    if not isinstance(propagate_nan, tl.PropagateNan):
        raise CompileError(f"propagate_nan is a tl.PropagateNan, not {describe(propagate_nan)}", "TFW0212")
    return propagate_nan is tl.PropagateNan.ALL


_extremum("minimum", ("minf", "minf_nan"), "mins", "minu")
_extremum("maximum", ("maxf", "maxf_nan"), "maxs", "maxu")


@meaning("clamp")
def clamp(b: Builder, x: Any, min: Any, max: Any, propagate_nan: Any) -> RuntimeValue:
    keeps_nan = _keeps_nan(propagate_nan)
    value, low, high = ternary(b, x, min, max)
    refuse_narrow(value.dtype)
    if value.dtype.is_floating():
        return b.row("clampf_nan" if keeps_nan else "clampf", value, low, high)
    suffix = "s" if value.dtype.is_int_signed() else "u"
    return b.row("min" + suffix, b.row("max" + suffix, value, low), high)


def ternary(b: Builder, *operands: Any) -> tuple[RuntimeValue, ...]:
    """Three operands in one type and shape: tensors promote among themselves first, then meet the numbers."""
    tile = number = None
    for operand in operands:
        found = element_type(operand)
        if found.is_ptr():
            raise CompileError(f"this function takes numbers, not {found}", "TFW0201")
        if is_number(operand):
            number = found if number is None else promote(number, True, found, True)
        else:
            tile = found if tile is None else promote(tile, False, found, False)
    common = promote(tile, False, number, True) if tile and number else tile or number
    assert common is not None
    return in_type(b, common, *operands)


@meaning("fma")
def fma(b: Builder, x: Any, y: Any, z: Any) -> RuntimeValue:
    values = ternary(b, x, y, z)
    if not values[0].dtype.is_floating():
        raise CompileError(f"tl.fma takes floats, not {values[0].dtype}", "TFW0209", help="write `x * y + z` for integers")
    refuse_narrow(values[0].dtype)
    return b.row("fma", *values)


@meaning("fdiv")
def fdiv(b: Builder, x: Any, y: Any, ieee_rounding: Any, approx: Any) -> RuntimeValue:
    left, right = promoted(b, x, y, division=True)
    if not left.dtype.is_floating():
        raise CompileError(f"tl.fdiv takes floats, not {left.dtype}", "TFW0209", help="write `x / y`: integers give float32")
    if ieee_rounding and approx:
        raise CompileError("approx and ieee_rounding cannot both be true", "TFW0212")
    if approx and not left.dtype.is_fp32():
        raise CompileError(f"approx=True is for float32, not {left.dtype}", "TFW0209")
    return b.row("div_rn" if ieee_rounding else "divf", left, right)


@meaning("div_rn")
def div_rn(b: Builder, x: Any, y: Any) -> RuntimeValue:
    require("div_rn", ("fp32",), x, y)
    left, right = promoted(b, x, y)
    require("div_rn", ("fp32",), left)
    return b.row("div_rn", left, right)


@meaning("umulhi")
def umulhi(b: Builder, x: Any, y: Any) -> RuntimeValue:
    allowed = ("int32", "int64", "uint32", "uint64")
    require("umulhi", allowed, x, y)
    left, right = promoted(b, x, y)
    require("umulhi", allowed, left)
    return b.row("mulhu", left, right)


@meaning("where")
def where(b: Builder, condition: Any, x: Any, y: Any) -> RuntimeValue:
    chooses = cast(b, to_value(b, condition), tl.int1)
    left, right = _choices(b, x, y)
    shape = left.shape
    if chooses.is_tile:
        shape = broadcast_shapes(chooses.shape, left.shape) if left.is_tile else chooses.shape
    elif not left.is_tile:
        return b.row("select", chooses, left, right)
    return b.row("select", stretched(b, chooses, shape), stretched(b, left, shape), stretched(b, right, shape))


def _choices(b: Builder, x: Any, y: Any) -> tuple[RuntimeValue, RuntimeValue]:
    types = element_type(x), element_type(y)
    if not (types[0].is_ptr() or types[1].is_ptr()):
        return promoted(b, x, y)
    if types[0] != types[1]:
        raise CompileError(f"tl.where cannot choose between {types[0]} and {types[1]}", "TFW0201")
    shape = broadcast_shapes(x.shape, y.shape) if x.shape and y.shape else x.shape or y.shape
    return stretched(b, x, shape), stretched(b, y, shape)


@meaning("swizzle2d")
def swizzle2d(b: Builder, i: Any, j: Any, size_i: Any, size_j: Any, size_g: Any) -> tuple[Any, Any]:
    for operand in (i, j, size_i, size_j, size_g):
        element_type(operand)

    def do(operator: str, left: Any, right: Any) -> RuntimeValue:
        return arithmetic.BINARY[operator](b, to_value(b, left), right)

    flat = do("+", do("*", i, size_j), j)
    group_elements = do("*", size_g, size_j)
    first_row = do("*", do("//", flat, group_elements), size_g)
    rows = promoted(b, do("-", size_i, first_row), size_g)
    height = b.row("mins" if rows[0].dtype.is_int_signed() else "minu", *rows)
    place = do("%", flat, group_elements)
    return do("+", first_row, do("%", place, height)), do("//", place, height)


