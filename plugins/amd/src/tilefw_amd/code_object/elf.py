"""ELF files of 64 bits, read with every offset checked: sections, symbols, segments, relocations (System V ABI, "Object Files").

What stands here is ELF alone; what AMD puts into it is in the files beside this one.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property

from tilefw.api import CodeError

DAMAGED = "TFW0724"

ET_REL, ET_DYN = 1, 3
PT_LOAD, PT_DYNAMIC, PT_NOTE, PT_PHDR = 1, 2, 4, 6
PT_GNU_STACK, PT_GNU_RELRO = 0x6474E551, 0x6474E552
PF_X, PF_W, PF_R = 1, 2, 4
SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_HASH, SHT_DYNAMIC, SHT_NOTE, SHT_NOBITS = 1, 2, 3, 4, 5, 6, 7, 8
SHT_DYNSYM, SHT_GNU_HASH = 11, 0x6FFFFFF6
SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR, SHF_MERGE, SHF_STRINGS, SHF_INFO_LINK = 1, 2, 4, 0x10, 0x20, 0x40
STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_SECTION = 0, 1, 2, 3
STB_LOCAL, STB_GLOBAL, STB_WEAK = 0, 1, 2
STV_DEFAULT, STV_HIDDEN, STV_PROTECTED = 0, 2, 3
SHN_ABS = 0xFFF1

EHDR = struct.Struct("<16sHHIQQQIHHHHHH")
PHDR = struct.Struct("<IIQQQQQQ")
SHDR = struct.Struct("<IIQQQQIIQQ")
SYM = struct.Struct("<IBBHQQ")
RELA = struct.Struct("<QQq")


@dataclass(frozen=True, slots=True)
class Header:
    os_abi: int
    abi_version: int
    type: int
    machine: int
    flags: int


@dataclass(frozen=True, slots=True)
class ElfSection:
    """A section; `size` is in bytes in memory, `data` its bytes in the file (none for SHT_NOBITS)."""

    name: str
    type: int
    flags: int
    address: int
    size: int
    data: bytes
    link: int = 0
    info: int = 0
    alignment: int = 1
    entry_size: int = 0


@dataclass(frozen=True, slots=True)
class Segment:
    """A program header with its bytes of the file; `memory_size` may be larger (zeros follow)."""

    type: int
    flags: int
    address: int
    data: bytes
    memory_size: int
    alignment: int


@dataclass(frozen=True, slots=True)
class ElfSymbol:
    """`section` is a section's number, or one of the reserved ones (SHN_ABS; 0: undefined)."""

    name: str
    value: int
    size: int
    type: int
    binding: int
    visibility: int
    section: int


@dataclass(frozen=True, slots=True)
class Relocation:
    offset: int
    type: int
    symbol: ElfSymbol | None
    addend: int


class Elf:
    """A file read lazily; every property raises CodeError where the file does not hold what its header promises."""

    def __init__(self, data: bytes, name: str) -> None:
        self.data, self.name = data, name
        if len(data) < EHDR.size or data[:4] != b"\x7fELF":
            raise self.error("is not an ELF file", "it does not begin with the bytes 7f 45 4c 46 and a whole header")
        if data[4] != 2 or data[5] != 1:
            raise self.error("is not a little-endian ELF file of 64 bits")
        (ident, kind, machine, _, _, phoff, shoff, flags, _, phentsize, phnum, shentsize, shnum, shstrndx) = EHDR.unpack_from(data)
        self.header = Header(ident[7], ident[8], kind, machine, flags)
        if (phnum and phentsize != PHDR.size) or (shnum and shentsize != SHDR.size):
            raise self.error(f"has headers of {phentsize} and {shentsize} bytes", f"they have {PHDR.size} and {SHDR.size}")
        self._segments_at, self._sections_at, self._names = (phoff, phnum), (shoff, shnum), shstrndx

    def error(self, message: str, note: str | None = None) -> CodeError:
        return CodeError(f"{self.name} {message}", DAMAGED, note=note)

    def bytes_at(self, offset: int, size: int, what: str) -> bytes:
        if offset < 0 or size < 0 or offset + size > len(self.data):
            raise self.error("is cut short or damaged", f"{what}: bytes {offset} to {offset + size} of {len(self.data)}")
        return self.data[offset : offset + size]

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        offset, count = self._segments_at
        table = self.bytes_at(offset, count * PHDR.size, "program headers")
        found = []
        for kind, flags, at, address, _, size, memory_size, alignment in PHDR.iter_unpack(table):
            data = self.bytes_at(at, size, f"segment {len(found)}")
            if memory_size < size:
                raise self.error(f"has a segment of {memory_size} bytes with {size} in the file")
            found.append(Segment(kind, flags, address, data, memory_size, alignment))
        return tuple(found)

    @cached_property
    def sections(self) -> tuple[ElfSection, ...]:
        offset, count = self._sections_at
        headers = list(SHDR.iter_unpack(self.bytes_at(offset, count * SHDR.size, "section headers")))
        names = b""
        if 0 < self._names < count:
            names = self.bytes_at(headers[self._names][4], headers[self._names][5], "section names")
        found = []
        for name, kind, flags, address, at, size, link, info, alignment, entry_size in headers:
            data = b"" if kind in (0, SHT_NOBITS) else self.bytes_at(at, size, f"section {len(found)}")
            found.append(ElfSection(self.string(names, name), kind, flags, address, size, data, link, info, alignment, entry_size))
        return tuple(found)

    def section(self, name: str) -> ElfSection | None:
        return next((s for s in self.sections if s.name == name), None)

    def string(self, table: bytes, offset: int) -> str:
        """The name at an offset of a string table."""
        end = table.find(b"\0", offset)
        if not table:
            return ""
        if offset >= len(table) or end < 0:
            raise self.error("is damaged", f"a name at byte {offset} of a string table of {len(table)} bytes")
        return table[offset:end].decode("utf-8", "replace")

    @cached_property
    def symbols(self) -> tuple[ElfSymbol, ...]:
        """The symbols: of .symtab where there is one, else of .dynsym."""
        kinds = {s.type for s in self.sections}
        wanted = SHT_SYMTAB if SHT_SYMTAB in kinds else SHT_DYNSYM
        return next((self._symbols_of(s) for s in self.sections if s.type == wanted), ())

    def _symbols_of(self, table: ElfSection) -> tuple[ElfSymbol, ...]:
        names = self.sections[table.link].data if table.link < len(self.sections) else b""
        whole = table.data[: len(table.data) // SYM.size * SYM.size]
        return tuple(
            ElfSymbol(self.string(names, name), value, size, info & 15, info >> 4, other & 3, section)
            for name, info, other, section, value, size in SYM.iter_unpack(whole)
        )

    @cached_property
    def dynamic_relocations(self) -> tuple[Relocation, ...]:
        """Those that a loader applies: SHT_RELA sections that are in memory."""
        found: list[Relocation] = []
        for section in self.sections:
            if section.type != SHT_RELA or not section.flags & SHF_ALLOC:
                continue
            linked = 0 < section.link < len(self.sections)
            symbols: list[ElfSymbol] = [*self._symbols_of(self.sections[section.link])] if linked else []
            for offset, info, addend in RELA.iter_unpack(section.data[: len(section.data) // RELA.size * RELA.size]):
                number = info >> 32
                if number and number >= len(symbols):
                    raise self.error("is damaged", f"a relocation names symbol {number} of {len(symbols)}")
                found.append(Relocation(offset, info & 0xFFFFFFFF, symbols[number] if number else None, addend))
        return tuple(found)
