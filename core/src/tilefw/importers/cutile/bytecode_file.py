"""A file of bytecode: its header, its sections, their tables; the functions with their operations."""

from __future__ import annotations

from collections.abc import Sequence

from tilefw.importers.cutile.bytecode_cursor import MAGIC, BytecodeCursor
from tilefw.importers.cutile.bytecode_tree import BytecodeFile, BytecodeFunction
from tilefw.importers.cutile.bytecode_types import FunctionSignature, read_types
from tilefw.importers.cutile.debug_records import operation_locations, read_debug
from tilefw.importers.cutile.instructions import Instructions
from tilefw.importers.cutile.opcodes import Version
from tilefw.importers.cutile.tagged_attributes import AttributeReader

VERSIONS: tuple[Version, ...] = ((13, 1), (13, 2), (13, 3), (13, 4))  # that cuTile Python 1.7.0 writes for its users

_END, _STRINGS, _FUNCTIONS, _DEBUG, _CONSTANTS, _TYPES, _GLOBALS = range(7)
_SECTIONS = ("end", "string", "function", "debug", "constant", "type", "global")
_LARGEST_ALIGNMENT = 1 << 12
_PREVIEW = 1  # the bit of the version's tag that says that operations of no released version are there
_ENTRY, _HINTS = 0x02, 0x04


def read_file(data: bytes, name: str) -> BytecodeFile:
    """All of a file. Raises IRError (TFW0407) for bytes that are malformed, UnsupportedError (TFW0408) for versions and operations
    that are not known."""
    cursor = BytecodeCursor(data, name)
    version = _header(cursor)
    sections = _sections(cursor)
    strings = _strings(_section(cursor, sections, _STRINGS))
    types = read_types(_section(cursor, sections, _TYPES), version)
    constants = _section(cursor, sections, _CONSTANTS).table("constants", 8, _constant)
    if _GLOBALS in sections:
        raise cursor.unsupported("global variables of Tile IR are not imported", sections[_GLOBALS].at)
    debug = read_debug(sections[_DEBUG], strings) if _DEBUG in sections else ([], [])
    reader = _FunctionReader(version, strings, types, len(constants), debug[0])
    functions = reader.read(_section(cursor, sections, _FUNCTIONS))
    return BytecodeFile(version, functions, tuple(constants), tuple(debug[1]))


def _header(cursor: BytecodeCursor) -> Version:
    if cursor.take(min(len(MAGIC), cursor.left), "the magic number") != MAGIC:
        raise cursor.malformed("the file does not begin with 7f 'TileIR' 00", 0)
    version = (cursor.byte("the version"), cursor.byte("the version"))
    tag = int.from_bytes(cursor.take(2, "the version"), "little")
    served = ", ".join(f"{major}.{minor}" for major, minor in VERSIONS)
    if version not in VERSIONS or tag & ~_PREVIEW:
        spelled = f"{version[0]}.{version[1]}" + (f".{tag}" if tag else "")
        raise cursor.unsupported(
            f"version {spelled} of Tile IR bytecode is not imported", 8, f"the versions are {served}",
            "give `export_kernel` one of them as `bytecode_version`",
        )
    if tag & _PREVIEW:
        raise cursor.unsupported("bytecode with preview features is not imported", 10)
    return version


def _sections(cursor: BytecodeCursor) -> dict[int, BytecodeCursor]:
    """A cursor over each section, by its number."""
    found: dict[int, BytecodeCursor] = {}
    while True:
        start = cursor.at
        head = cursor.byte("a section")
        number, aligned = head & 0x7F, head & 0x80
        if number == _END:
            cursor.finish("the end of the bytecode")
            return found
        if number >= len(_SECTIONS):
            raise cursor.unsupported(f"section {number} of Tile IR bytecode is not known", start)
        if number in found:
            raise cursor.malformed(f"there is a second {_SECTIONS[number]} section", start)
        length = cursor.varint("the length of a section")
        if aligned:
            at, alignment = cursor.at, cursor.varint("the alignment of a section")
            if not 0 < alignment <= _LARGEST_ALIGNMENT or alignment & (alignment - 1):
                raise cursor.malformed(f"the alignment of a section is {alignment}", at)
            cursor.align(alignment)
        found[number] = cursor.within(length, f"the {_SECTIONS[number]} section")


def _section(cursor: BytecodeCursor, sections: dict[int, BytecodeCursor], number: int) -> BytecodeCursor:
    if number not in sections:
        raise cursor.malformed(f"there is no {_SECTIONS[number]} section")
    return sections[number]


def _strings(cursor: BytecodeCursor) -> list[str]:
    def item(record: BytecodeCursor) -> str:
        try:
            return record.take(record.left, "a string").decode()
        except UnicodeDecodeError:
            raise record.malformed("a string is not UTF-8", record.at) from None

    return cursor.table("strings", 4, item)


def _constant(record: BytecodeCursor) -> bytes:
    found = record.take(record.count("bytes of a constant"), "a constant")
    record.finish("a constant")
    return found


class _FunctionReader:
    """Reads the function section by the tables of the others."""

    def __init__(
        self, version: Version, strings: Sequence[str], types: Sequence[object], constants: int, locations: Sequence[Sequence[int]],
    ) -> None:
        self._version, self._strings, self._types, self._constants = version, strings, types, constants
        self._locations = locations

    def read(self, cursor: BytecodeCursor) -> tuple[BytecodeFunction, ...]:
        found = tuple(self._function(cursor) for _ in range(cursor.count("functions")))
        cursor.finish("the functions")
        return found

    def _function(self, cursor: BytecodeCursor) -> BytecodeFunction:
        start = cursor.at
        name = self._strings[cursor.index("a name", len(self._strings))]
        signature = self._types[cursor.index("a type", len(self._types))]
        if not isinstance(signature, FunctionSignature):
            raise cursor.malformed(f"the type of function {name} is none of functions", start)
        flags = cursor.byte("the flags of a function")
        if flags & ~(_ENTRY | _HINTS):
            raise cursor.malformed(f"the flags of function {name} are 0x{flags:02x}", cursor.at - 1)
        locations = operation_locations(cursor, self._locations)
        attributes = AttributeReader(self._strings, self._types)
        if flags & _HINTS:
            attributes.tagged(cursor)  # how many programs share a processor: wishes for another compiler
        body = cursor.within(cursor.varint("the length of a function"), f"function {name}")
        reader = Instructions(body, self._version, attributes, self._constants, locations)
        block = reader.body(signature.parameters)
        return BytecodeFunction(name, bool(flags & _ENTRY), signature, block, start, reader.first_location)
