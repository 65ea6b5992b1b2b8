"""One instruction of a program as everybody hands it on: parser to encoder, decoder to printer, decoder to simulator.

    text  --parser-->   Inst  --encode-->   bytes
    bytes --decode-->   Inst  --printer-->  text
                        Inst  --binding-->  an instruction of the simulator kit

An `Inst` says exactly what the words of its encoding say, so that bytes and text name the same instruction both ways.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from tilefw_amd.isa.form import Form

File = Literal["v", "a", "s"]


class Register(NamedTuple):
    """`count` consecutive registers of 32 bits, from number `index` of a file.

    "v": vector, "a": accumulation, "s": scalar, by the code of the operand field: 0-101 are s0 to s101, 102 flat_scratch,
    104 xnack_mask, 106 vcc, 108-123 ttmp0 to ttmp15, 124 m0, 126 exec, 235-238 the apertures, 251 vccz, 252 execz, 253 scc
    (CDNA3 ISA, table "Scalar operands").
    """

    file: File
    index: int
    count: int = 1


class Constant(NamedTuple):
    """An inline constant by its code in the operand field: 128 to 208 and 240 to 248 (CDNA3 ISA, table "Scalar operands")."""

    code: int


@dataclass(frozen=True, slots=True)
class Literal32:
    """A constant of 32 bits that follows the instruction. No tuple: it must never equal the `Constant` with that number as code."""

    bits: int


class Target(NamedTuple):
    """Where a branch goes: `offset` in words of 4 bytes from the end of the branch, or the `label` that will say it."""

    offset: int
    label: str = ""


Operand = Register | Constant | Literal32 | Target | int | None
"""`int` is an immediate field; None is the `off` of an address that has no register there."""

Modifier = int | tuple[int, ...] | str


@dataclass(frozen=True, slots=True)
class Inst:
    """`operands` stand in the order of `form.operands`, `modifiers` holds what differs from its default, by LLVM's name.

    `size` is in bytes: 4, 8 or 12, with literal or second word.
    """

    form: Form
    operands: tuple[Operand, ...]
    modifiers: Mapping[str, Modifier]
    size: int
