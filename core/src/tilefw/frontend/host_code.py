"""What the bytecode of a Python function tells: itself as text, the names that it reads, and the modules that it imports.

The text is the same in every process: the items of a set, whose order is another one in each, are sorted.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import importlib
import importlib.util
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

_IMPORT = dis.opmap["IMPORT_NAME"]
_INSTALLED = ("site-packages", "dist-packages")  # folders
_ANY_NAME = frozenset({"getattr", "vars", "__dict__"})  # with these a function reads attributes whose names it need not say


@dataclass(frozen=True)
class HostReader:
    """A function that runs while kernels are compiled, and the names that it and what it calls may look up in an object."""

    package: str  # that the function is of
    names: frozenset[str]

    @property
    def any_name(self) -> bool:
        return not _ANY_NAME.isdisjoint(self.names)

    def follows(self, module: types.ModuleType) -> bool:
        """Whether a module belongs to the program that the function is of: to its package, or to what nobody installed."""
        return of_program(module.__name__, getattr(module, "__file__", None), self.package)

    def owns(self, cls: type) -> bool:
        """As `follows`, of the module that made a class; one that was made in none is the program's."""
        module = sys.modules.get(cls.__module__)
        return cls.__module__ != "builtins" and (module is None or self.follows(module))


def package_of(function: types.FunctionType) -> str:
    return str(function.__module__).partition(".")[0]


def of_program(name: str, file: str | None, reader: str) -> bool:
    package = name.partition(".")[0]
    if package == "__main__":
        return True
    if package == "tilefw" or package in sys.stdlib_module_names:
        return False
    if package == reader:
        return True
    return not set(PurePath(file or "").parts).intersection(_INSTALLED)


def text_of(code: types.CodeType) -> str:
    """A digest of what a function does; its place in a file and the names of its locals are not part of it."""
    constants = [text_of(c) if isinstance(c, types.CodeType) else constant(c) for c in code.co_consts]
    return hashlib.sha256(repr((code.co_code, constants, code.co_names)).encode()).hexdigest()


def constant(value: Any) -> str:
    """The `repr` of a constant, with the items of sets in the order of theirs."""
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(map(constant, value)))}}}"
    if type(value) is tuple:
        return f"({', '.join(map(constant, value))})"
    return repr(value)


def names_of(code: types.CodeType) -> frozenset[str]:
    """Names of globals and attributes in a function and in the functions, generators and comprehensions inside it, and words that
    may be names for `getattr`."""
    words = (value for value in code.co_consts if isinstance(value, str) and value.isidentifier())
    inner = (names_of(value) for value in code.co_consts if isinstance(value, types.CodeType))
    return frozenset(code.co_names).union(words, *inner)


def code_of(value: Any) -> types.CodeType | None:
    """The code of a function, also of one in a property, a class method, a static method or a constexpr function."""
    value = bare(value)
    return value.__code__ if isinstance(value, types.FunctionType) else None


def bare(value: Any) -> Any:
    """The function in what wraps it for a class or a cache."""
    if isinstance(value, functools.cached_property):
        return value.func
    for name in ("fget", "__func__", "fn", "__wrapped__"):
        inner = getattr_static(value, name)
        if isinstance(inner, types.FunctionType):
            return inner
    return value


def getattr_static(value: Any, name: str) -> Any:
    """An attribute that an object has by itself or as a field of a builtin class, None where it has none: nothing is computed."""
    if isinstance(value, property | classmethod | staticmethod | types.MethodType):
        return getattr(value, name, None)
    return getattr(value, "__dict__", {}).get(name) if not isinstance(value, type) else None


def imported(function: types.FunctionType) -> Iterator[tuple[str, types.ModuleType | None]]:
    """The modules that a function imports when it runs, by name; None for one that nobody has yet and that is none of the
    program's, or that cannot be imported."""
    package = function.__globals__.get("__package__") or ""
    for name in sorted(_imports(function.__code__, package)):
        yield name, _module(name, function)


def _imports(code: types.CodeType, package: str) -> set[str]:
    found: set[str] = set()
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            found |= _imports(value, package)
    if _IMPORT not in code.co_code[::2]:
        return found
    before: list[Any] = []
    for instruction in dis.get_instructions(code):
        if instruction.opcode == _IMPORT:
            level, items = before[-2:]  # which the compiler loads just before
            found |= _named("." * level + instruction.argval, items or (), package)
        elif instruction.opname in ("LOAD_CONST", "LOAD_SMALL_INT"):
            before.append(instruction.argval)
    return found


def _named(name: str, items: tuple[str, ...], package: str) -> set[str]:
    """The modules of one statement: of `from a.b import c` the module `a.b`, and `a.b.c` where it is one."""
    if name.startswith("."):
        try:
            name = importlib.util.resolve_name(name, package)
        except ImportError:
            return set()
    if not items:
        return {name, name.partition(".")[0]}
    return {name, *(f"{name}.{item}" for item in items if f"{name}.{item}" in sys.modules or _is_module(name, item))}


def _is_module(package: str, item: str) -> bool:
    known = sys.modules.get(package)
    if known is not None and (hasattr(known, item) or not hasattr(known, "__path__")):
        return False
    return _found(f"{package}.{item}") is not None


def _found(name: str) -> Any:
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None


def _module(name: str, function: types.FunctionType) -> types.ModuleType | None:
    module = sys.modules.get(name)
    if module is not None:
        return module
    spec = None if name.partition(".")[0] in sys.stdlib_module_names else _found(name)
    if spec is None or not of_program(name, spec.origin, package_of(function)):
        return None
    try:
        return importlib.import_module(name)  # as the function will
    except Exception:
        return None
