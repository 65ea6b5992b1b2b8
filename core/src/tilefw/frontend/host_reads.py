"""What Python functions that run while kernels are compiled do and read: their code, and the values that it may look up in globals,
modules, classes and objects.

Of a class or an object of the program counts what its reader, or the class's own functions, may name.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any

from tilefw.frontend.host_code import HostReader, bare, code_of, constant, imported, names_of, package_of, text_of
from tilefw.frontend.watched import MISSING, Watched
from tilefw.language.aggregates import AggregateType

PLAIN = (bool, int, float, str, bytes, complex, types.NoneType, types.EllipsisType)
_NUMBERS_AND_WORDS: tuple[Any, ...] = (str, int, float, bytes)
_CONTAINERS: tuple[Any, ...] = (tuple, list, dict, set, frozenset)
Seen = frozenset[int]  # the functions and classes that a walk is in the midst of, by their ids


class HostReads:
    """One walk over what such functions read. `said` tells a value that is none of Python's alone."""

    def __init__(self, watched: Watched, said: Callable[[Any, Seen], str]) -> None:
        self.watched = watched
        self.said = said
        self.told: dict[object, str] = {}  # by ids: what is watched keeps them alive
        self._kept: list[Any] = []

    def function(self, function: Any, seen: Seen) -> str:
        """A function: its code, and the values and functions that it reads."""
        code = getattr(function, "__code__", None)
        if code is None or id(function) in seen:
            return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__qualname__)}"
        if id(function) not in self.told:
            self.told[id(function)] = self._function(function, code, seen | {id(function)})
        return self.told[id(function)]

    def _function(self, function: types.FunctionType, code: types.CodeType, seen: Seen) -> str:
        self.watched.function(function)
        reader = HostReader(package_of(function), names_of(code))
        parts = [text_of(code)]
        for value in function.__defaults__ or ():
            parts.append(f"default {self.value(value, seen, reader)}")
        keywords = function.__kwdefaults__ or {}
        for name in sorted(keywords):
            parts.append(f"default of {name}: {self.value(self.watched.key(keywords, name), seen, reader)}")
        modules: set[int] = set()
        for name in sorted(reader.names.union(code.co_freevars)):
            value = self.watched.name(function, name)
            if isinstance(value, types.ModuleType):
                parts += [f"{name}={said}" for said in self._module(value, reader, seen, modules)]
            elif value is not MISSING:
                parts.append(f"{name}={self.value(value, seen, reader)}")
        for name, module in imported(function):
            parts.append(f"import {name}")
            if module is not None and reader.follows(module):
                self.watched.key(sys.modules, name)
                parts += [f"{name}={said}" for said in self._module(module, reader, seen, modules)]
        return digest(parts)

    def _module(self, module: types.ModuleType, reader: HostReader, seen: Seen, modules: set[int]) -> Iterator[str]:
        """What a function may read of a module, once: `modules` are those that it has told. What others have made and installed
        stays as it is: of that only constants."""
        yield f"module {module.__name__}"
        if id(module) in modules:
            return
        modules.add(id(module))
        follow = reader.follows(module)
        for name in sorted(reader.names & vars(module).keys()):
            value = vars(module)[name]
            if not (follow or isinstance(value, PLAIN)):
                continue
            self.watched.attribute(module, name)
            if isinstance(value, types.ModuleType):
                yield from self._module(value, reader, seen, modules)
            else:
                yield f"{name}={self.value(value, seen, reader)}"

    def value(self, value: Any, seen: Seen, reader: HostReader | None = None) -> str:
        """Whatever such a function may meet. Without a reader nothing is looked up in classes and objects."""
        if isinstance(value, PLAIN) and type(value) in PLAIN:
            return repr(value)
        if isinstance(value, types.FunctionType):
            return self.function(value, seen)
        if isinstance(value, types.MethodType):
            return f"{self.value(value.__func__, seen, reader)} of {self.value(value.__self__, seen, reader)}"
        if isinstance(value, functools.partial):
            given = (value.args, value.keywords)
            return f"partial {self.value(value.func, seen, reader)} {self.value(given, seen, reader)}"
        if type(value) in _CONTAINERS:
            return self._items(value, seen, reader)
        if bare(value) is not value and not hasattr(value, "cache_key_source"):
            return f"{type(value).__qualname__} {self.function(bare(value), seen)}"
        if reader is None or isinstance(value, AggregateType):
            return self.said(value, seen)
        if isinstance(value, type):
            return self._class(value, seen, reader) if reader.owns(value) else self.said(value, seen)
        if reader.owns(type(value)) and not isinstance(type(value), AggregateType):
            return self._object(value, seen, reader)
        return self.said(value, seen)

    def _items(self, value: Any, seen: Seen, reader: HostReader | None) -> str:
        if id(value) in seen:
            return "recursion"
        inside = seen | {id(value)}
        kind = type(value).__name__
        if isinstance(value, Mapping):
            self.watched.steady = False
            said = [f"{self.value(key, inside, reader)}: {self.value(item, inside, reader)}" for key, item in value.items()]
        else:
            self.watched.steady &= isinstance(value, tuple | frozenset)
            said = [self.value(item, inside, reader) for item in value]
        return f"{kind}({', '.join(sorted(said) if isinstance(value, Set) else said)})"

    def _class(self, cls: type, seen: Seen, reader: HostReader) -> str:
        """A class: attributes that may be named, and the functions that Python calls without a name."""
        self.watched.steady = False
        if isinstance(cls, enum.EnumMeta):
            members: Any = list(cls)
            return f"{cls.__module__}.{cls.__qualname__} {[(member.name, constant(member.value)) for member in members]}"
        reader = _widened(cls, reader)
        key = id(cls), reader.package, reader.names
        if id(cls) in seen:
            return f"{cls.__module__}.{cls.__qualname__}"
        if key not in self.told:
            self._kept.append(cls)
            self.told[key] = digest([f"{cls.__module__}.{cls.__qualname__}", *self._attributes(cls, seen | {id(cls)}, reader)])
        return self.told[key]

    def _attributes(self, cls: type, seen: Seen, reader: HostReader) -> Iterator[str]:
        for owner in cls.__mro__:
            yield f"{owner.__module__}.{owner.__qualname__}"
            if reader.owns(owner):
                for name, value in sorted(vars(owner).items()):
                    if _read(name, value, reader):
                        yield f"{name}={self.value(value, seen, reader)}"

    def _object(self, value: Any, seen: Seen, reader: HostReader) -> str:
        """An object: its class, its own attributes that may be named, and its items where it is also a container."""
        self.watched.steady = False
        if id(value) in seen:
            return "recursion"
        if isinstance(value, enum.Enum):
            return f"{value} {constant(value.value)}"
        key = id(value), reader.package, reader.names  # objects that know one another are told once each, not once a way to them
        if key not in self.told:
            self._kept.append(value)
            self.told[key] = self._contents(value, seen | {id(value)}, reader)
        return self.told[key]

    def _contents(self, value: Any, inside: Seen, reader: HostReader) -> str:
        cls = type(value)
        parts = [self._class(cls, inside, reader)]
        parts += [base.__repr__(value) for base in _NUMBERS_AND_WORDS if isinstance(value, base)]
        parts += [self._items(base(value), inside, reader) for base in _CONTAINERS if isinstance(value, base)]
        reader = _widened(cls, reader)
        foreign = any(not reader.owns(owner) and owner is not object for owner in cls.__mro__)
        for name, item in sorted(_own(value).items()):
            if name in reader.names or reader.any_name or (foreign and isinstance(item, PLAIN)):
                parts.append(f"{name}={self.value(item, inside, reader)}")
        return digest(parts)


