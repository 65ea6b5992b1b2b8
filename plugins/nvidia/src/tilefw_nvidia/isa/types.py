"""The types of PTX operands: width, kind, and the float format of the lane algebra (PTX ISA, "Fundamental Types",
"Alternate Floating-Point Data Formats", "Packed Data Types")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["bits", "unsigned", "signed", "float", "predicate"]


@dataclass(frozen=True, slots=True)
class Type:
    """One operand type. `lanes` elements of format `format` fill `bits` when the type is packed (`f16x2`)."""

    name: str
    kind: Kind
    bits: int
    format: str = ""
    lanes: int = 1

    @property
    def signed(self) -> bool:
        return self.kind == "signed"


# The one meaning of each float of 8 bits (PTX ISA, "Alternate Floating-Point Data Formats"): its name in tile IR and the algebra.
FORMATS: Mapping[str, str] = {"e4m3": "f8E4M3FN", "e5m2": "f8E5M2"}


def _floats() -> list[Type]:
    scalar = [("f16", "f16", 16), ("bf16", "bf16", 16), ("tf32", "tf32", 32), ("f32", "f32", 32), ("f64", "f64", 64)]
    packed = [("f16x2", "f16", 32), ("bf16x2", "bf16", 32), *((f"{name}x2", fmt, 16) for name, fmt in FORMATS.items())]
    return [Type(name, "float", bits, fmt) for name, fmt, bits in scalar] + [
        Type(name, "float", bits, fmt, 2) for name, fmt, bits in packed
    ]


TYPES: dict[str, Type] = {
    t.name: t
    for t in [
        *(Type(f"b{n}", "bits", n) for n in (8, 16, 32, 64, 128)),
        *(Type(f"u{n}", "unsigned", n) for n in (8, 16, 32, 64)),
        *(Type(f"s{n}", "signed", n) for n in (8, 16, 32, 64)),
        *_floats(),
        Type("u16x2", "unsigned", 32, lanes=2),
        Type("s16x2", "signed", 32, lanes=2),
        Type("pred", "predicate", 1),
    ]
}

# What `.reg` and variables may be declared as: bf16, tf32 and the fp8 packs have no registers of their own, only bits.
DECLARABLE = frozenset(TYPES) - {"bf16", "bf16x2", "tf32", "e4m3x2", "e5m2x2", "u16x2", "s16x2"}


def agrees(register: Type, wanted: Type, wider: bool = False) -> bool:
    """Whether a register declared `register` may stand where an instruction wants `wanted`.

    PTX ISA, "Operand Type Checking": sizes are equal; bits agree with anything, signed with unsigned, floats only with the
    same float. `wider` is the relaxed rule of ld, st and cvt ("Operand Size Exceeding Instruction-Type Size").
    """
    if "predicate" in (register.kind, wanted.kind):
        return register.kind == wanted.kind
    if register.bits != wanted.bits and not (wider and register.bits > wanted.bits):
        return False
    if "bits" in (register.kind, wanted.kind):
        return True
    if "float" in (register.kind, wanted.kind):
        return register.kind == wanted.kind and register.bits == wanted.bits and register.format == wanted.format
    return True
