"""One kernel's statements, one after the other, to tile IR: which names stand for which values, and what an operation is given."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from xdsl.dialects.builtin import UNKNOWN_LOC, CallSiteLoc, LocationAttr
from xdsl.ir import Block, SSAValue

import tilefw.language as tl
from tilefw.api.errors import IRError, KernelError, UnsupportedError
from tilefw.api.signals import from_signal_handler
from tilefw.frontend.builder import Builder, name_value
from tilefw.frontend.builtins.registry import Meaning
from tilefw.frontend.combine import CombineBuilder
from tilefw.frontend.values import RuntimeValue, flatten, rebuild
from tilefw.importers.building_scope import BuildingScope
from tilefw.importers.triton_ir.locations import Locations
from tilefw.importers.triton_ir.scanner import Scanner
from tilefw.importers.triton_ir.tree import TextFunction, TextModule, TextOperation
from tilefw.importers.triton_ir.types import CODE, type_of
from tilefw.tile.dialect.ops import ConstantOp

_INTEGER = re.compile(r"-?\d+")
_STATEMENTS = 1 << 18  # translated at most, calls inlined
_DEPTH = 64  # of calls within one another
_HINTS = {"tt.divisibility": "tile.divisible", "tt.contiguity": "tile.contiguous", "tt.constancy": "tile.constant"}


class Translation(BuildingScope):
    """The state while a kernel is translated. `b` makes the ops; `values` maps names of Triton IR to what they stand for, and
    `operations` names of operations to their meanings."""

    def __init__(self, text: Scanner, module: TextModule, operations: Mapping[str, Meaning], builder: Builder) -> None:
        super().__init__(builder)
        self.text = text
        self._operations = operations
        self.functions: Mapping[str, TextFunction] = module.functions
        self.values: dict[str, Any] = {}
        self._locations = Locations(module.locations)
        self._caller: LocationAttr | None = None
        self._depth = 0
        self._translated = 0

    def statement(self, statement: TextOperation) -> None:
        """Make the ops of a statement and bind its results. Raises KernelError with the statement's place in the text."""
        self._translated += 1
        if self._translated > _STATEMENTS:
            raise self.refusal(statement, "the kernel is too large to import")
        meaning = self._operations.get(statement.name)
        if meaning is None:
            raise self.refusal(statement, f"the operation {statement.name} of Triton IR is not imported")
        self.b.location = self.location(statement.location, statement.start)
        try:
            self._bind(statement, meaning(self, statement))
        except KernelError as error:
            error.place = error.place or self.text.place(statement.start)
            raise
        except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
            if from_signal_handler(error):
                raise
            message = f"malformed Triton IR: the operands, attributes or types do not fit {statement.name}"
            raise IRError(message, "TFW0401", self.text.place(statement.start), note=str(error) or None) from None

    def _bind(self, statement: TextOperation, found: Any) -> None:
        results = () if found is None else tuple(found) if isinstance(found, list) else (found,)
        if len(results) != len(statement.results):
            raise ValueError(f"{len(statement.results)} results are named, and there are {len(results)}")
        for value, text in zip(results, statement.result_types, strict=False):
            if isinstance(value, RuntimeValue) and value.type != type_of(text):
                raise ValueError(f"the result is {value}, and the text says {text}")
        for name, value in zip(statement.results, results, strict=True):
            self.bind(name, value)
            for attribute, hint in _HINTS.items():
                if attribute in statement.attributes:
                    self.b.hint(value, hint, _spread(self.integers(statement, attribute), value))

    def bind(self, name: str, value: Any) -> None:
        """Let a name stand for a value, and a value of tile IR have the name."""
        self.values[name] = value
        if isinstance(value, RuntimeValue) and not name[1].isdigit():
            name_value(value.ssa, re.sub(r"\W", "_", name[1:]))

    def value(self, name: str) -> Any:
        """What a name stands for. Raises IRError (TFW0401) where it stands for nothing."""
        if name not in self.values:
            raise IRError(f"malformed Triton IR: the value {name} is not defined", "TFW0401")
        value = self.values[name]
        if isinstance(self.b, CombineBuilder) and isinstance(value, RuntimeValue):
            return self._in_combine(value)
        return value

    def _in_combine(self, value: RuntimeValue) -> RuntimeValue:
        """A value within a combine function, which uses nothing from outside: Triton moves its constants out."""
        owner = value.ssa.owner
        if not isinstance(owner, ConstantOp) or owner.parent is self.b.block:
            return value
        return RuntimeValue(self.b.insert(ConstantOp(owner.value, owner.result.type)).results[0], value.type)

    def operands(self, statement: TextOperation) -> list[Any]:
        """What the operands stand for, in order."""
        return [self.value(name) for name in statement.operands]

    def result_type(self, statement: TextOperation) -> tl.dtype:
        """The type behind the arrow, or the last one of a statement without an arrow."""
        return type_of((statement.result_types or statement.types)[-1])

    def integers(self, statement: TextOperation, attribute: str) -> tuple[int, ...]:
        """The integers of an attribute: `1 : i32`, `array<i32: 1, 0>`, `dense<16> : tensor<1xi32>`."""
        text = statement.attributes[attribute]
        head, _, rest = text.partition("<")
        inside = rest.partition(">")[0].partition(":") if rest else ("", "", text.partition(":")[0])
        listed = inside[2] if inside[1] or not rest else inside[0]
        return tuple(int(number) for number in _INTEGER.findall(listed)) if head or not rest else ()

    def integer(self, statement: TextOperation, attribute: str) -> int:
        """The one integer of an attribute."""
        (found,) = self.integers(statement, attribute)
        return found

    def flag(self, statement: TextOperation, attribute: str, default: bool = False) -> bool:
        """An attribute that is true or false, or there or not."""
        text = statement.attributes.get(attribute)
        return default if text is None else text != "false"

    def location(self, text: str, start: int) -> LocationAttr:
        """The location that a text names, within the calls that are being inlined; the place in the text itself, at `start`, where
        it names none."""
        found = self._locations(text)
        if found == UNKNOWN_LOC:
            found = self.text.own_location(start)
        return found if self._caller is None else CallSiteLoc(found, self._caller)

    def refusal(self, statement: TextOperation, message: str, help: str | None = None, note: str | None = None) -> UnsupportedError:
        """The error for what is not imported, at the statement's place."""
        return UnsupportedError(message, CODE, self.text.place(statement.start), note, help)

    @contextmanager
    def called(self, call: TextOperation) -> Iterator[None]:
        """Names of a function's own, and locations within the call."""
        if self._depth == _DEPTH:
            raise self.refusal(call, "the calls are nested too deeply", help="is there a function that calls itself?")
        outer = self.values, self._caller, self.b.location, self._depth
        self.values, self._caller, self._depth = {}, self.b.location, self._depth + 1
        try:
            yield
        finally:
            self.values, self._caller, self.b.location, self._depth = outer

    def standing(self, templates: Sequence[Any], ssas: Sequence[SSAValue]) -> list[Any]:
        """Values like the templates whose run-time parts are `ssas`."""
        parts = iter(ssas)
        return [rebuild(template, parts) for template in templates]

    def block_for(self, templates: Sequence[Any], *first: SSAValue) -> Block:
        """A block with arguments for `first` and for the run-time parts of the templates."""
        parts = [leaf.ssa for template in templates for leaf in flatten(template)]
        return Block(arg_types=[value.type for value in (*first, *parts)])


def _spread(numbers: tuple[int, ...], value: RuntimeValue) -> tuple[int, ...]:
    """One number an axis: a dense attribute says equal ones once."""
    axes = max(1, len(value.shape))
    return numbers * axes if len(numbers) == 1 else numbers
