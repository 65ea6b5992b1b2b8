"""The line table of an object file: which line of the kernel's source an instruction is of.

DWARF version 4, section 6.2, as LLVM writes it for little-endian 64-bit ELF; the object is not linked, so that addresses come from
its relocations.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from tilefw.api import Place

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    data: bytes


class ObjectLines:
    """Rows of (offset in `.text`, file, line, column), in order; a row holds until the next one."""

    def __init__(self, binary: bytes) -> None:
        self._sections = _sections(binary)
        self.symbols = dict(self._symbols())
        self._rows = sorted(self._read(), key=lambda row: row[0])

    def place(self, offset: int) -> Place | None:
        """Where the instruction at an offset of `.text` comes from."""
        before = [row for row in self._rows if row[0] <= offset]
        if not before or not before[-1][2]:
            return None
        _, file, line, column = before[-1]
        return Place(file, line, column)

    def _named(self, name: str) -> bytes:
        return next((section.data for section in self._sections if section.name == name), b"")

    def _symbols(self) -> Iterator[tuple[str, int]]:
        names = self._named(".strtab")
        for name, _, _, _, value, _ in _SYMBOL.iter_unpack(self._named(".symtab")):
            yield _string(names, name), value

    def _addresses(self) -> dict[int, int]:
        """By position in `.debug_line`, the addresses that are filled in there."""
        table = list(_SYMBOL.iter_unpack(self._named(".symtab")))
        return {
            at: table[info >> 32][4] + addend for at, info, addend in _RELOCATION.iter_unpack(self._named(".rela.debug_line"))
        }

    def _read(self) -> Iterator[tuple[int, str, int, int]]:
        data, addresses, at = self._named(".debug_line"), self._addresses(), 0
        while at < len(data):
            reader = _Reader(data, at)
            end = reader.number(4) + reader.at
            yield from _unit(reader, end, addresses)
            at = end


class _Reader:
    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at

    def number(self, size: int) -> int:
        self.at += size
        return int.from_bytes(self.data[self.at - size : self.at], "little")

    def string(self) -> str:
        text = _string(self.data, self.at)
        self.at = self.data.index(b"\0", self.at) + 1
        return text

    def leb(self, signed: bool = False) -> int:
        value = shift = 0
        while True:
            byte = self.number(1)
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value - (1 << shift) if signed and byte & 64 else value


def _unit(reader: _Reader, end: int, addresses: dict[int, int]) -> Iterator[tuple[int, str, int, int]]:
    """The rows of one unit's program."""
    version = reader.number(2)
    if version != 4:
        return
    program = reader.number(4) + reader.at
    step, _, _ = reader.number(1), reader.number(1), reader.number(1)
    base = int.from_bytes(bytes([reader.number(1)]), "little", signed=True)
    span, first = reader.number(1), reader.number(1)
    operands = [reader.number(1) for _ in range(first - 1)]
    files = list(_files(reader))
    reader.at = program
    address, file, line, column = 0, 1, 1, 0
    while reader.at < end:
        code = reader.number(1)
        if code >= first:
            address += (code - first) // span * step
            line += base + (code - first) % span
            yield address, files[file - 1], line, column
        elif code == 0:
            size = reader.leb()
            following, code = reader.at + size, reader.number(1)
            if code == 2:  # DW_LNE_set_address
                address = addresses.get(reader.at, 0)
            elif code == 1:  # DW_LNE_end_sequence
                yield address, "", 0, 0
                address, file, line, column = 0, 1, 1, 0
            reader.at = following
        elif code == 1:  # DW_LNS_copy
            yield address, files[file - 1], line, column
        elif code == 2:  # DW_LNS_advance_pc
            address += reader.leb() * step
        elif code == 3:  # DW_LNS_advance_line
            line += reader.leb(signed=True)
        elif code == 4:  # DW_LNS_set_file
            file = reader.leb()
        elif code == 5:  # DW_LNS_set_column
            column = reader.leb()
        elif code == 8:  # DW_LNS_const_add_pc
            address += (255 - first) // span * step
        elif code == 9:  # DW_LNS_fixed_advance_pc
            address += reader.number(2)
        else:
            for _ in range(operands[code - 1]):
                reader.leb()


def _files(reader: _Reader) -> Iterator[str]:
    folders = [""]
    while folder := reader.string():
        folders.append(folder)
    while name := reader.string():
        folder = folders[reader.leb()]
        for _ in ("its time", "its size"):
            reader.leb()
        yield f"{folder}/{name}" if folder else name


def _sections(binary: bytes) -> list[_Section]:
    (offset,) = struct.unpack_from("<Q", binary, 40)
    count, names_at = struct.unpack_from("<HH", binary, 60)
    headers = [_SECTION.unpack_from(binary, offset + n * _SECTION.size) for n in range(count)]
    names = binary[headers[names_at][4] :]
    return [_Section(_string(names, h[0]), b"" if h[1] == 8 else binary[h[4] : h[4] + h[5]]) for h in headers]


def _string(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode(errors="replace")
