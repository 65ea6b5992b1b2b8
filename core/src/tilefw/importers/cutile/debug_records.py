"""The debug section: which source line each operation is of, through calls that were inlined."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from xdsl.dialects.builtin import UNKNOWN_LOC, CallSiteLoc, FileLineColLoc, IntAttr, LocationAttr, StringAttr

from tilefw.importers.cutile.bytecode_cursor import BytecodeCursor
from tilefw.importers.cutile.bytecode_tree import DebugRecord

# A record by its tag: its kind, and its fields in order; `'` marks a text.
_RECORDS: Mapping[int, tuple[str, tuple[str, ...]]] = MappingProxyType({
    0x00: ("unknown", ()), 0x01: ("compile_unit", ("file",)), 0x02: ("file", ("name'", "directory'")),
    0x03: ("lexical_block", ("scope", "file", "line", "column")), 0x04: ("line", ("scope", "file'", "line", "column")),
    0x05: ("subprogram", ("file", "line", "name'", "linkage_name'", "compile_unit", "scope_line")),
    0x06: ("call_site", ("callee", "caller")),
})
_DEPTH = 200  # call sites within call sites


def read_debug(cursor: BytecodeCursor, strings: Sequence[str]) -> tuple[list[list[int]], list[DebugRecord]]:
    """The records' numbers of each function's operations (0 for none; the function's own comes first), and the records."""
    functions = cursor.count("functions with locations", 4)
    cursor.align(4)
    begins = struct.unpack(f"<{functions}I", cursor.take(4 * functions, "the offsets of locations"))
    start, total = cursor.at, cursor.count("locations", 8)
    cursor.align(8)
    numbers = struct.unpack(f"<{total}Q", cursor.take(8 * total, "locations"))
    ends = [*begins[1:], total]
    if any(begin > end for begin, end in zip(begins, ends, strict=False)):
        raise cursor.malformed("the locations of a function do not lie behind those of the one before", start)
    records = cursor.table("debug records", 4, lambda record: _record(record, strings))
    if any(number > len(records) for number in numbers):
        raise cursor.malformed(f"a location is number {max(numbers)} of {len(records)}", start)
    return [list(numbers[begin:end]) for begin, end in zip(begins, ends, strict=False)], records


def _record(cursor: BytecodeCursor, strings: Sequence[str]) -> DebugRecord:
    start, tag = cursor.at, cursor.byte("a debug record")
    if tag not in _RECORDS:
        raise cursor.unsupported(f"the debug record 0x{tag:02x} of Tile IR is not known", start)
    kind, names = _RECORDS[tag]
    fields: dict[str, int | str] = {}
    for name in names:
        text = name.endswith("'")
        fields[name.rstrip("'")] = strings[cursor.index("a string", len(strings))] if text else cursor.varint(name)
    cursor.finish("a debug record")
    return DebugRecord(kind, fields)


def operation_locations(cursor: BytecodeCursor, listed: Sequence[Sequence[int]]) -> Sequence[int]:
    """The locations that a function names, by its number from 1 in the debug section; empty where there is none."""
    number = cursor.varint("the locations of a function")
    if listed and not 1 <= number <= len(listed):
        raise cursor.malformed(f"a function has locations number {number} of {len(listed)}")
    return listed[number - 1] if listed else ()


class SourceLocations:
    """Locations of ops by the records' numbers, each made once. What is in no file, or goes in circles, is unknown."""

    def __init__(self, records: Sequence[DebugRecord]) -> None:
        self._records = records
        self._known: dict[int, LocationAttr] = {0: UNKNOWN_LOC}

    def __call__(self, number: int, depth: int = 0) -> LocationAttr:
        """The location of record `number`, from 1; 0 stands for none."""
        if number not in self._known:
            inside = depth < _DEPTH and number <= len(self._records)
            self._known[number] = self._make(self._records[number - 1], depth + 1) if inside else UNKNOWN_LOC
        return self._known[number]

    def _make(self, record: DebugRecord, depth: int) -> LocationAttr:
        if record.kind == "line":
            fields = record.fields
            line, column = int(fields["line"]), int(fields["column"])
            return FileLineColLoc(StringAttr(os.path.normpath(str(fields["file"]))), IntAttr(line), IntAttr(column + 1))
        if record.kind == "call_site":
            callee, caller = (self(int(record.fields[side]), depth) for side in ("callee", "caller"))
            return callee if UNKNOWN_LOC in (callee, caller) else CallSiteLoc(callee, caller)
        return UNKNOWN_LOC
