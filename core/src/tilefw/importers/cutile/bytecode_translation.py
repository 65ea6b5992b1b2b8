"""One kernel's operations, in order, to tile IR: which numbers stand for which values, and what an operation is given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr
from xdsl.ir import Block, SSAValue

import tilefw.language as tl
from tilefw.api.errors import IRError, KernelError, UnsupportedError
from tilefw.api.signals import from_signal_handler
from tilefw.frontend.builder import Builder
from tilefw.frontend.builtins.registry import Meaning
from tilefw.frontend.combine import CombineBuilder
from tilefw.frontend.values import RuntimeValue, lowered
from tilefw.importers.building_scope import BuildingScope
from tilefw.importers.cutile.array_groups import ArrayGroup
from tilefw.importers.cutile.bytecode_cursor import UNSUPPORTED, BytecodeCursor
from tilefw.importers.cutile.bytecode_tree import BytecodeFile, BytecodeOperation
from tilefw.importers.cutile.bytecode_types import BytecodeType, TileType, TokenType, language_type
from tilefw.importers.cutile.debug_records import SourceLocations
from tilefw.importers.cutile.memory_order import AccessToken, MemoryOrder
from tilefw.tile.dialect.ops import ConstantOp

_OPERATIONS = 1 << 18  # translated at most, those that are repeated counted each time


class BytecodeTranslation(BuildingScope):
    """The state while a kernel is translated. `b` makes the ops; `values` maps numbers of values to what they stand for and `types`
    to their types; `order` knows the memory accesses so far. `entry` is the kernel's own block; what is found of its arguments is
    kept in `divisors` and `groups`. `hollow` is where the `assume` operations begin that say nothing."""

    def __init__(
        self, file: BytecodeFile, cursor: BytecodeCursor, operations: Mapping[str, Meaning], builder: Builder,
        hollow: frozenset[int],
    ) -> None:
        super().__init__(builder)
        self.file = file
        self.cursor = cursor
        self.values: dict[int, Any] = {}
        self.types: dict[int, BytecodeType] = {}
        self.order = MemoryOrder()
        self.entry = builder.block
        self.hollow = hollow
        self.divisors: dict[SSAValue, int] = {}
        self.groups: list[ArrayGroup] = []
        self._operations = operations
        self._locations = SourceLocations(file.locations)
        self._translated = 0

    def operation(self, op: BytecodeOperation) -> None:
        """Make the ops of an operation and bind its results. Raises KernelError with the operation's place in the file."""
        self.counted(op)
        meaning = self._operations.get(op.name)
        if meaning is None:
            raise self.refusal(op, f"the operation {op.name} of Tile IR is not imported")
        self.b.location = self.location(op.location)
        with self.guarded(op.name, op.start):
            self._bind(op, meaning(self, op))

    def counted(self, op: BytecodeOperation) -> None:
        """Raise UnsupportedError (TFW0408) behind the last operation that is translated."""
        self._translated += 1
        if self._translated > _OPERATIONS:
            raise self.refusal(op, "the kernel is too large to import")

    @contextmanager
    def guarded(self, name: str, start: int) -> Iterator[None]:
        """Give errors within the place `start`, and make one of what does not fit together there."""
        try:
            yield
        except KernelError as error:
            error.place = error.place or self.cursor.place(start)
            raise
        except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
            if from_signal_handler(error):
                raise
            message = f"the operands, attributes or types do not fit {name}"
            raise self.cursor.malformed(message, start, str(error) or None) from None

    def _bind(self, op: BytecodeOperation, found: Any) -> None:
        results = () if found is None else tuple(found) if isinstance(found, list) else (found,)
        if len(results) != len(op.results):
            raise ValueError(f"there are {len(op.results)} results, not {len(results)}")
        for number, type, value in zip(op.results, op.types, results, strict=True):
            self.bind(number, type, value)

    def bind(self, number: int, type: BytecodeType, value: Any) -> None:
        """Let a number stand for a value of a type."""
        if isinstance(type, TileType):
            if not isinstance(value, RuntimeValue) or value.type != self.type_of(type):
                raise ValueError(f"a value is {value}, and its type is {type}")
        elif isinstance(type, TokenType) != isinstance(value, AccessToken):
            raise ValueError(f"a value of type {type} is none of its kind")
        self.values[number], self.types[number] = value, type

    def type_of(self, type: BytecodeType) -> tl.dtype:
        """The language's type of a tile. Raises UnsupportedError (TFW0408) for elements that it does not have."""
        if not isinstance(type, TileType):
            raise ValueError(f"{type} is no type of tiles")
        found = language_type(type)
        if found is None:
            raise UnsupportedError(f"tiles of {type.element} are not imported", UNSUPPORTED)
        return found

    def value(self, op: BytecodeOperation, name: str) -> Any:
        """What the operand of this name stands for."""
        return self.at(op.operands[name])

    def optional(self, op: BytecodeOperation, name: str) -> Any:
        """The same, None where it is not there."""
        return self.at(op.operands[name]) if name in op.operands else None

    def listed(self, op: BytecodeOperation, name: str = "operands") -> list[Any]:
        """What the operands behind a number stand for."""
        return [self.at(number) for number in op.operands[name]]

    def at(self, number: int) -> Any:
        value = self.values[number]
        return self._in_combine(value) if isinstance(self.b, CombineBuilder) and isinstance(value, RuntimeValue) else value

    def _in_combine(self, value: RuntimeValue) -> RuntimeValue:
        """A value within a combine function, which uses nothing from outside but constants."""
        owner = value.ssa.owner
        if not isinstance(owner, ConstantOp) or owner.parent is self.b.block:
            return value
        return RuntimeValue(self.b.insert(ConstantOp(owner.value, owner.result.type)).results[0], value.type)

    def tile(self, op: BytecodeOperation, name: str) -> RuntimeValue:
        """An operand that is a tile or a scalar."""
        found = self.value(op, name)
        if not isinstance(found, RuntimeValue):
            raise ValueError(f"{name} is no tile")
        return found

    def same(self, op: BytecodeOperation, *names: str) -> list[RuntimeValue]:
        """Operands that are tiles of one type."""
        found = [self.tile(op, name) for name in names]
        if any(value.type != found[0].type for value in found):
            raise ValueError(f"the operands are {', '.join(map(str, found))}")
        return found

    def token(self, op: BytecodeOperation) -> AccessToken | None:
        """The token that an access lies behind."""
        found = self.optional(op, "token")
        if found is not None and not isinstance(found, AccessToken):
            raise ValueError("the token is none")
        return found

    def location(self, number: int) -> LocationAttr:
        """The location of record `number` of the debug section; that of the operation around where there is none."""
        found = self._locations(number)
        return self.b.location if found == UNKNOWN_LOC else found

    def refusal(self, op: BytecodeOperation, message: str, help: str | None = None, note: str | None = None) -> UnsupportedError:
        """The error for what is not imported, at the operation's place."""
        return self.cursor.unsupported(message, op.start, note, help)

    def malformed(self, op: BytecodeOperation, message: str) -> IRError:
        """The error for an operation that is none."""
        return self.cursor.malformed(message, op.start)

    def standing(self, templates: Sequence[Any], ssas: Sequence[SSAValue]) -> list[Any]:
        """Values like the templates whose run-time parts are `ssas`; tokens have none."""
        parts = iter(ssas)
        return [RuntimeValue(next(parts), value.type) if isinstance(value, RuntimeValue) else value for value in templates]

    def parts(self, values: Sequence[Any]) -> list[SSAValue]:
        """The run-time parts of values. Raises ValueError for a view, which no loop and no branch carries."""
        if any(not isinstance(value, RuntimeValue | AccessToken) for value in values):
            raise ValueError("a view is carried")
        return [value.ssa for value in values if isinstance(value, RuntimeValue)]

    def block_for(self, types: Sequence[tl.dtype]) -> Block:
        """A block with arguments of these types."""
        return Block(arg_types=[lowered(type) for type in types])
