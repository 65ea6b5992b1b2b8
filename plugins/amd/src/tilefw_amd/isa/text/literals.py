"""A number of the text as an operand: an inline constant where the operand's type has one for it, else a literal, else nothing.

The rules are those of LLVM's `AMDGPUAsmParser` (isInlinableImm, isLiteralImm, addLiteralImmOperand), for which an integer
is the bits of the value and a number with a point is converted to the type:

| operand | integer token | token with a point |
|---|---|---|
| 64 bits | its 64 bits; a literal holds 32 of them | f64's bits; a literal is the high half, only in f64 |
| 32 bits, `i16x2`, `f32x2` | its 32 bits | f32's bits |
| f16 | its 16 bits | f16's bits |
| i16, u16, b16 | its 16 bits, inline only from -16 to 64 | f16's constants inline, else a literal of f32's bits |
| f16x2 | its 32 bits, f16's constants in the low half | f16's bits |
| bf16, bf16x2 | as f16 and f16x2 | bf16's bits |
"""

from __future__ import annotations

import math

from tilefw.api import floats
from tilefw_amd.isa.constants import FLOATS, INVERSE_2PI, float_format, of_bits
from tilefw_amd.isa.model import InlineConstant, Literal32
from tilefw_amd.isa.types import Type

_INVERSE_2PI = 0.15915494
"""What is written for 1/(2*pi), whose bf16 has f32's high half and not the nearest number (LLVM, addLiteralImmOperand)."""


def float_bits(value: float, format: str) -> int | None:
    """The bits of `value`, rounded to a float of that format; None when it overflows, or underflows inexactly, as in LLVM."""
    try:
        if format == "bf16":  # the high half of the f32 that has as few digits
            rounded = _to_eight_digits(value)
            bits = floats.float_bits(rounded, "f32") >> 16
        else:
            bits = floats.float_bits(value, format)
            rounded = floats.float_value(bits, format)
    except OverflowError:
        return None
    return None if format != "f64" and _underflows(value, rounded, format) else bits


def _to_eight_digits(value: float) -> float:
    """The nearest number, the even one of two, that bf16 has: 8 binary digits, none below 2**-133."""
    if not math.isfinite(value):
        return value
    digit = max(math.frexp(value)[1] - 8, -133)
    return math.ldexp(round(math.ldexp(value, -digit)), digit)


def _underflows(value: float, rounded: float, format: str) -> bool:
    normal = 2.0**-14 if format == "f16" else 2.0**-126
    return value != 0 and abs(rounded) < normal and rounded != value and not math.isinf(value)


def inline_integer(value: int) -> InlineConstant | None:
    """0 to 64 and -1 to -16."""
    if 0 <= value <= 64:
        return InlineConstant(128 + value)
    return InlineConstant(192 - value) if -16 <= value < 0 else None


def _fits(value: int, width: int) -> bool:
    return -(1 << (width - 1)) <= value < 1 << width


def _signed(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def _width(kind: Type) -> int:
    """Of the value that a constant is: of an element for packed floats, 32 for pairs of halves of integers."""
    if kind.elements > 1:
        return 64 if kind.element_bits == 64 else 16 if kind.kind == "float" and kind.bits == 32 else 32
    return kind.bits if kind.bits in (16, 64) else 32


def from_integer(value: int, kind: Type, literal: bool) -> InlineConstant | Literal32 | None:
    """`value` (64 bits, two's complement) as an operand; a Literal32 only where `literal` allows one."""
    width = _width(kind)
    if width == 64:
        return _from_integer64(value, literal)
    packed_half = width == 16 and kind.packed
    space = 32 if packed_half else width
    if not _fits(value, space):
        return None
    exact = value if width == 16 and kind.kind != "float" else _signed(value, space)
    code = inline_integer(exact)
    if code is not None:
        return code
    if width == 32 or kind.kind == "float":
        found = of_bits(value & ((1 << space) - 1), float_format(kind, width))
        if found is not None and (found in FLOATS or found == INVERSE_2PI or not packed_half):
            return InlineConstant(found)
    mask = 0xFFFF if width == 16 and kind.kind == "float" and not packed_half else 0xFFFFFFFF
    return Literal32(value & mask) if literal else None


def _from_integer64(value: int, literal: bool) -> InlineConstant | Literal32 | None:
    code = inline_integer(value)
    if code is not None:
        return code
    found = of_bits(value & ((1 << 64) - 1), "f64")
    if found is not None:
        return InlineConstant(found)
    return Literal32(value & 0xFFFFFFFF) if literal and _fits(value, 32) else None


def from_float(value: float, kind: Type, literal: bool) -> InlineConstant | Literal32 | None:
    """A number with a point as an operand."""
    width = _width(kind)
    if kind.packed and kind.bits == 32:
        width = 16
    format = float_format(kind, width)
    if format == "bf16" and value == _INVERSE_2PI:
        return InlineConstant(INVERSE_2PI)
    bits = float_bits(value, format)
    if bits is None:
        return None
    code = of_bits(bits, format)
    if code is not None:
        return InlineConstant(code)
    if not literal or (width == 64 and kind.kind != "float"):
        return None
    if width == 64:
        return Literal32(bits >> 32)
    if width == 16 and kind.kind != "float":
        wide = float_bits(value, "f32")
        return None if wide is None else Literal32(wide)
    return Literal32(bits)


def forced(value: float | int, kind: Type) -> Literal32 | None:
    """`lit(value)`: the literal, also of a value that an inline constant has."""
    if isinstance(value, int):
        return Literal32(value & 0xFFFFFFFF) if _fits(value, 32) else None
    if _width(kind) == 64 and kind.kind != "float":
        return None
    bits = float_bits(value, "f64" if _width(kind) == 64 else kind.name if kind.name in ("f16", "bf16") else "f32")
    if bits is None:
        return None
    return Literal32(bits >> 32 if _width(kind) == 64 else bits)


def with_sign(value: float | int, kind: Type, *, negate: bool, absolute: bool) -> float | int:
    """`neg` and `abs` of a constant: of an integer token they change the sign bit of the operand's float."""
    if isinstance(value, float):
        value = abs(value) if absolute else value
        return -value if negate else value
    bit = 1 << (_width(kind) - 1)
    value &= 2 * bit - 1
    value = value & ~bit if absolute else value
    return _signed(value ^ bit if negate else value, _width(kind))