def digest(parts: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _widened(cls: type, reader: HostReader) -> HostReader:
    """The reader with the names that the class's own functions lead on to."""
    names, before = reader.names, frozenset[str]()
    while names != before:
        before = names
        for owner in filter(reader.owns, cls.__mro__):
            for name, value in vars(owner).items():
                code = code_of(value)
                if code is not None and (name in names or _called_unnamed(name)):
                    names |= names_of(code)
    return HostReader(reader.package, names)


def _called_unnamed(name: str) -> bool:
    """Whether Python calls a function of this name by itself: to make a value, for an operator, for an attribute."""
    return name.startswith("__") and name.endswith("__")


def _read(name: str, value: Any, reader: HostReader) -> bool:
    if code_of(value) is not None:
        return name in reader.names or _called_unnamed(name)
    return name in reader.names or (reader.any_name and not _called_unnamed(name))


def _own(value: Any) -> dict[str, Any]:
    """What is in an object itself, in its dictionary and its slots, by the names that code has for them."""
    found: dict[str, Any] = dict(getattr(value, "__dict__", {}))
    for owner in type(value).__mro__:
        for name, slot in vars(owner).items():
            if not isinstance(slot, types.MemberDescriptorType):
                continue
            try:
                found[name] = slot.__get__(value)
            except AttributeError:
                continue
    return found
