"""A form: one row in one encoding, with everything that text and bytes need: mnemonic, operands in LLVM's order, modifiers, bits.

A mnemonic may have several forms, which operands or modifiers tell apart: `global_load_dword v1, v[2:3], off` and
`global_load_dword v1, v2, s[4:5]`, `buffer_load_dword … offen` and `… idxen`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from tilefw_amd.chips import Chip
from tilefw_amd.isa.inst import Modifier
from tilefw_amd.isa.row import Role, Row
from tilefw_amd.isa.types import Type

if TYPE_CHECKING:
    from tilefw_amd.isa.codes import Codes
    from tilefw_amd.isa.formats import Format
    from tilefw_amd.isa.modifiers import Spelling

Pieces = tuple[tuple[int, int], ...]
"""Bits of the instruction's words as (lowest bit, width), the least significant piece first."""


@dataclass(frozen=True, slots=True, eq=False)  # one object of its form: caches hash it
class FormOperand:
    """One operand of a form, in the order of the text.

    `name` is the row's (`d`, `a`, …), or for a part of `[addr]` the field's (`vaddr`, `saddr`, `sbase`, `srsrc`, `soffset`,
    `offset`), which have the role "address". `pieces` say where it is encoded; without pieces it is only written (`vcc`) or
    the literal. `kinds` are v VGPR, a AGPR, s SGPR, c inline constant, l literal, o `off`, i immediate, t target. `source` counts
    the operands that modifiers by source (neg, abs, op_sel) speak of, from 0; -1 is none of them. `read` marks a destination
    that is read too. `codes` maps the operand to the value of its field and back (None for immediates and targets).
    """

    name: str
    role: Role
    field: str
    pieces: Pieces
    kinds: str
    type: Type | None = None
    registers: int = 1
    source: int = -1
    read: bool = False
    codes: Codes | None = None
    immediate: str = ""  # how a number is written: a name in `immediates.IMMEDIATES`
    signed: bool = False  # whether the number is
    constants: Type | None = None  # the type whose constants are written, where it is not `type`


@dataclass(frozen=True, slots=True, eq=False)  # one object of its form: caches hash it
class FormModifier:
    """One modifier of a form. `default` is what the fields hold when nothing was written; `always` prints it even then.

    A modifier of one field is an int; one with a bit for each source (op_sel, neg_lo, …) a tuple of `count` ints, one a piece.
    `neg`, `abs` and `sext` are tuples by source that are written at the operands: `-v1`, `|v1|`, `sext(v1)`.
    """

    name: str
    pieces: Pieces
    spelling: Spelling
    default: Modifier = 0
    always: bool = False
    count: int = 0  # 0: an int
    signed: bool = False


@dataclass(frozen=True, eq=False)
class Form:
    """`mnemonic` as LLVM prints it; `encoding` is the variant's name: vop2, vop2_sdwa, vop2_dpp, vop3, vop3b, global_saddr, ….

    The form is that of a word w (little endian, `size` bytes) when w & mask == value. `fixed` are the modifiers that this form
    has by being itself (`{"offen": 1}`), which the text must show; `order` has the names of these and of the others as in the text.
    `size` is without a literal; `ignored` are bits that the hardware does not look at, as LLVM writes them. `chip` is the chip
    of the instruction set that has it.
    """

    row: Row
    encoding: str
    format: Format
    mnemonic: str
    opcode: int
    operands: tuple[FormOperand, ...]
    modifiers: tuple[FormModifier, ...]
    mask: int
    value: int
    size: int
    fixed: Mapping[str, Modifier] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    ignored: int = 0
    chip: Chip = field(kw_only=True)

    @cached_property
    def defaults(self) -> dict[str, Modifier]:
        """The value of every modifier where `Inst.modifiers` says nothing."""
        return {m.name: m.default for m in self.modifiers} | dict(self.fixed)

    @cached_property
    def by_name(self) -> dict[str, int]:
        """Positions of the operands by name."""
        return {o.name: i for i, o in enumerate(self.operands)}

    @cached_property
    def modifier(self) -> dict[str, FormModifier]:
        return {m.name: m for m in self.modifiers}

    @property
    def literal(self) -> bool:
        """Whether an operand may be a literal of 32 bits."""
        return any("l" in o.kinds for o in self.operands)

    def __repr__(self) -> str:
        return f"Form({self.mnemonic} {self.encoding} {', '.join(o.name for o in self.operands)})"
