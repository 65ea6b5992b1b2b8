"""A line number program, written: the `.debug_line` of code whose lines are known (DWARF 4, "Line Number Information").

`line_table` reads what stands here. One unit, one sequence for each section, no opcode but the plain ones.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import groupby

from tilefw_amd.code_object.line_table import LineRow

_VERSION, _INSTRUCTION_BYTES, _LINE_BASE, _LINE_RANGE = 4, 4, -5, 14
# Arguments of the standard opcodes 1 to 12.
_ARGUMENTS = bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1])
_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _SET_COLUMN = 1, 2, 3, 4, 5
_END_SEQUENCE, _SET_ADDRESS = b"\0\1\1", b"\0\11\2"


def encode(sequences: Iterable[tuple[int, Sequence[LineRow]]]) -> bytes:
    """The section of sequences, each (address behind its last instruction, rows in order of their addresses). How long it is
    depends on the distances between the rows, not on where the code stands."""
    kept = [(end, rows) for end, rows in sequences if rows]
    files = list(dict.fromkeys(row.file for _, rows in kept for row in rows))
    numbers = {name: number for number, name in enumerate(files, 1)}
    program = b"".join(_sequence(end, rows, numbers) for end, rows in kept)
    names = b"\0" + b"".join(name.encode() + b"\0\0\0\0" for name in files) + b"\0"
    header = struct.pack("<BBBbBB", _INSTRUCTION_BYTES, 1, 1, _LINE_BASE, _LINE_RANGE, len(_ARGUMENTS) + 1) + _ARGUMENTS + names
    body = struct.pack("<HI", _VERSION, len(header)) + header + program
    return struct.pack("<I", len(body)) + body


def _sequence(end: int, rows: Sequence[LineRow], files: dict[str, int]) -> bytes:
    out = bytearray(_SET_ADDRESS + struct.pack("<Q", rows[0].address))
    address, file, line, column = rows[0].address, 1, 1, 0
    # Of rows at one address the last holds.
    for _, same in groupby(rows, key=lambda row: row.address):
        *_, row = same
        if row.address != address:
            out += bytes([_ADVANCE_PC]) + _uleb((row.address - address) // _INSTRUCTION_BYTES)
        if files[row.file] != file:
            out += bytes([_SET_FILE]) + _uleb(files[row.file])
        if row.column != column:
            out += bytes([_SET_COLUMN]) + _uleb(row.column)
        if row.line != line:
            out += bytes([_ADVANCE_LINE]) + _sleb(row.line - line)
        out.append(_COPY)
        address, file, line, column = row.address, files[row.file], row.line, row.column
    return bytes(out) + bytes([_ADVANCE_PC]) + _uleb((end - address) // _INSTRUCTION_BYTES) + _END_SEQUENCE


def _uleb(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _sleb(value: int) -> bytes:
    out = bytearray()
    while not -0x40 <= value < 0x40:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value & 0x7F)
    return bytes(out)
