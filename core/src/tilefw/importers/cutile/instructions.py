"""The operations of a function, read by the table of operations; values are numbered as they are made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilefw.importers.cutile.bytecode_cursor import BytecodeCursor
from tilefw.importers.cutile.bytecode_tree import BytecodeBlock, BytecodeOperation
from tilefw.importers.cutile.bytecode_types import BytecodeType
from tilefw.importers.cutile.opcodes import ENUMERATIONS, LATER, OPCODES, TERMINATORS, AttributeForm, Opcode, Version
from tilefw.importers.cutile.tagged_attributes import AttributeReader

_DEPTH = 64  # of regions within one another
_ONE_BLOCK = 1  # of a region


class Instructions:
    """Reads one function. The numbers of values within a region are used again behind it."""

    def __init__(
        self, cursor: BytecodeCursor, version: Version, attributes: AttributeReader, constants: int, locations: Sequence[int]
    ) -> None:
        self._cursor, self._version, self._attributes, self._constants = cursor, version, attributes, constants
        self._locations = iter(locations)
        self.first_location = next(self._locations, 0)  # the function's own
        self._next = 0
        self._depth = 0

    def body(self, parameters: tuple[BytecodeType, ...]) -> BytecodeBlock:
        """All operations, to the end of the function."""
        arguments = self._new(len(parameters))
        operations: list[BytecodeOperation] = []
        while self._cursor.left:
            operations.append(self._operation())
        return BytecodeBlock(arguments, parameters, self._ended(operations))

    def _new(self, count: int) -> tuple[int, ...]:
        self._next += count
        return tuple(range(self._next - count, self._next))

    def _ended(self, operations: list[BytecodeOperation]) -> tuple[BytecodeOperation, ...]:
        """The operations of a block, of which the last one and no other ends it."""
        for index, operation in enumerate(operations):
            if (operation.name in TERMINATORS) != (index == len(operations) - 1):
                raise self._cursor.malformed(f"{operation.name} is not where a block ends", operation.start)
        if not operations:
            raise self._cursor.malformed("a block has no operations")
        return tuple(operations)

    def _operation(self) -> BytecodeOperation:
        cursor, start = self._cursor, self._cursor.at
        number, location = cursor.varint("an operation"), next(self._locations, 0)
        opcode = OPCODES.get(number)
        if opcode is None:
            name = LATER.get(number)
            known = f"the operation {name} of Tile IR is not imported" if name else f"there is no operation {number} of Tile IR"
            raise cursor.unsupported(known, start)
        if self._version < opcode.since:
            major, minor = opcode.since
            raise cursor.malformed(f"the operation {opcode.name} is there since version {major}.{minor}", start)
        types = self._types("results") if opcode.results is None else tuple(self._type() for _ in range(opcode.results))
        flags = self._flags(opcode, start)
        attributes = {form.name: self._attribute(form) for form in opcode.attributes if self._written(form, flags)}
        operands = self._operands(opcode, flags)
        regions = self._regions(opcode, start) if opcode.regions else ()
        named = {form.name for form in (*opcode.attributes, *opcode.operands)}
        return BytecodeOperation(
            opcode.name, start, location, self._new(len(types)), types, flags - named, attributes, operands, regions
        )

    def _type(self) -> BytecodeType:
        types: Sequence[Any] = self._attributes.types
        return types[self._cursor.index("a type", len(types))]

    def _types(self, what: str) -> tuple[BytecodeType, ...]:
        return tuple(self._type() for _ in range(self._cursor.count(what)))

    def _flags(self, opcode: Opcode, start: int) -> frozenset[str]:
        if not opcode.flags or self._version < opcode.flags_since:
            return frozenset()
        bits = self._cursor.varint("flags")
        if bits >> len(opcode.flags):
            raise self._cursor.malformed(f"the flags of {opcode.name} are {bits:#x}", start)
        return frozenset(name for index, name in enumerate(opcode.flags) if bits >> index & 1)

    def _written(self, form: AttributeForm, flags: frozenset[str]) -> bool:
        return self._version >= form.since and (not form.optional or form.name in flags)

    def _attribute(self, form: AttributeForm) -> Any:
        cursor, start = self._cursor, self._cursor.at
        if form.kind in ENUMERATIONS:
            words, byte = ENUMERATIONS[form.kind], cursor.byte(form.name)
            if byte >= len(words):
                raise cursor.malformed(f"there is no {form.name} {byte}", start)
            return words[byte]
        match form.kind:
            case "integer":
                return cursor.varint(form.name)
            case "boolean":
                return bool(cursor.byte(form.name))
            case "string":
                return self._attributes.string(cursor)
            case "constant":
                return cursor.index("a constant", self._constants)
            case "int32s":
                return cursor.integers(form.name, "i")
            case "booleans":
                return tuple(bool(flag) for flag in cursor.integers(form.name, "b"))
            case "hints":
                return self._attributes.dictionary(cursor)
            case "tagged_list":
                return self._attributes.listed(cursor)
            case _:
                return self._attributes.tagged(cursor)

    def _operands(self, opcode: Opcode, flags: frozenset[str]) -> dict[str, int | tuple[int, ...]]:
        found: dict[str, int | tuple[int, ...]] = {}
        for form in opcode.operands:
            if form.several:
                found[form.name] = tuple(self._value() for _ in range(self._cursor.count("operands")))
            elif not form.optional or form.name in flags:
                found[form.name] = self._value()
        return found

    def _value(self) -> int:
        return self._cursor.index("a value", self._next)

    def _regions(self, opcode: Opcode, start: int) -> tuple[BytecodeBlock, ...]:
        number = self._cursor.varint("the number of regions")
        if number != opcode.regions:
            raise self._cursor.malformed(f"{opcode.name} has {number} regions, not {opcode.regions}", start)
        if self._depth == _DEPTH:
            raise self._cursor.malformed("regions are nested too deeply", start)
        self._depth += 1
        found = tuple(self._region() for _ in range(number))
        self._depth -= 1
        return found

    def _region(self) -> BytecodeBlock:
        if self._cursor.varint("the number of blocks") != _ONE_BLOCK:
            raise self._cursor.malformed("a region has one block", self._cursor.at - 1)
        outer, types = self._next, self._types("arguments")
        arguments = self._new(len(types))
        operations = [self._operation() for _ in range(self._cursor.count("operations"))]
        self._next = outer
        return BytecodeBlock(arguments, types, self._ended(operations))
