"""The text of a random program as it is written: lines, names, values in scopes, regions."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tilefw.api.dtypes import dtype

Shape = tuple[int, ...]


@dataclass(slots=True)
class ProgramValue:
    """An SSA value: its element type and shape (`()` for a scalar); `used` once something reads it.

    A `partial` tile comes from a masked load that says nothing of the elements left out: those stay out of what moves or
    combines elements, and the mask of the shape's own store leaves them out again.
    """

    name: str
    element: str
    shape: Shape = ()
    used: bool = False
    partial: bool = False

    @property
    def type(self) -> str:
        """The type's text."""
        return type_of(self.element, self.shape)


@dataclass(slots=True)
class ProgramScope:
    """The values that may be used here, by place of definition: a region sees those outside of it."""

    values: list[ProgramValue] = field(default_factory=list)
    outer: ProgramScope | None = None

    def visible(self) -> Iterator[ProgramValue]:
        """Values of this scope and of those around it."""
        yield from self.values
        if self.outer is not None:
            yield from self.outer.visible()


def tile(element: str, shape: Sequence[int]) -> str:
    """`tensor<…>` of an element type's text; the element itself for no shape."""
    return f"tensor<{'x'.join(map(str, shape))}x{element}>" if shape else element


def type_of(element: str, shape: Sequence[int]) -> str:
    """The type's text of elements of the dtype called `element`."""
    return tile(dtype(element).ir, shape)


class ProgramText:
    """Lines of one function, an operation each; SSA names count up."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.depth = 2
        self.counter = 0
        self.scope = ProgramScope()

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append("  " * self.depth + text)

    def name(self) -> str:
        """A new SSA name."""
        self.counter += 1
        return f"%v{self.counter}"

    def define(self, element: str, shape: Shape, operation: str, *operands: ProgramValue, hidden: bool = False) -> ProgramValue:
        """A new value by an operation on `operands`; a `hidden` one is not there for others to use."""
        value = ProgramValue(self.name(), element, shape, partial=any(operand.partial for operand in operands))
        self.line(f"{value.name} = {operation}")
        for operand in operands:
            operand.used = True
        if not hidden:
            self.scope.values.append(value)
        return value

    def constant(self, value: int | float, element: str, shape: Shape = ()) -> ProgramValue:
        """A constant that only its maker uses."""
        return self.define(element, shape, f"tile.constant {value!r} : {type_of(element, shape)}", hidden=True)

    @contextmanager
    def region(self, *values: ProgramValue) -> Iterator[None]:
        """A nested block in which `values` are there too."""
        self.scope = ProgramScope(list(values), self.scope)
        self.depth += 1
        yield
        self.depth -= 1
        assert self.scope.outer is not None
        self.scope = self.scope.outer
