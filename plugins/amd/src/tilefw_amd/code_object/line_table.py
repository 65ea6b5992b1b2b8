"""The source line of each instruction, from the line number programs of `.debug_line` (DWARF 2 to 5, "Line Number Information").

Debug information is an extra: reading stops where it is damaged, and what was read until there is kept.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from dataclasses import dataclass

from tilefw.api import Place
from tilefw_amd.code_object.elf import Elf

MAX_ROWS = 1 << 20

_EXTENDED, _COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _SET_COLUMN, _CONST_ADD_PC, _FIXED_ADVANCE_PC = 0, 1, 2, 3, 4, 5, 8, 9
_END_SEQUENCE, _SET_ADDRESS = 1, 2
# Forms of a version 5 file entry: how many bytes, or how it is coded.
_FORM_STRING, _FORM_STRP, _FORM_LINE_STRP, _FORM_UDATA, _FORM_DATA16 = 0x08, 0x0E, 0x1F, 0x0F, 0x1E
_FORM_BYTES = {0x0B: 1, 0x05: 2, 0x06: 4, 0x07: 8, _FORM_DATA16: 16}
_CONTENT_PATH, _CONTENT_DIRECTORY = 1, 2


@dataclass(frozen=True, slots=True)
class LineRow:
    """From `address` on, code belongs to this place; `line` 0: to none."""

    address: int
    file: str
    line: int
    column: int


class LineTable:
    """Rows of all sequences by address."""

    def __init__(self, rows: list[LineRow]) -> None:
        self.rows = sorted(rows, key=lambda row: row.address)
        self._addresses = [row.address for row in self.rows]

    def place(self, address: int) -> Place | None:
        """Where the code at an address of the image comes from."""
        found = bisect.bisect_right(self._addresses, address) - 1
        if found < 0 or not self.rows[found].line:
            return None
        row = self.rows[found]
        return Place(row.file, row.line, row.column)


class _DamagedError(Exception):
    """The section ends, or says what cannot be, in the middle of something."""


class _ByteReader:
    """A cursor over bytes that never passes their end."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def take(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self.data):
            raise _DamagedError
        self.at += size
        return self.data[self.at - size : self.at]

    def unsigned(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def uleb(self) -> int:
        value = shift = 0
        while True:
            byte = self.unsigned(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
            if shift > 63:
                raise _DamagedError

    def sleb(self) -> int:
        start = self.at
        value = self.uleb()
        bits = 7 * (self.at - start)
        return value - (1 << bits) if value >> (bits - 1) else value

    def string(self) -> str:
        end = self.data.find(b"\0", self.at)
        if end < 0:
            raise _DamagedError
        text = self.data[self.at : end].decode("utf-8", "replace")
        self.at = end + 1
        return text


@dataclass(frozen=True, slots=True)
class _Unit:
    """One line number program with what its header says; `files` by number."""

    program: bytes
    minimum_length: int
    line_base: int
    line_range: int
    opcode_base: int
    argument_counts: tuple[int, ...]
    files: tuple[str, ...]


def read(elf: Elf) -> LineTable:
    """The table of a file; an empty one where it has no debug information."""
    section = elf.section(".debug_line")
    rows: list[LineRow] = []
    if section is None:
        return LineTable(rows)
    strings = {form: _section(elf, name) for form, name in ((_FORM_STRP, ".debug_str"), (_FORM_LINE_STRP, ".debug_line_str"))}
    reader = _ByteReader(section.data)
    try:
        while reader.at < len(reader.data):
            length = reader.unsigned(4)
            for row in _rows(_unit(_ByteReader(reader.take(length)), strings)):
                rows.append(row)
                if len(rows) >= MAX_ROWS:
                    return LineTable(rows)
    except _DamagedError:
        pass
    return LineTable(rows)


def _section(elf: Elf, name: str) -> bytes:
    found = elf.section(name)
    return b"" if found is None else found.data


def _unit(reader: _ByteReader, strings: dict[int, bytes]) -> _Unit:
    version = reader.unsigned(2)
    if not 2 <= version <= 5:
        raise _DamagedError
    if version == 5:
        reader.take(2)  # sizes of an address and of a segment selector
    header = reader.unsigned(4)
    program = reader.at + header
    minimum_length = reader.unsigned(1)
    reader.take(2 if version >= 4 else 1)  # operations an instruction, whether rows are statements at first
    line_base = int.from_bytes(reader.take(1), "little", signed=True)
    line_range, opcode_base = reader.unsigned(1), reader.unsigned(1)
    if not line_range or not opcode_base:
        raise _DamagedError
    counts = tuple(reader.take(opcode_base - 1))
    files = _files_of_5(reader, strings) if version == 5 else _files_of_4(reader)
    return _Unit(reader.data[program:], minimum_length, line_base, line_range, opcode_base, counts, files)


def _files_of_4(reader: _ByteReader) -> tuple[str, ...]:
    """Numbered from 1; directory 0 is the compilation's own, which only `.debug_info` names."""
    directories, files = [""], [""]
    while name := reader.string():
        directories.append(name)
    while name := reader.string():
        directory = reader.uleb()
        for _ in ("time", "length"):
            reader.uleb()
        files.append(_joined(directories, directory, name))
    return tuple(files)


def _files_of_5(reader: _ByteReader, strings: dict[int, bytes]) -> tuple[str, ...]:
    """Numbered from 0."""
    directories = [str(entry.get(_CONTENT_PATH, "")) for entry in _entries(reader, strings)]
    return tuple(
        _joined(directories, int(entry.get(_CONTENT_DIRECTORY, 0)), str(entry.get(_CONTENT_PATH, "")))
        for entry in _entries(reader, strings)
    )


def _joined(directories: list[str], directory: int, name: str) -> str:
    folder = directories[directory] if directory < len(directories) else ""
    return name if name.startswith("/") or not folder else f"{folder}/{name}"


def _entries(reader: _ByteReader, strings: dict[int, bytes]) -> list[dict[int, int | str]]:
    forms = [(reader.uleb(), reader.uleb()) for _ in range(reader.unsigned(1))]
    count = reader.uleb()
    if count > len(reader.data):
        raise _DamagedError
    return [{content: _value(reader, form, strings) for content, form in forms} for _ in range(count)]


def _value(reader: _ByteReader, form: int, strings: dict[int, bytes]) -> int | str:
    if form == _FORM_STRING:
        return reader.string()
    if form in strings:
        return _ByteReader(strings[form], reader.unsigned(4)).string()
    if form == _FORM_UDATA:
        return reader.uleb()
    if form not in _FORM_BYTES:
        raise _DamagedError
    return reader.unsigned(_FORM_BYTES[form])


def _rows(unit: _Unit) -> Iterator[LineRow]:
    """Runs the program: each row it makes, and an empty one at the end of each sequence."""
    reader = _ByteReader(unit.program)
    address, file, line, column = 0, 1, 1, 0
    while reader.at < len(reader.data):
        opcode = reader.unsigned(1)
        if opcode >= unit.opcode_base:
            advance, step = divmod(opcode - unit.opcode_base, unit.line_range)
            address += advance * unit.minimum_length
            line += unit.line_base + step
            yield _row(unit, address, file, line, column)
        elif opcode == _EXTENDED:
            body = _ByteReader(reader.take(reader.uleb()))
            kind = body.unsigned(1)
            if kind == _END_SEQUENCE:
                yield LineRow(address, "", 0, 0)
                address, file, line, column = 0, 1, 1, 0
            elif kind == _SET_ADDRESS:
                address = body.unsigned(len(body.data) - 1)
        elif opcode == _COPY:
            yield _row(unit, address, file, line, column)
        elif opcode == _ADVANCE_PC:
            address += reader.uleb() * unit.minimum_length
        elif opcode == _ADVANCE_LINE:
            line += reader.sleb()
        elif opcode == _SET_FILE:
            file = reader.uleb()
        elif opcode == _SET_COLUMN:
            column = reader.uleb()
        elif opcode == _CONST_ADD_PC:
            address += (255 - unit.opcode_base) // unit.line_range * unit.minimum_length
        elif opcode == _FIXED_ADVANCE_PC:
            address += reader.unsigned(2)
        else:
            for _ in range(unit.argument_counts[opcode - 1]):
                reader.uleb()


def _row(unit: _Unit, address: int, file: int, line: int, column: int) -> LineRow:
    return LineRow(address, unit.files[file] if file < len(unit.files) else "", max(0, line), column)
