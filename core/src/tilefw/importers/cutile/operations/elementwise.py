"""Elementwise operations: rows of the elementwise table, and what is made of several."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import tilefw.language as tl
from tilefw.frontend.builtins.library import meaning as library
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.casts import bitcast, cast, constant
from tilefw.frontend.values import RuntimeValue
from tilefw.tile.dialect.ops import BroadcastOp, ConstantOp, ReshapeOp, SplatOp

if TYPE_CHECKING:
    from tilefw.frontend.builder import Builder
    from tilefw.importers.cutile.bytecode_translation import BytecodeTranslation
    from tilefw.importers.cutile.bytecode_tree import BytecodeOperation

meaning = Meanings()

# Operation: its row. What flushes subnormal numbers to zero elsewhere keeps them here.
_ONE: Mapping[str, str] = MappingProxyType({
    "absf": "absf", "negf": "negf", "ceil": "ceil", "floor": "floor", "cos": "cos", "sin": "sin", "exp2": "exp2", "log": "log",
    "log2": "log2", "rsqrt": "rsqrt", "absi": "absi",
})
_GRADED: Mapping[str, str] = MappingProxyType({"exp": "exp", "tanh": "tanh"})  # nearest or approximate, by one row
_TWO: Mapping[str, str] = MappingProxyType({
    "remf": "remf", "addi": "addi", "subi": "subi", "muli": "muli", "mulhii": "mulhu", "andi": "andi", "ori": "ori", "xori": "xori",
    "shli": "shl",
})
_ROUNDED: Mapping[str, str] = MappingProxyType({"addf": "addf", "subf": "subf", "mulf": "mulf"})
_SIGNED: Mapping[str, tuple[str, str]] = MappingProxyType({  # for unsigned numbers, and for signed ones
    "remi": ("remu", "rems"), "maxi": ("maxu", "maxs"), "mini": ("minu", "mins"), "shri": ("shru", "shrs"),
})
_EXTREMES: Mapping[str, tuple[str, str]] = MappingProxyType({  # the number of a NaN and a number, and the NaN
    "maxf": ("maxf", "maxf_nan"), "minf": ("minf", "minf_nan"),
})
_PREDICATES: Mapping[str, tuple[str, str, str]] = MappingProxyType({  # integers unsigned and signed, floats
    "equal": ("eqi", "eqi", "eqf"), "not_equal": ("nei", "nei", "nef"), "less_than": ("ltu", "lts", "ltf"),
    "less_than_or_equal": ("leu", "les", "lef"), "greater_than": ("gtu", "gts", "gtf"),
    "greater_than_or_equal": ("geu", "ges", "gef"),
})
_OPPOSITES: Mapping[str, str] = MappingProxyType({
    "less_than": "gef", "less_than_or_equal": "gtf", "greater_than": "lef", "greater_than_or_equal": "ltf", "not_equal": "eqf",
})
_APPROXIMATE = ("approx", "full")
_MOST_PRODUCTS = 32  # the largest exponent that is made of multiplications


def _one(row: str) -> Callable[[BytecodeTranslation, BytecodeOperation], RuntimeValue]:
    return lambda t, op: t.b.row(row, t.tile(op, "source"))


def _graded(row: str) -> Callable[[BytecodeTranslation, BytecodeOperation], RuntimeValue]:
    def build(t: BytecodeTranslation, op: BytecodeOperation) -> RuntimeValue:
        if "rounding" in op.attributes:
            _approximate(t, op)
        return t.b.row(row, t.tile(op, "source"))

    return build


def _two(row: str) -> Callable[[BytecodeTranslation, BytecodeOperation], RuntimeValue]:
    return lambda t, op: t.b.row(row, *t.same(op, *op.operands))


def _rounded(row: str) -> Callable[[BytecodeTranslation, BytecodeOperation], RuntimeValue]:
    def build(t: BytecodeTranslation, op: BytecodeOperation) -> RuntimeValue:
        nearest(t, op)
        return t.b.row(row, *t.same(op, "lhs", "rhs"))

    return build


def _signed(rows: tuple[str, str]) -> Callable[[BytecodeTranslation, BytecodeOperation], RuntimeValue]:
    return lambda t, op: t.b.row(rows[op.attributes["signedness"] == "signed"], *t.same(op, "lhs", "rhs"))


def _extreme(rows: tuple[str, str]) -> Callable[[BytecodeTranslation, BytecodeOperation], RuntimeValue]:
    return lambda t, op: t.b.row(rows["propagate_nan" in op.flags], *t.same(op, "lhs", "rhs"))


for _name, _row in _ONE.items():
    meaning(_name)(_one(_row))
for _name, _row in _GRADED.items():
    meaning(_name)(_graded(_row))
for _name, _row in _TWO.items():
    meaning(_name)(_two(_row))
for _name, _row in _ROUNDED.items():
    meaning(_name)(_rounded(_row))
for _name, _rows in _SIGNED.items():
    meaning(_name)(_signed(_rows))
for _name, _rows in _EXTREMES.items():
    meaning(_name)(_extreme(_rows))


def nearest(t: BytecodeTranslation, op: BytecodeOperation) -> None:
    """Raise UnsupportedError (TFW0408) for a rounding that no row has."""
    rounding = op.attributes["rounding"]
    if rounding != "nearest_even":
        raise t.refusal(op, f"{op.name} that rounds by {rounding} is not imported", note="the rounding that there is: nearest_even")


def _approximate(t: BytecodeTranslation, op: BytecodeOperation) -> bool:
    """Whether an approximation is asked for rather than the nearest number."""
    if op.attributes["rounding"] in _APPROXIMATE:
        return True
    nearest(t, op)
    return False


@meaning("divf")
def divide(t: BytecodeTranslation, op: BytecodeOperation) -> RuntimeValue:
    approximate, values = _approximate(t, op), t.same(op, "lhs", "rhs")
    return t.b.row("divf", *values) if approximate else _nearest_of(t, "divf", "div_rn", values)


@meaning("sqrt")
def square_root(t: BytecodeTranslation, op: BytecodeOperation) -> RuntimeValue:
    approximate, value = _approximate(t, op), t.tile(op, "source")
    return t.b.row("sqrt", value) if approximate else _nearest_of(t, "sqrt", "sqrt_rn", [value])


def _nearest_of(t: BytecodeTranslation, row: str, exact: str, values: Sequence[RuntimeValue]) -> RuntimeValue:
    """By the row that rounds correctly, which float32 has. A quotient or root of 16 bits is the nearest one when it is rounded from
    that of float32, which has more than twice as many bits."""
    element = values[0].dtype
    if element.primitive_bitwidth > 32:
        return t.b.row(row, *values)
    return cast(t.b, t.b.row(exact, *_wide(t, values)), element)


def _wide(t: BytecodeTranslation, values: Sequence[RuntimeValue]) -> list[RuntimeValue]:
    """Formats of fewer bits as float32."""
    return [cast(t.b, value, tl.float32) if value.dtype.primitive_bitwidth < 32 else value for value in values]


@meaning("fma")
def fused(t: BytecodeTranslation, op: BytecodeOperation) -> RuntimeValue:
    nearest(t, op)
    return t.b.row("fma", *t.same(op, "lhs", "rhs", "acc"))


@meaning("pow")
def power(t: BytecodeTranslation, op: BytecodeOperation) -> RuntimeValue:
    return t.b.row("pow", *t.same(op, "source", "exponent"))


@meaning("negi")
def negative(t: BytecodeTranslation, op: BytecodeOperation) -> RuntimeValue:
    value = t.tile(op, "source")
    return t.b.row("subi", t.b.constant(0, value.dtype, value.shape), value)


@meaning("divi")
def divide_integers(t: BytecodeTranslation, op: BytecodeOperation) -> RuntimeValue:
    """Towards zero, or down or up: the quotient is one less or more where something remains on that side."""
    left, right = t.same(op, "lhs", "rhs")
    signed, rounding = op.attributes["signedness"] == "signed", op.attributes["rounding"]
    quotient = t.b.row("divs" if signed else "divu", left, right)
    if rounding == "zero" or (rounding == "negative_inf" and not signed):
        return quotient
    if rounding not in ("negative_inf", "positive_inf"):
        raise t.refusal(op, f"{op.name} that rounds by {rounding} is not imported")
    rest = t.b.row("rems" if signed else "remu", left, right)
    zero = t.b.constant(0, left.dtype, left.shape)
    moves = t.b.compare("nei", rest, zero)
    if signed:
        differ = t.b.compare("lts" if rounding == "negative_inf" else "ges", t.b.row("xori", left, right), zero)
        moves = t.b.row("andi", moves, differ)
    one = t.b.constant(-1 if rounding == "negative_inf" else 1, left.dtype, left.shape)
    return t.b.row("select", moves, t.b.row("addi", quotient, one), quotient)


@meaning("cmpi")
def compare_integers(t: BytecodeTranslation, op: BytecodeOperation) -> RuntimeValue:
    rows = _PREDICATES[op.attributes["predicate"]]
    return t.b.compare(rows[op.attributes["signedness"] == "signed"], *t.same(op, "lhs", "rhs"))


@meaning("cmpf")
def compare_floats(t: BytecodeTranslation, op: BytecodeOperation) -> RuntimeValue:
    """An unordered predicate is true with a NaN, as the opposite of the ordered opposite is."""
    predicate, (left, right) = op.attributes["predicate"], t.same(op, "lhs", "rhs")
    unordered = op.attributes["ordering"] == "unordered"
    if unordered and predicate != "equal":
        return inverted(t.b, t.b.compare(_OPPOSITES[predicate], left, right))
    if not unordered and predicate != "not_equal":
        return t.b.compare(_PREDICATES[predicate][2], left, right)
    differs = t.b.row("ori", t.b.compare("ltf", left, right), t.b.compare("gtf", left, right))
    return inverted(t.b, differs) if unordered else differs


def inverted(b: Builder, value: RuntimeValue) -> RuntimeValue:
    """The opposite of truth values."""
    return b.row("xori", value, b.constant(True, tl.int1, value.shape))


@meaning("select")
def select(t: BytecodeTranslation, op: BytecodeOperation) -> RuntimeValue:
    condition, (left, right) = t.tile(op, "condition"), t.same(op, "lhs", "rhs")
    if left.is_tile and not condition.is_tile:
        condition = t.b.splat(condition, left.shape)
    return t.b.row("select", condition, left, right)


def _library(name: str, *operands: str) -> Callable[[BytecodeTranslation, BytecodeOperation], RuntimeValue]:
    """A function of the language's library, of float32 for formats of 16 bits."""

    def build(t: BytecodeTranslation, op: BytecodeOperation) -> RuntimeValue:
        values = t.same(op, *operands)
        return cast(t.b, library.of[f"libdevice.{name}"](t.b, *_wide(t, values)), values[0].dtype)

    return build


