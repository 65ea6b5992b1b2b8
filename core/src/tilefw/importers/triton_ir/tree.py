"""Triton IR as it was read: statements with names, words and texts of types, before anything has a meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TextOperation:
    """One operation. `results` and operands are spelled as uses spell them: `%x`, `%pair#1`.

    `items` are the operands, words, numbers and strings in their order before the types. Types are texts, `result_types` those
    behind an arrow. `location` is the text within `loc(…)`; `start` is where the statement begins.
    """

    name: str
    start: int
    results: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)
    types: tuple[str, ...] = ()
    result_types: tuple[str, ...] = ()
    regions: tuple[tuple[TextBlock, ...], ...] = ()
    location: str = ""

    @property
    def operands(self) -> tuple[str, ...]:
        """The items that are values."""
        return tuple(item for item in self.items if item.startswith("%"))

    @property
    def words(self) -> tuple[str, ...]:
        """The items that are not values."""
        return tuple(item for item in self.items if not item.startswith("%"))

    def after(self, word: str) -> str | None:
        """The item behind a word, as in `rounding = rtz`; None where the word is not there."""
        where = self.items.index(word) + 1 if word in self.items else 0
        return self.items[where] if 0 < where < len(self.items) else None


@dataclass(frozen=True, slots=True)
class Argument:
    """A parameter of a function or of a block: its name with `%`, the text of its type, its attributes."""

    name: str
    type: str
    attributes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A block: its label with `^` (empty for one without), its arguments, its statements."""

    label: str
    arguments: tuple[Argument, ...]
    statements: tuple[TextOperation, ...]


@dataclass(frozen=True, slots=True)
class TextFunction:
    """A function: `name` without `@`; a kernel is public. Its parameters are the arguments of its first block."""

    name: str
    public: bool
    blocks: tuple[TextBlock, ...]
    location: str
    start: int


@dataclass(frozen=True, slots=True)
class TextModule:
    """All functions of a text by name, and what its aliases of locations stand for, by alias with `#`."""

    functions: Mapping[str, TextFunction]
    locations: Mapping[str, str]
