"""The records of the instruction set: what an instruction is between text, bytes and simulation, and what its form is made of.

    text  --parser-->   Inst  --encode-->   bytes
    bytes --decode-->   Inst  --printer-->  text
                        Inst  --binding-->  an instruction of the simulator kit

An `MCInst` has exactly what the words of its encoding have, so that bytes and text name the same instruction both ways. Its `Form`
is one row in one encoding, with everything that text and bytes need: mnemonic, operands in LLVM's order, modifiers, bits. A
mnemonic may have several forms, which operands or modifiers tell apart: `global_load_dword v1, v[2:3], off` and
`global_load_dword v1, v2, s[4:5]`, `buffer_load_dword … offen` and `… idxen`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

from tilefw_amd.chips import Chip
from tilefw_amd.isa.row import Role, Row
from tilefw_amd.isa.types import Type

File = Literal["v", "a", "s"]


class RegisterTuple(NamedTuple):
    """`count` consecutive registers of 32 bits, from number `index` of a file.

    "v": vector, "a": accumulation, "s": scalar, by the code of the operand field: 0-101 are s0 to s101, 102 flat_scratch,
    104 xnack_mask, 106 vcc, 108-123 ttmp0 to ttmp15, 124 m0, 126 exec, 235-238 the apertures, 251 vccz, 252 execz, 253 scc
    (CDNA3 ISA, table "Scalar operands").
    """

    file: File
    # They hide two methods of tuples, which nobody calls on a register: a plain class takes twice as long to make.
    index: int  # pyright: ignore[reportIncompatibleMethodOverride]
    count: int = 1  # pyright: ignore[reportIncompatibleMethodOverride]


class InlineConstant(NamedTuple):
    """An inline constant by its code in the operand field: 128 to 208 and 240 to 248 (CDNA3 ISA, table "Scalar operands")."""

    code: int


@dataclass(frozen=True, slots=True)
class Literal32:
    """A constant of 32 bits that follows the instruction. No tuple: it must never equal the `InlineConstant` with that number as
    code."""

    bits: int


class BranchTarget(NamedTuple):
    """Where a branch goes: `offset` in words of 4 bytes from the end of the branch, or the `label` that will say it."""

    offset: int
    label: str = ""


Operand = RegisterTuple | InlineConstant | Literal32 | BranchTarget | int | None
"""`int` is an immediate field; None is the `off` of an address that has no register there."""

Modifier = int | tuple[int, ...] | str

CodeMeaning = Operand | str
"""What a code stands for: an operand, or why it stands for none."""


@dataclass(frozen=True, eq=False)
class Codes:
    """`decode[code]` is the operand, or a text that says why the code is undefined; `encode` is its inverse.

    The code `literal` (-1: there is none) says that a literal follows.
    """

    decode: tuple[CodeMeaning, ...]
    encode: dict[Operand, int]
    literal: int = -1


_BITS = re.compile(r"\[[01](,[01])*\]$")
_NUMBER = re.compile(r"-?(0x[0-9a-fA-F]+|0b[01]+|[1-9]\d*|0)$")

SpellingKind = Literal["flag", "number", "hex", "bits", "choice", "inline"]


@dataclass(frozen=True, eq=False)
class Spelling:
    """How one modifier is written. `word` stands before the colon, or alone; `choices` map values to whole texts. `values` tells
    a user what may be written, where that does not follow from the kind."""

    kind: SpellingKind
    word: str
    choices: Mapping[int, str] = field(default_factory=dict)
    values: str = ""

    def text(self, value: Modifier) -> str:
        """`value` as LLVM prints it. KeyError when a choice has no such value."""
        if self.kind == "flag":
            return self.word
        if self.kind == "bits":
            assert isinstance(value, tuple)
            return f"{self.word}:[{','.join(map(str, value))}]"
        assert isinstance(value, int)
        if self.kind == "choice":
            return self.choices[value]
        return f"{self.word}:{value:#x}" if self.kind == "hex" else f"{self.word}:{value}"

    @property
    def words(self) -> frozenset[str]:
        """What a modifier of this spelling begins with, up to its colon: omod has two words, the DPP controls many."""
        return frozenset(text.partition(":")[0] for text in self.choices.values()) or frozenset({self.word})

    def value(self, text: str) -> Modifier | None:
        """The value that `text` (one modifier, without spaces) writes, or None."""
        if self.kind == "flag":
            return 1 if text == self.word else None
        if self.kind == "choice":
            return self._by_text.get(text.lower())
        word, colon, rest = text.partition(":")
        if word != self.word or not colon:
            return None
        if self.kind == "bits":
            return tuple(int(bit) for bit in rest[1:-1].split(",")) if _BITS.match(rest) else None
        return int(rest, 0) if _NUMBER.match(rest) else None

    @cached_property
    def _by_text(self) -> dict[str, int]:
        return {text.lower(): value for value, text in self.choices.items()}


Pieces = tuple[tuple[int, int], ...]
"""Bits of the instruction's words as (lowest bit, width), the least significant piece first."""


class EncodingField(NamedTuple):
    """Where a field stands, the space of its codes (`codes`; "" for a number) and the kinds of operands that it can hold."""

    pieces: Pieces
    space: str = ""
    kinds: str = ""


@dataclass(frozen=True)
class MicrocodeFormat:
    """One microcode format of `size` bytes.

    The opcode is at `opcode` (lowest bit, width); `mask` and `value` are the bits that say which format it is. `group` names the
    format whose first word it shares. `destinations` and `sources` are fields in the order in which a row's operands take them.
    """

    name: str
    size: int
    mask: int
    value: int
    opcode: tuple[int, int]
    fields: Mapping[str, EncodingField]
    destinations: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    group: str = field(default="", kw_only=True)

    @property
    def shared(self) -> str:
        return self.group or self.name


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
    format: MicrocodeFormat
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
        """The value of every modifier where `MCInst.modifiers` says nothing."""
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


@dataclass(frozen=True, slots=True)
class MCInst:
    """`operands` stand in the order of `form.operands`, `modifiers` holds what differs from its default, by LLVM's name.

    `size` is in bytes: 4, 8 or 12, with literal or second word; 16 of a product with scales.
    """

    form: Form
    operands: tuple[Operand, ...]
    modifiers: Mapping[str, Modifier]
    size: int
