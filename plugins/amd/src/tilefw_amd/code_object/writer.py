"""A code object, written: the shared object that `ld.lld -shared` would make of the same sections, symbols and metadata.

Two steps, as code refers to addresses: making a `CodeObjectWriter` places every section; `write` puts the bytes there. Layout by
lld's conventions: read-only, executable and writable segments, each at a fresh page of memory without padding in the file.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from tilefw.api.integers import round_up
from tilefw_amd.code_object import elf, hashes
from tilefw_amd.code_object.metadata import NOTE_NAME, NT_AMDGPU_METADATA, Document, pack
from tilefw_amd.code_object.reader import ELFOSABI_AMDGPU_HSA, EM_AMDGPU

PAGE = 0x1000
ABI_VERSION = 3  # code object version 5

_DT_NULL, _DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ, _DT_SYMENT, _DT_GNU_HASH = 0, 4, 5, 6, 10, 11, 0x6FFFFEF5


@dataclass(slots=True)
class OutputSection:
    """A section of the author's; `data` may be filled after placing, as long as its length stays. `size` is that of SHT_NOBITS."""

    name: str
    type: int = elf.SHT_PROGBITS
    flags: int = 0
    alignment: int = 1
    data: bytearray = field(default_factory=bytearray)
    size: int = 0
    entry_size: int = 0

    @property
    def bytes_in_memory(self) -> int:
        return self.size if self.type == elf.SHT_NOBITS else len(self.data)


@dataclass(frozen=True, slots=True)
class OutputSymbol:
    """`value` is an offset into `section`, or absolute where that is ""."""

    name: str
    section: str
    value: int
    size: int = 0
    type: int = elf.STT_NOTYPE
    binding: int = elf.STB_LOCAL
    visibility: int = elf.STV_DEFAULT


@dataclass(slots=True)
class _Placed:
    section: OutputSection
    address: int
    offset: int
    link: int = 0
    info: int = 0


class _Strings:
    """A string table; equal names stand once."""

    def __init__(self) -> None:
        self.data = bytearray(b"\0")
        self._at: dict[str, int] = {"": 0}

    def add(self, name: str) -> int:
        if name not in self._at:
            self._at[name] = len(self.data)
            self.data += name.encode() + b"\0"
        return self._at[name]


