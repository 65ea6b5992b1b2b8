"""Whether what a kernel reads is still what it was: the names that were followed to learn its key, each with what it led to."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any

MISSING = object()


class Watched:
    """Names of globals and attributes, closure cells and code of functions, each with the object that was there.

    Where something was read that can change while it stays the same object, nothing can be told of it, and `steady` is False.
    """

    __slots__ = ("cells", "codes", "names", "steady")

    def __init__(self) -> None:
        self.names: list[tuple[Mapping[str, Any], str, Any]] = []
        self.cells: list[tuple[types.CellType, Any]] = []
        self.codes: list[tuple[types.FunctionType, types.CodeType]] = []
        self.steady = True

    def unchanged(self) -> bool:
        """Whether every name still leads to the object that it led to."""
        if not self.steady:
            return False
        for names, name, value in self.names:
            if names.get(name, MISSING) is not value:
                return False
        return all(content(cell) is value for cell, value in self.cells) and all(f.__code__ is code for f, code in self.codes)

    def name(self, function: types.FunctionType, name: str) -> Any:
        """What a free name of a function means now, MISSING where it means nothing yet; it is watched from now on."""
        free = function.__code__.co_freevars
        if name in free and function.__closure__ is not None:
            cell = function.__closure__[free.index(name)]
            value = content(cell)
            self.cells.append((cell, value))
            if value is not MISSING:
                return value
        value = function.__globals__.get(name, MISSING)
        self.names.append((function.__globals__, name, value))
        return value

    def attribute(self, owner: Any, name: str) -> Any:
        """An attribute's value, MISSING where there is none; one of a module or class is watched, as is that of no other object."""
        value = getattr(owner, name, MISSING)
        if isinstance(owner, types.ModuleType | type) and vars(owner).get(name, MISSING) is value:
            self.names.append((vars(owner), name, value))
        elif not isinstance(owner, str | int | float | tuple):
            self.steady = False
        return value


def content(cell: types.CellType) -> Any:
    """What a closure cell holds; MISSING where its variable has no value yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING
