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
    row = "s2f" if op.attributes["signedness"] == "signed" else "u2f"
    if element.is_narrow_float():
        return cast(t.b, t.b.cast(row, value, tl.float32), element)
    return t.b.cast(row, value, element)


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
    narrows = element.primitive_bitwidth < value.dtype.primitive_bitwidth
    found = cast(t.b, value, element, "rtz" if rounding == "zero" and narrows else None)
    if target == "tf32" and source != "tf32" and value.dtype.primitive_bitwidth > 16:
        return shortened(t.b, found, rounding == "nearest_even")
    return found


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
