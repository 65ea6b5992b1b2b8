"""Bytecode as it was read: a file's tables and functions, operations with numbers of values, before anything has a meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tilefw.importers.cutile.bytecode_types import BytecodeType, FunctionSignature
from tilefw.importers.cutile.opcodes import Version


@dataclass(frozen=True, slots=True)
class BytecodeOperation:
    """One operation, which begins at byte `start`. Operands are numbers of values, or tuples of such, by their names in the table
    of operations; one that is not there is left out, as is such an attribute."""

    name: str
    start: int
    location: int
    results: tuple[int, ...] = ()
    types: tuple[BytecodeType, ...] = ()
    flags: frozenset[str] = frozenset()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    operands: Mapping[str, Any] = field(default_factory=dict)
    regions: tuple[BytecodeBlock, ...] = ()


@dataclass(frozen=True, slots=True)
class BytecodeBlock:
    """Operations in order, with the numbers and types of the block's arguments."""

    arguments: tuple[int, ...]
    types: tuple[BytecodeType, ...]
    operations: tuple[BytecodeOperation, ...]


@dataclass(frozen=True, slots=True)
class BytecodeFunction:
    """A function that begins at byte `start`; an entry is a kernel."""

    name: str
    entry: bool
    signature: FunctionSignature
    body: BytecodeBlock
    start: int
    location: int


@dataclass(frozen=True, slots=True)
class BytecodeFile:
    """A whole file. `constants` are bytes of elements; locations are records of the debug section, by number from 1."""

    version: Version
    functions: tuple[BytecodeFunction, ...]
    constants: tuple[bytes, ...]
    locations: tuple[DebugRecord, ...]


@dataclass(frozen=True, slots=True)
class DebugRecord:
    """One record of the debug section: what it is, and its numbers and texts by name."""

    kind: str
    fields: Mapping[str, int | str]
