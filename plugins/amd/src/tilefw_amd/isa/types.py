"""The types of operands: width in bits, kind, and the float format of the lane algebra (CDNA3 ISA, chapters 5 and 6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tilefw.api.integers import ceil_div

Kind = Literal["bits", "unsigned", "signed", "float", "mask", "fragment"]


@dataclass(frozen=True, slots=True)
class Type:
    """One operand type. `elements` of format `format` fill `bits` when the type is packed (`f16x2`).

    A `mask` is a bit for each lane of the wave: 64 bits in a pair of SGPRs, a predicate in meanings. A `fragment` is what a lane
    holds of a matrix, `elements` of them; in meanings it is always a tuple of registers of 32 bits, and a constant stands
    for every element (CDNA3 ISA, section "Matrix arithmetic instructions").
    """

    name: str
    kind: Kind
    bits: int
    format: str = ""
    elements: int = 1

    @property
    def signed(self) -> bool:
        return self.kind == "signed"

    @property
    def registers(self) -> int:
        """How many registers of 32 bits hold it."""
        return ceil_div(self.bits, 32)

    @property
    def packed(self) -> bool:
        """Whether an instruction does the same with each of the elements."""
        return self.elements > 1 and self.kind != "fragment"

    @property
    def element_bits(self) -> int:
        return self.bits // self.elements


MATRIX_FORMATS = ("fp8", "bf8", "fp6", "bf6", "fp4")
"""Formats of the operands of V_MFMA_…_F8F6F4 by the code in cbsz (of A) and blgp (of B): CDNA4 ISA, "Matrix arithmetic"."""


def _floats() -> list[Type]:
    scalar = [("f16", "f16", 16), ("bf16", "bf16", 16), ("xf32", "tf32", 32), ("f32", "f32", 32), ("f64", "f64", 64)]
    packed = [("f16x2", "f16", 32, 2), ("bf16x2", "bf16", 32, 2), ("f32x2", "f32", 64, 2)]
    return [Type(name, "float", bits, fmt) for name, fmt, bits in scalar] + [
        Type(name, "float", bits, fmt, count) for name, fmt, bits, count in packed
    ]


def _fragments() -> list[Type]:
    """A and B of matrix instructions by element type and count, then C and D."""
    inputs = [("f16", "f16", 16, (4, 8, 16)), ("bf16", "bf16", 16, (4, 8, 16)), ("xf32", "tf32", 32, (2,))]
    inputs += [("i8", "", 8, (4, 8, 16, 32))]
    eighths = [(name, "", 8, (8, 16, 32)) for name in ("fp8", "bf8")]  # which formats they are is the chip's
    eighths += [("fp6", "", 6, (32,)), ("bf6", "", 6, (32,)), ("fp4", "", 4, (32,))]
    sums = [("f32", "f32", 32, (4, 16, 32)), ("i32", "", 32, (4, 16, 32)), ("f64", "f64", 64, (1, 4))]
    return [
        Type(f"{name}x{count}", "fragment", bits * count, fmt, count)
        for name, fmt, bits, counts in inputs + eighths + sums
        for count in counts
    ]


TYPES: dict[str, Type] = {
    t.name: t
    for t in [
        # Wide ones are tuples of registers: 96 bits of a dwordx3 access up to the 1024 of a 32x32 accumulator.
        *(Type(f"b{n}", "bits", n) for n in (8, 16, 32, 64, 96, 128, 160, 192, 224, 256, 512, 1024)),
        *(Type(f"u{n}", "unsigned", n) for n in (8, 16, 24, 32, 64)),
        *(Type(f"i{n}", "signed", n) for n in (8, 16, 24, 32, 64)),
        *_floats(),
        *_fragments(),
        Type("u16x2", "unsigned", 32, elements=2),
        Type("i16x2", "signed", 32, elements=2),
        Type("b32x2", "bits", 64, elements=2),
        Type("mask", "mask", 64),
    ]
}
