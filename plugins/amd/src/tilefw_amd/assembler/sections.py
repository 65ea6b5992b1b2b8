"""Sections while a file is assembled: bytes, the places in them that wait for symbols, and where labels stand."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from tilefw_amd.code_object import elf
from tilefw_amd.isa.text.expression import Expression
from tilefw_amd.isa.text.source import RANGE, SYMBOLS, Fault

S_NOP = bytes.fromhex("000080bf")
MAX_BYTES = 1 << 28  # of one section: `.fill` and `.p2align` of damaged text must not take all memory

Use = Literal["branch", "literal", "data", "signed data"]


@dataclass(frozen=True, slots=True)
class Fixup:
    """`size` bytes at `offset` hold `expression` when all symbols are known; `start`, `end` are its place in the file.

    A branch holds the distance in words from its end, a literal a value or a distance by its symbol's variant.
    """

    offset: int
    size: int
    use: Use
    expression: Expression
    start: int
    end: int


@dataclass(slots=True)
class AssembledSection:
    """`flags` and `type` are ELF's. `lines` are the entries of .loc: (offset, file, line, column)."""

    name: str
    type: int = elf.SHT_PROGBITS
    flags: int = 0
    entry_size: int = 0
    alignment: int = 1
    data: bytearray = field(default_factory=bytearray)
    fixups: list[Fixup] = field(default_factory=list)

    @property
    def executable(self) -> bool:
        return bool(self.flags & elf.SHF_EXECINSTR)

    def align(self, alignment: int, fill: bytes | None, most: int | None) -> None:
        """Pad to a multiple of `alignment`, unless that takes more than `most` bytes; code is padded with s_nop 0."""
        self.alignment = max(self.alignment, alignment)
        gap = -len(self.data) % alignment
        if most is not None and gap > most:
            return
        self.grow(gap)
        if fill is None and self.executable:
            self.data += bytes(gap % 4) + S_NOP * (gap // 4)
        else:
            unit = fill or b"\0"
            self.data += bytes(gap % len(unit)) + unit * (gap // len(unit))

    def grow(self, count: int) -> None:
        """Raises Fault before the section becomes too large."""
        if len(self.data) + count > MAX_BYTES:
            raise Fault(f"section {self.name} would be larger than {MAX_BYTES} bytes", code=RANGE)


_AX, _A, _WA = elf.SHF_ALLOC | elf.SHF_EXECINSTR, elf.SHF_ALLOC, elf.SHF_ALLOC | elf.SHF_WRITE
_KNOWN = {".text": (elf.SHT_PROGBITS, _AX), ".rodata": (elf.SHT_PROGBITS, _A), ".data": (elf.SHT_PROGBITS, _WA),
          ".bss": (elf.SHT_NOBITS, _WA)}
_FLAGS = {"a": elf.SHF_ALLOC, "w": elf.SHF_WRITE, "x": elf.SHF_EXECINSTR, "M": elf.SHF_MERGE, "S": elf.SHF_STRINGS}
_TYPES = {"progbits": elf.SHT_PROGBITS, "nobits": elf.SHT_NOBITS, "note": elf.SHT_NOTE}


def new_section(name: str, flags: str | None, kind: str | None, entry_size: int) -> AssembledSection:
    """A section as `.section name,"flags",@kind,size` says it, or by its name. Raises Fault."""
    base = next((b for b in _KNOWN if name == b or name.startswith(b + ".")), "")
    type_, bits = _KNOWN.get(base, (elf.SHT_PROGBITS, 0))
    if flags is not None:
        odd = [f for f in flags if f not in _FLAGS]
        if odd:
            raise Fault(f"section flag {odd[0]!r} is not served", code=SYMBOLS, note="served are a, w, x, M and S")
        bits = 0
        for flag in flags:
            bits |= _FLAGS[flag]
    if kind is not None:
        if kind not in _TYPES:
            raise Fault(f"section type @{kind} is not served", code=SYMBOLS, note=f"served are {', '.join(_TYPES)}")
        type_ = _TYPES[kind]
    alignment = 4 if bits & elf.SHF_EXECINSTR else 1
    return AssembledSection(name, type_, bits, entry_size, alignment)


def patch(section: AssembledSection, fixup: Fixup, value: Callable[[Fixup], int]) -> None:
    """Put the value of a fixup in its place; raises Fault where it does not fit."""
    number = value(fixup)
    bits = 8 * fixup.size
    low, high = -(1 << (bits - 1)), 1 << bits
    if fixup.use == "branch":
        if number % 4:
            raise Fault(f"the target is {number} bytes away, no multiple of 4", fixup.start, fixup.end, code=SYMBOLS)
        number //= 4
        low, high = -0x8000, 0x8000
    if not low <= number < high:
        what = "words away" if fixup.use == "branch" else f"more than {bits} bits"
        help = "a branch reaches 32,768 words back and 32,767 ahead; s_setpc_b64 goes anywhere" if fixup.use == "branch" else None
        raise Fault(f"the value {number} is {what}", fixup.start, fixup.end, code=RANGE, help=help)
    struct.pack_into(f"<{ {1: 'B', 2: 'H', 4: 'I', 8: 'Q'}[fixup.size] }", section.data, fixup.offset, number & ((1 << bits) - 1))
