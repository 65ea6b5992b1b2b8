"""Inline constants and literals: the bits that a code stands for in an operand of a type, and how LLVM writes both.

CDNA3 ISA, table "Scalar operands": 128 to 192 are 0 to 64, 193 to 208 are -1 to -16, 240 to 247 are ±0.5, ±1, ±2, ±4 in
the operand's float format, 248 is 1/(2*pi). How they are written: LLVM's `AMDGPUInstPrinter.cpp`, held to by the tests.
"""

from __future__ import annotations

import functools

from tilefw_amd.isa.types import Type

INTEGERS = {128 + n: n for n in range(65)} | {192 + n: -n for n in range(1, 17)}
FLOATS = {240: "0.5", 241: "-0.5", 242: "1.0", 243: "-1.0", 244: "2.0", 245: "-2.0", 246: "4.0", 247: "-4.0"}
INVERSE_2PI = 248
INLINE = frozenset(INTEGERS) | frozenset(FLOATS) | {INVERSE_2PI}

# The bits of 240 to 248 by float format. In an operand of 64 bits that is not an f64 they are those of f64 all the same.
_FLOAT_BITS: dict[str, dict[int, int]] = {
    "f16": dict(zip(range(240, 249), (0x3800, 0xB800, 0x3C00, 0xBC00, 0x4000, 0xC000, 0x4400, 0xC400, 0x3118), strict=True)),
    "bf16": dict(zip(range(240, 249), (0x3F00, 0xBF00, 0x3F80, 0xBF80, 0x4000, 0xC000, 0x4080, 0xC080, 0x3E22), strict=True)),
    "f32": dict(
        zip(
            range(240, 249),
            (0x3F000000, 0xBF000000, 0x3F800000, 0xBF800000, 0x40000000, 0xC0000000, 0x40800000, 0xC0800000, 0x3E22F983),
            strict=True,
        )
    ),
    "f64": dict(
        zip(
            range(240, 249),
            (*(n << 48 for n in (0x3FE0, 0xBFE0, 0x3FF0, 0xBFF0, 0x4000, 0xC000, 0x4010, 0xC010)), 0x3FC45F306DC9C882),
            strict=True,
        )
    ),
}
_INVERSE_2PI_TEXT = {16: "0.15915494", 32: "0.15915494", 64: "0.15915494309189532"}


def width(kind: Type | None) -> int:
    """The width in bits, 16, 32 or 64, that constants have in an operand of that type; packed ones take 32 (CDNA3 ISA, "VOP3P")."""
    if kind is None or kind.elements > 1:
        return 32
    return kind.bits if kind.bits in (16, 64) else 32


def float_format(kind: Type | None, size: int) -> str:
    """The format of the float constants that have `size` bits in an operand of that type."""
    return "bf16" if size == 16 and kind is not None and kind.format == "bf16" else f"f{size}"


def bits(code: int, kind: Type | None) -> int:
    """What the inline constant is in an operand of the type: `width(kind)` bits."""
    size = width(kind)
    if code in INTEGERS:
        return INTEGERS[code] & (1 << size) - 1
    return _FLOAT_BITS[float_format(kind, size)][code]


def literal_bits(value: int, kind: Type | None) -> int:
    """What 32 literal bits are in an operand of the type: the high half of an f64, else zero-extended (unsigned) or
    sign-extended (signed) to 64 bits, or cut to 16."""
    size = width(kind)
    if size == 64 and kind is not None:
        if kind.kind == "float":
            return value << 32
        return value | (0xFFFFFFFF << 32 if kind.signed and value >> 31 else 0)
    return value & (1 << size) - 1


def of_bits(value: int, format: str) -> int | None:
    """The code of the inline constant that is these bits in a float operand of that format."""
    return _BY_BITS[format].get(value)


@functools.cache
def text(code: int, kind: Type | None) -> str:
    """An inline constant as LLVM prints it. Floats in 16-bit integers have no name of their own."""
    if code in INTEGERS:
        return str(INTEGERS[code])
    if width(kind) == 16 and kind is not None and kind.kind != "float":
        return f"{_FLOAT_BITS['f16'][code]:#x}"
    return FLOATS[code] if code in FLOATS else _INVERSE_2PI_TEXT[width(kind)]


def literal_text(value: int, kind: Type | None) -> str:
    """A literal as LLVM prints it: `lit(…)` where the plain number would be read as an inline constant."""
    size = width(kind)
    floating = kind is not None and kind.kind == "float"
    if size == 64:
        return _wide(value, floating)
    low = value & (1 << size) - 1
    if size == 16 and not floating:
        return f"lit({value:#x})" if _small(value, 32) else f"{low:#x}"
    return f"lit({value:#x})" if low in _BY_BITS[float_format(kind, size)] else f"{low:#x}"


def number_text(value: int) -> str:
    """32 bits where only a number can stand: by the name of an inline constant if one has these bits."""
    code = of_bits(value, "f32")
    return f"{value:#x}" if code is None else text(code, None)


def _wide(value: int, floating: bool) -> str:
    if not floating:
        return f"lit({value:#x})" if value <= 64 else f"{value:#x}"
    code = of_bits(value << 32, "f64")
    return f"{value:#x}" if code is None else text(code, _F64)


def _small(value: int, size: int) -> bool:
    return value <= 64 or value >= (1 << size) - 16


_F64 = Type("f64", "float", 64, "f64")
_BY_BITS: dict[str, dict[int, int]] = {
    format: {INTEGERS[code] & (1 << size) - 1: code for code in INTEGERS} | {b: code for code, b in _FLOAT_BITS[format].items()}
    for format, size in (("f16", 16), ("bf16", 16), ("f32", 32), ("f64", 64))
}


def is_inline(value: int, width: int) -> bool:
    """Whether an operand of that many bits may be this constant without a literal: integers of -16 to 64, some floats."""
    return is_small(value, width) or of_bits(value, f"f{width}") is not None


def is_small(value: int, width: int) -> bool:
    """Whether it is an integer of -16 to 64."""
    return -16 <= (value - (1 << width) if value >> (width - 1) else value) <= 64
