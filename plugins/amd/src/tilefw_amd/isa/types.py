"""The types of operands: width in bits, kind, and the float format of the lane algebra (CDNA3 ISA, chapters 5 and 6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["bits", "unsigned", "signed", "float", "mask"]


@dataclass(frozen=True, slots=True)
class Type:
    """One operand type. `elements` of format `format` fill `bits` when the type is packed (`f16x2`).

    A `mask` is a bit for each lane of the wave: 64 bits in a pair of SGPRs, a predicate in meanings.
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
        return -(-self.bits // 32)


def _floats() -> list[Type]:
    scalar = [("f16", "f16", 16), ("bf16", "bf16", 16), ("xf32", "tf32", 32), ("f32", "f32", 32), ("f64", "f64", 64)]
    packed = [("f16x2", "f16", 32, 2), ("bf16x2", "bf16", 32, 2), ("f32x2", "f32", 64, 2)]
    return [Type(name, "float", bits, fmt) for name, fmt, bits in scalar] + [
        Type(name, "float", bits, fmt, count) for name, fmt, bits, count in packed
    ]


TYPES: dict[str, Type] = {
    t.name: t
    for t in [
        # Wide ones are tuples of registers: 96 bits of a dwordx3 access up to the 1024 of a 32x32 accumulator.
        *(Type(f"b{n}", "bits", n) for n in (8, 16, 32, 64, 96, 128, 160, 192, 224, 256, 512, 1024)),
        *(Type(f"u{n}", "unsigned", n) for n in (8, 16, 24, 32, 64)),
        *(Type(f"i{n}", "signed", n) for n in (8, 16, 24, 32, 64)),
        *_floats(),
        Type("u16x2", "unsigned", 32, elements=2),
        Type("i16x2", "signed", 32, elements=2),
        Type("mask", "mask", 64),
    ]
}
