"""The modifiers of LLVM's syntax as a table: name, how a value is written, and back. Parser and printer both read it.

    clamp                    flag     1
    offset:16                number   16 (row_mask:0xf: hex)
    op_sel:[0,1,0]           bits     (0, 1, 0)
    dst_sel:BYTE_1, mul:2    choice   the value of the field, named by its whole text

The values are those of the fields (CDNA3 ISA, chapter "Microcode formats"); the words LLVM's (`AMDGPUModifierSyntax.rst`).
`neg`, `abs` and `sext` stand at the operands (`-|v1|`, `sext(v1)`), not behind them: kind "inline".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from tilefw_amd.isa import immediates
from tilefw_amd.isa.inst import Modifier

Kind = Literal["flag", "number", "hex", "bits", "choice", "inline"]


@dataclass(frozen=True, eq=False)
class Spelling:
    """How one modifier is written. `word` stands before the colon, or alone; `choices` map values to whole texts."""

    kind: Kind
    word: str
    choices: Mapping[int, str] = field(default_factory=dict)

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


class Swizzle(Spelling):
    """The offset of DS_SWIZZLE_B32 by the name of its pattern, as `immediates` writes it."""

    def text(self, value: Modifier) -> str:
        assert isinstance(value, int)
        return f"{self.word}:{immediates.swizzle(value)}"


_BITS = re.compile(r"\[[01](,[01])*\]$")
_NUMBER = re.compile(r"-?(0x[0-9a-fA-F]+|0b[01]+|[1-9]\d*|0)$")

# What SDWA selects of a register, as `dst_sel`, `src0_sel` and `src1_sel` hold it, and what becomes of the unselected bits.
SELECTS = ("BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD")
DWORD = SELECTS.index("DWORD")
UNUSED = ("UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE")

# DPP controls by value (CDNA3 ISA, section "DPP"): quad_perm holds two bits a lane below these.
ROW_SHL, ROW_SHR, ROW_ROR = 0x100, 0x110, 0x120
WAVE_SHL, WAVE_ROL, WAVE_SHR, WAVE_ROR = 0x130, 0x134, 0x138, 0x13C
ROW_MIRROR, ROW_HALF_MIRROR, ROW_BCAST15, ROW_BCAST31, ROW_NEWBCAST = 0x140, 0x141, 0x142, 0x143, 0x150


def _dpp_controls() -> dict[int, str]:
    found = {n: f"quad_perm:[{n & 3},{n >> 2 & 3},{n >> 4 & 3},{n >> 6}]" for n in range(256)}
    for base, word in ((ROW_SHL, "row_shl"), (ROW_SHR, "row_shr"), (ROW_ROR, "row_ror")):
        found |= {base + n: f"{word}:{n}" for n in range(1, 16)}
    found |= {WAVE_SHL: "wave_shl:1", WAVE_ROL: "wave_rol:1", WAVE_SHR: "wave_shr:1", WAVE_ROR: "wave_ror:1"}
    found |= {ROW_MIRROR: "row_mirror", ROW_HALF_MIRROR: "row_half_mirror"}
    found |= {ROW_BCAST15: "row_bcast:15", ROW_BCAST31: "row_bcast:31"}
    return found | {ROW_NEWBCAST + n: f"row_newbcast:{n}" for n in range(16)}


def _choices(word: str, names: tuple[str, ...]) -> Spelling:
    return Spelling("choice", word, {value: f"{word}:{name}" for value, name in enumerate(names)})


def _table() -> dict[str, Spelling]:
    flags = {word: Spelling("flag", word) for word in ("clamp", "gds", "sc0", "nt", "sc1", "glc", "lds", "offen", "idxen")}
    numbers = {word: Spelling("number", word) for word in ("offset", "offset0", "offset1", "cbsz", "abid", "blgp")}
    bits = {word: Spelling("bits", word) for word in ("op_sel", "op_sel_hi", "neg_lo", "neg_hi")}
    inline = {word: Spelling("inline", word) for word in ("neg", "abs", "sext")}
    sdwa = {word: _choices(word, SELECTS) for word in ("dst_sel", "src0_sel", "src1_sel")}
    return flags | numbers | bits | inline | sdwa | {
        "offset12": Spelling("number", "offset"),
        "swizzle": Swizzle("number", "offset"),
        "smem_offset": Spelling("hex", "offset"),
        "smem_offset20": Spelling("hex", "offset"),
        "matrix_neg": Spelling("bits", "neg"),  # of the f64 matrix instructions, in the bits of blgp
        "omod": Spelling("choice", "omod", {1: "mul:2", 2: "mul:4", 3: "div:2"}),
        "dst_unused": _choices("dst_unused", UNUSED),
        "dpp_ctrl": Spelling("choice", "dpp_ctrl", _dpp_controls()),
        "wide_dpp_ctrl": Spelling(
            "choice", "dpp_ctrl", {value: text for value, text in _dpp_controls().items() if value >= ROW_NEWBCAST}
        ),  # 64-bit operands have no other control
        "row_mask": Spelling("hex", "row_mask"),
        "bank_mask": Spelling("hex", "bank_mask"),
        "bound_ctrl": Spelling("choice", "bound_ctrl", {1: "bound_ctrl:1"}),
    }


MODIFIERS: dict[str, Spelling] = _table()