class CodeObjectWriter:
    """`addresses` gives each loaded section's address in the image, by name."""

    def __init__(self, sections: Sequence[OutputSection], symbols: Sequence[OutputSymbol], document: Document, flags: int) -> None:
        self._flags = flags
        self._symbols = sorted(symbols, key=lambda s: s.binding != elf.STB_LOCAL)
        exported = [s for s in symbols if s.binding != elf.STB_LOCAL and s.visibility != elf.STV_HIDDEN]
        by_name = {s.name: s for s in exported}
        self._dynamic_names = _Strings()
        for symbol in exported:
            self._dynamic_names.add(symbol.name)
        self._dynamic_symbols = [by_name[name] for name in hashes.in_bucket_order([s.name for s in exported])]
        self._placed: list[_Placed] = []
        self._segments: list[tuple[int, int, int, int, int, int, int]] = []
        self._lay_out(sections, self._read_only(document))
        self.addresses = {p.section.name: p.address for p in self._placed if p.section.flags & elf.SHF_ALLOC}
        self._number = {p.section.name: i for i, p in enumerate(self._placed, 1)}

    # --- the sections that we make -------------------------------------------------------------------------------------

    def _read_only(self, document: Document) -> list[OutputSection]:
        alloc, names = elf.SHF_ALLOC, [s.name for s in self._dynamic_symbols]
        dynsym = bytearray(elf.SYM.size * (len(names) + 1))
        return [
            OutputSection(".note", elf.SHT_NOTE, alloc, 4, bytearray(_note(document))),
            OutputSection(".dynsym", elf.SHT_DYNSYM, alloc, 8, dynsym, entry_size=elf.SYM.size),
            OutputSection(".gnu.hash", elf.SHT_GNU_HASH, alloc, 8, bytearray(hashes.gnu_table(names))),
            OutputSection(".hash", elf.SHT_HASH, alloc, 4, bytearray(hashes.system_v_table(names)), entry_size=4),
            OutputSection(".dynstr", elf.SHT_STRTAB, alloc, 1, self._dynamic_names.data),
        ]

    # --- places --------------------------------------------------------------------------------------------------------

    def _lay_out(self, sections: Sequence[OutputSection], ours: list[OutputSection]) -> None:
        loaded = [s for s in sections if s.flags & elf.SHF_ALLOC and s.bytes_in_memory]
        executable = [s for s in loaded if s.flags & elf.SHF_EXECINSTR]
        writable = [s for s in loaded if s.flags & elf.SHF_WRITE and s not in executable]
        constant = [s for s in loaded if s not in executable and s not in writable]
        dynamic = OutputSection(
            ".dynamic", elf.SHT_DYNAMIC, elf.SHF_ALLOC | elf.SHF_WRITE, 8, bytearray(16 * 7), entry_size=16
        )
        groups = [(elf.PF_R, [*ours, *constant]), (elf.PF_R | elf.PF_X, executable), (elf.PF_R | elf.PF_W, [dynamic])]
        if writable:
            groups.append((elf.PF_R | elf.PF_W, sorted(writable, key=lambda s: s.type == elf.SHT_NOBITS)))
        groups = [g for g in groups if g[1]]
        # Program headers: themselves, the groups, .dynamic, RELRO, the stack, the note.
        self._offset = elf.EHDR.size + elf.PHDR.size * (len(groups) + 5)
        self._address = self._offset
        for flags, members in groups:
            self._lay_out_group(flags, members, first=flags == elf.PF_R)
        self._finish_segments()
        self._offset = max(self._offset, elf.EHDR.size)
        for section in [s for s in sections if not s.flags & elf.SHF_ALLOC and s.bytes_in_memory]:
            self._append(section)
        self._add_tables()

    def _lay_out_group(self, flags: int, members: list[OutputSection], first: bool) -> None:
        if not first:
            # lld: the next page of memory, at the same place within the page as in the file.
            self._address = round_up(self._address, PAGE) + self._address % PAGE
        start: tuple[int, int] | None = (0, 0) if first else None
        file_end = self._offset
        for section in members:
            step = -self._address % section.alignment
            self._address += step
            if section.type != elf.SHT_NOBITS:
                self._offset += step
            start = start or (self._offset, self._address)
            self._placed.append(_Placed(section, self._address, self._offset))
            self._address += section.bytes_in_memory
            if section.type != elf.SHT_NOBITS:
                self._offset += len(section.data)
                file_end = self._offset
        assert start is not None
        relro = members[0].name == ".dynamic"
        memory_end = round_up(self._address, PAGE) if relro else self._address
        if relro:
            padding = OutputSection(
                ".relro_padding", elf.SHT_NOBITS, elf.SHF_ALLOC | elf.SHF_WRITE, 1, size=memory_end - self._address
            )
            if padding.size:
                self._placed.append(_Placed(padding, self._address, self._offset))
            # What follows takes up the file where .dynamic ends, as the padding is in memory alone.
            self._address = memory_end - PAGE + self._offset % PAGE if self._offset % PAGE else memory_end
        size = file_end - start[0]
        self._segments.append((elf.PT_LOAD, flags, start[0], start[1], size, memory_end - start[1], PAGE))

    def _finish_segments(self) -> None:
        headers = elf.PHDR.size * (len(self._segments) + 5)
        dynamic = next(p for p in self._placed if p.section.name == ".dynamic")
        relro = next(s for s in self._segments if s[3] == dynamic.address)
        note = next(p for p in self._placed if p.section.name == ".note")
        size, note_size, writable = len(dynamic.section.data), len(note.section.data), elf.PF_R | elf.PF_W
        self._segments = [
            (elf.PT_PHDR, elf.PF_R, elf.EHDR.size, elf.EHDR.size, headers, headers, 8),
            *self._segments,
            (elf.PT_DYNAMIC, writable, dynamic.offset, dynamic.address, size, size, 8),
            (elf.PT_GNU_RELRO, elf.PF_R, dynamic.offset, dynamic.address, size, relro[5], 1),
            (elf.PT_GNU_STACK, writable, 0, 0, 0, 0, 0),
            (elf.PT_NOTE, elf.PF_R, note.offset, note.address, note_size, note_size, 4),
        ]

    def _append(self, section: OutputSection, link: int = 0, info: int = 0) -> None:
        self._offset += -self._offset % section.alignment
        self._placed.append(_Placed(section, 0, self._offset, link, info))
        self._offset += len(section.data)

    def _add_tables(self) -> None:
        """The symbol table and the names of symbols and sections, behind everything."""
        names, self._section_names = _Strings(), _Strings()
        for symbol in self._symbols:
            names.add(symbol.name)
        local = 1 + sum(s.binding == elf.STB_LOCAL for s in self._symbols)
        count = len(self._placed)
        symtab = bytearray(elf.SYM.size * (len(self._symbols) + 1))
        self._names = names
        for name in [*(p.section.name for p in self._placed), ".symtab", ".shstrtab", ".strtab"]:
            self._section_names.add(name)
        table = OutputSection(".symtab", elf.SHT_SYMTAB, 0, 8, symtab, entry_size=elf.SYM.size)
        self._append(table, link=count + 3, info=local)
        self._append(OutputSection(".shstrtab", elf.SHT_STRTAB, 0, 1, self._section_names.data))
        self._append(OutputSection(".strtab", elf.SHT_STRTAB, 0, 1, names.data))

    # --- bytes ---------------------------------------------------------------------------------------------------------

    def write(self) -> bytes:
        """The file. Sections hold their final bytes by now."""
        self._fill_tables()
        table = self._offset + -self._offset % 8
        count = len(self._placed) + 1
        out = bytearray(table + elf.SHDR.size * count)
        elf.EHDR.pack_into(
            out, 0, b"\x7fELF\2\1\1" + bytes([ELFOSABI_AMDGPU_HSA, ABI_VERSION]) + bytes(7), elf.ET_DYN, EM_AMDGPU, 1, 0,
            elf.EHDR.size, table, self._flags, elf.EHDR.size, elf.PHDR.size, len(self._segments), elf.SHDR.size, count, count - 2,
        )
        for i, (kind, flags, offset, address, size, memory, alignment) in enumerate(self._segments):
            at = elf.EHDR.size + i * elf.PHDR.size
            elf.PHDR.pack_into(out, at, kind, flags, offset, address, address, size, memory, alignment)
        for i, placed in enumerate(self._placed, 1):
            section = placed.section
            out[placed.offset : placed.offset + len(section.data)] = section.data
            elf.SHDR.pack_into(
                out, table + i * elf.SHDR.size, self._section_names.add(section.name), section.type, section.flags,
                placed.address, placed.offset, section.bytes_in_memory, placed.link, placed.info, section.alignment,
                section.entry_size,
            )
        return bytes(out)

    def _fill_tables(self) -> None:
        by_name = {p.section.name: p for p in self._placed}
        dynstr = self._number[".dynstr"]
        for name, link, info in ((".dynsym", dynstr, 1), (".gnu.hash", self._number[".dynsym"], 0),
                                 (".hash", self._number[".dynsym"], 0), (".dynamic", dynstr, 0)):
            by_name[name].link, by_name[name].info = link, info
        _put_symbols(by_name[".dynsym"].section.data, self._dynamic_symbols, self._dynamic_names, self)
        _put_symbols(by_name[".symtab"].section.data, self._symbols, self._names, self)
        address = self.addresses
        struct.pack_into(
            "<14Q", by_name[".dynamic"].section.data, 0, _DT_SYMTAB, address[".dynsym"], _DT_SYMENT, elf.SYM.size,
            _DT_STRTAB, address[".dynstr"], _DT_STRSZ, len(self._dynamic_names.data), _DT_GNU_HASH, address[".gnu.hash"],
            _DT_HASH, address[".hash"], _DT_NULL, 0,
        )

    def entry(self, symbol: OutputSymbol, names: _Strings) -> bytes:
        """The symbol as 24 bytes."""
        number = self._number[symbol.section] if symbol.section else elf.SHN_ABS
        value = symbol.value + (self.addresses.get(symbol.section, 0) if symbol.section else 0)
        return elf.SYM.pack(
            names.add(symbol.name), symbol.binding << 4 | symbol.type, symbol.visibility, number, value, symbol.size
        )


def _put_symbols(table: bytearray, symbols: Sequence[OutputSymbol], names: _Strings, writer: CodeObjectWriter) -> None:
    for i, symbol in enumerate(symbols, 1):
        table[i * elf.SYM.size : (i + 1) * elf.SYM.size] = writer.entry(symbol, names)


def _note(document: Document) -> bytes:
    content = pack(document)
    header = struct.pack("<III", len(NOTE_NAME), len(content), NT_AMDGPU_METADATA)
    return header + NOTE_NAME + b"\0" * (-len(NOTE_NAME) % 4) + content + b"\0" * (-len(content) % 4)
