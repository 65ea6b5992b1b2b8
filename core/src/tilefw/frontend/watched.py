"""Whether what a kernel reads is still what it was: the names that were followed to learn its key, each with what it led to."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from operator import is_, itemgetter
from typing import Any

MISSING = object()
_GROUP = 4  # names in one place: as many are looked up at once sooner than one by one
# Where names are, what looks all of them up there, and what they led to.
_Group = tuple[Mapping[str, Any], Callable[[Mapping[str, Any]], tuple[Any, ...]], tuple[Any, ...]]


class Watched:
    """Names of globals and attributes, closure cells, code and defaults of functions, each with the object that was there.

    Where something was read that can change while it stays the same object, nothing can be told of it, and `steady` is False.
    """

    __slots__ = ("_absent", "_few", "_groups", "cells", "codes", "names", "steady")

    def __init__(self) -> None:
        self.names: list[tuple[Mapping[str, Any], str, Any]] = []
        self.cells: list[tuple[types.CellType, Any]] = []
        self.codes: list[tuple[types.FunctionType, types.CodeType, Any, Any]] = []  # and their defaults, by position and by name
        self.steady = True
        self._groups: list[_Group] | None = None
        self._few: list[tuple[Mapping[str, Any], str, Any]] = []
        self._absent: list[tuple[Mapping[str, Any], str]] = []

    def unchanged(self) -> bool:
        """Whether every name still leads to the object that it led to. What is watched is complete from the first time on."""
        groups = self._groups
        if groups is None:
            groups = self._groups = self._grouped()
        if not self.steady:
            return False
        for names, look_up, values in groups:
            try:
                if not all(map(is_, look_up(names), values)):
                    return False
            except KeyError:
                return False
        try:
            for names, name, value in self._few:
                if names[name] is not value:
                    return False
        except KeyError:
            return False
        for names, name in self._absent:
            if name in names:
                return False
        for cell, value in self.cells:
            if content(cell) is not value:
                return False
        for function, code, defaults, keywords in self.codes:
            if function.__code__ is not code or function.__defaults__ is not defaults or function.__kwdefaults__ is not keywords:
                return False
        return True

    def _grouped(self) -> list[_Group]:
        """The names that lead to something, by where they are: every launch looks at all of them. A name that led to two objects
        makes nothing certain."""
        values: dict[int, tuple[Mapping[str, Any], dict[str, Any]]] = {}
        for names, name, value in self.names:
            if value is MISSING:
                self._absent.append((names, name))
            elif values.setdefault(id(names), (names, {}))[1].setdefault(name, value) is not value:
                self.steady = False
        for names, led_to in values.values():
            if len(led_to) < _GROUP:
                self._few += [(names, name, value) for name, value in led_to.items()]
        many = [(names, led_to) for names, led_to in values.values() if len(led_to) >= _GROUP]
        return [(names, itemgetter(*led_to), tuple(led_to.values())) for names, led_to in many]

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

    def function(self, function: types.FunctionType) -> None:
        """The code and the defaults of a function are watched from now on."""
        self.codes.append((function, function.__code__, function.__defaults__, function.__kwdefaults__))

    def key(self, names: Mapping[str, Any], name: str) -> Any:
        """What a dictionary has under a name; it is watched from now on."""
        value = names[name]
        self.names.append((names, name, value))
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