for _name in ("tan", "cosh", "sinh"):
    meaning(_name)(_library(_name, "source"))
meaning("atan2")(_library("atan2", "x", "y"))


@meaning("fpowi")
def whole_power(t: BytecodeTranslation, op: BytecodeOperation) -> RuntimeValue:
    """By multiplications where the exponent is a small constant; formats of 16 bits by way of float32."""
    given, exponent = t.tile(op, "source"), t.tile(op, "exponent")
    (value,), number = _wide(t, [given]), _known(exponent)
    if number is None or abs(number) > _MOST_PRODUCTS:
        return cast(t.b, _powered(t, value, exponent), given.dtype)
    return cast(t.b, _multiplied(t, value, number), given.dtype)


def _multiplied(t: BytecodeTranslation, value: RuntimeValue, number: int) -> RuntimeValue:
    one = constant(t.b, 1.0, value.dtype, value.shape)
    found, square, left = None, value, abs(number)
    while left:
        if left & 1:
            found = square if found is None else t.b.row("mulf", found, square)
        left >>= 1
        square = t.b.row("mulf", square, square) if left else square
    found = one if found is None else found
    return found if number >= 0 else t.b.row("divf", one, found)


def _powered(t: BytecodeTranslation, value: RuntimeValue, exponent: RuntimeValue) -> RuntimeValue:
    """The power of the magnitude, with the sign of `value` where the exponent is odd: as a float it may lose its lowest bit."""
    size = t.b.row("pow", t.b.row("absf", value), t.b.cast("s2f", exponent, value.dtype))
    bits = bitcast(t.b, value, tl.int32 if value.dtype.is_fp32() else tl.int64)
    negative = t.b.compare("lts", bits, t.b.constant(0, bits.dtype, bits.shape))
    lowest = t.b.row("andi", exponent, t.b.constant(1, exponent.dtype, exponent.shape))
    odd = t.b.compare("nei", lowest, t.b.constant(0, exponent.dtype, exponent.shape))
    return t.b.row("select", t.b.row("andi", negative, odd), t.b.row("negf", size), size)


def _known(value: RuntimeValue) -> int | None:
    """The number that all elements of a value are, where it is a constant."""
    owner = value.ssa.owner
    while isinstance(owner, SplatOp | BroadcastOp | ReshapeOp):
        owner = owner.operands[0].owner
    return int(owner.value) if isinstance(owner, ConstantOp) else None
