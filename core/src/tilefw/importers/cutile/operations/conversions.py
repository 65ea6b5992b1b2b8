"""Conversions between types of elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tilefw.language as tl
from tilefw.frontend.arithmetic import BINARY, compare
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.casts import bitcast, cast
from tilefw.frontend.values import RuntimeValue, tile_type
from tilefw.importers.cutile.bytecode_types import TileType
from tilefw.importers.cutile.operations.elementwise import nearest

if TYPE_CHECKING:
    from tilefw.frontend.builder import Builder
    from tilefw.importers.cutile.bytecode_translation import BytecodeTranslation
    from tilefw.importers.cutile.bytecode_tree import BytecodeOperation

meaning = Meanings()


def element_name(t: BytecodeTranslation, number: int) -> str:
    """The name of a value's elements in Tile IR, which tells tf32 from f32."""
    type = t.types[number]
    assert isinstance(type, TileType)
    return str(type.element)


def _target(t: BytecodeTranslation, op: BytecodeOperation) -> tl.dtype:
    return t.type_of(op.types[0]).scalar


@meaning("bitcast")
def reinterpret(t: BytecodeTranslation, op: BytecodeOperation) -> RuntimeValue:
    return bitcast(t.b, t.tile(op, "source"), _target(t, op))


@meaning("exti")
def extend(t: BytecodeTranslation, op: BytecodeOperation) -> RuntimeValue:
    value = t.tile(op, "source")
    return t.b.cast("exts" if op.attributes["signedness"] == "signed" else "extu", value, _target(t, op))


@meaning("trunci")
def truncate(t: BytecodeTranslation, op: BytecodeOperation) -> RuntimeValue:
    return t.b.cast("trunci", t.tile(op, "source"), _target(t, op))


@meaning("itof")
def to_float(t: BytecodeTranslation, op: BytecodeOperation) -> RuntimeValue:
    """To formats of 8 bits by way of float32, as in the language."""
    nearest(t, op)
    value, element = t.tile(op, "source"), _target(t, op)
    signed = op.attributes["signedness"] == "signed"
    row = "s2f" if signed else "u2f"
    if str(op.types[0].element) == "tf32":  # type: ignore[union-attr]
        return shortened(t.b, t.b.cast(row, _few_bits(t.b, value, signed), element), True)
    if element.is_narrow_float():
        return cast(t.b, t.b.cast(row, value, tl.float32), element)
    return t.b.cast(row, value, element)


def _few_bits(b: Builder, value: RuntimeValue, signed: bool) -> RuntimeValue:
    """An integer that float32 holds and that rounds to the same number of fewer bits: what is cut off of large ones sets the lowest
    bit that is kept."""
    size = b.row("absi", value) if signed else value
    for cut in range(8, value.dtype.primitive_bitwidth - 23, 8):
        low, high, least = (b.constant(n, value.dtype, value.shape) for n in ((1 << cut) - 1, -1 << cut, 1 << cut + 16))
        rest = b.row("addi", b.row("andi", value, low), low)
        kept = b.row("andi", b.row("ori", value, rest), high)
        value = b.row("select", b.compare("geu", size, least), kept, value)
    return value


@meaning("ftoi")
def to_integer(t: BytecodeTranslation, op: BytecodeOperation) -> RuntimeValue:
    """Towards zero; what does not fit is clamped, whether that was asked for or left open."""
    if op.attributes["rounding"] != "nearest_int_to_zero":
        raise t.refusal(op, f"ftoi that rounds by {op.attributes['rounding']} is not imported")
    value = t.tile(op, "source")
    if value.dtype.primitive_bitwidth < 32:
        value = cast(t.b, value, tl.float32)
    return t.b.cast("f2s" if op.attributes["signedness"] == "signed" else "f2u", value, _target(t, op))


@meaning("ftof")
def to_other_float(t: BytecodeTranslation, op: BytecodeOperation) -> RuntimeValue:
    """tf32 is held as the float32 of equal value."""
    rounding, value, element = op.attributes["rounding"], t.tile(op, "source"), _target(t, op)
    source, target = element_name(t, op.operands["source"]), str(op.types[0].element)  # type: ignore[union-attr]
    if rounding not in ("nearest_even", "zero"):
        raise t.refusal(op, f"ftof that rounds by {rounding} is not imported", note="there are nearest_even and zero")
    if "f8E8M0FNU" in (source, target):
        return _scale(t, op, value, source, target)
    if target == "tf32" and source == "f64":
        value = _to_odd(t.b, value)
    elif rounding == "zero" and element != value.dtype and element.primitive_bitwidth == value.dtype.primitive_bitwidth:
        value = cast(t.b, value, tl.float32)  # which has the numbers of both
    narrows = element.primitive_bitwidth < value.dtype.primitive_bitwidth
    found = cast(t.b, value, element, "rtz" if rounding == "zero" and narrows else None)
    if target == "tf32" and source in ("f32", "f64"):
        return shortened(t.b, found, rounding == "nearest_even")
    return found


def _to_odd(b: Builder, value: RuntimeValue) -> RuntimeValue:
    """float64 as float32 that rounds to the same number of fewer bits: towards zero, with the lowest bit set where that cuts."""
    found = cast(b, value, tl.float32, "rtz")
    bits = bitcast(b, found, tl.uint32)
    exact = b.compare("eqf", cast(b, found, tl.float64), value)
    odd = BINARY["|"](b, bits, 1)
    return bitcast(b, b.row("select", exact, bits, odd, type=bits.type), tl.float32)


def shortened(b: Builder, value: RuntimeValue, rounds: bool) -> RuntimeValue:
    """float32 with 10 bits of mantissa: the nearest number, ties to even, or the one towards zero."""
    bits = bitcast(b, value, tl.uint32)
    if rounds:
        odd = BINARY["&"](b, BINARY[">>"](b, bits, 13), 1)
        bits = BINARY["+"](b, bits, BINARY["+"](b, odd, 0xFFF))
    kept = BINARY["&"](b, bits, 0xFFFFE000)
    whole = bitcast(b, value, tl.uint32)
    finite = compare(b, "!=", BINARY["&"](b, whole, 0x7F800000), 0x7F800000)
    return bitcast(b, b.row("select", finite, kept, whole, type=tile_type(tl.uint32, value.shape)), tl.float32)


def _scale(t: BytecodeTranslation, op: BytecodeOperation, value: RuntimeValue, source: str, target: str) -> RuntimeValue:
    """A power of two whose exponent is kept in a byte: to float32 by its bits. 00 is 2^-127, which is subnormal; ff is NaN."""
    if source != "f8E8M0FNU" or target != "f32":
        raise t.refusal(op, f"ftof from {source} to {target} is not imported")
    wide = t.b.cast("extu", value, tl.int32)
    bits = BINARY["<<"](t.b, wide, 23)
    least = t.b.constant(0x00400000, tl.int32, value.shape)
    nan = t.b.constant(0x7FC00000, tl.int32, value.shape)
    found = t.b.row("select", compare(t.b, "==", wide, 0), least, bits)
    return bitcast(t.b, t.b.row("select", compare(t.b, "==", wide, 255), nan, found), tl.float32)


@meaning("int_to_ptr")
@meaning("ptr_to_int")
@meaning("ptr_to_ptr")
def convert_pointer(t: BytecodeTranslation, op: BytecodeOperation) -> RuntimeValue:
    return cast(t.b, t.tile(op, "source"), _target(t, op))
