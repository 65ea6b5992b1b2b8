"""What makes two compilations of a kernel the same: its text and place, its callees, and the values of globals they read.

The place (file and first line) is part of it because machine code carries line numbers into every report.
"""

from __future__ import annotations

import ast
import hashlib
import sys
import types
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any

from tilefw.frontend.scope import is_constexpr_function, is_jit_function
from tilefw.frontend.watched import MISSING, Watched
from tilefw.language.aggregates import AggregateType, members
from tilefw.language.constants import constexpr
from tilefw.language.dtypes import dtype

_PLAIN = (bool, int, float, str, types.NoneType)
_INSTALLED = ("site-packages", "dist-packages")  # folders


class Reads:
    """The free names of a kernel, found once, each a chain of attributes from a global: `("math", "pi")`."""

    __slots__ = ("chains", "digest")

    def __init__(self, kernel: Any) -> None:
        source = kernel.source
        said = (source.file, source.first_line, source.text, kernel.debug, repr(_defaults(kernel)))
        self.digest = hashlib.sha256(repr(said).encode()).hexdigest()
        self.chains = sorted(_free_chains(source.tree))


def cache_key(kernel: Any, watched: Watched | None = None) -> str:
    """The digest of a kernel and of all it reads, with the values that those have now. `watched` gains what was looked at."""
    return _Reading(Watched() if watched is None else watched).kernel(kernel, frozenset())


class _Reading:
    """One walk over what a kernel reads. Each value is told as text that changes when the kernel would; `seen` are the functions
    and classes that the walk is in the midst of."""

    def __init__(self, watched: Watched) -> None:
        self.watched = watched
        self.told: dict[int, str] = {}  # of functions, by their ids: what is watched keeps them alive

    def kernel(self, kernel: Any, seen: frozenset[int]) -> str:
        if id(kernel) in seen:
            return "recursion"
        reads = kernel.__dict__.get("_reads")
        if reads is None:
            reads = kernel._reads = Reads(kernel)
        self.watched.names.append((kernel.__dict__, "_reads", reads))
        parts = [reads.digest]
        for chain in reads.chains:
            for value in self._values(chain, kernel.fn):
                parts.append(f"{'.'.join(chain)}={self.said(value, seen | {id(kernel)})}")
        return reads.digest if len(parts) == 1 else _digest(parts)

    def _values(self, chain: tuple[str, ...], function: types.FunctionType) -> Iterator[Any]:
        """What a chain leads through, from the first value that is not a module: for `NAME.upper`, the string and its method."""
        value = self.watched.name(function, chain[0])
        for name in chain[1:]:
            if value is MISSING:
                return
            if not isinstance(value, types.ModuleType):
                yield value
            value = self.watched.attribute(value, name)
        if value is not MISSING:
            yield value

    def said(self, value: Any, seen: frozenset[int]) -> str:
        if is_jit_function(value):
            return self.kernel(value, seen)
        if isinstance(value, AggregateType):
            return self._aggregate(value, seen)
        if is_constexpr_function(value):
            return self.function(value.fn, seen)
        if isinstance(value, constexpr):
            return f"constexpr {self._called(value.value, seen)}"
        if isinstance(value, types.ModuleType):
            return f"module {value.__name__}"
        if isinstance(value, tuple):
            return f"{type(value).__qualname__}({', '.join(self.said(item, seen) for item in value)})"
        if isinstance(value, _PLAIN):
            return repr(value)
        name = getattr(value, "__qualname__", None)
        if isinstance(name, str):
            return f"{value.__module__}.{name}"
        if not isinstance(value, dtype):
            self.watched.steady = False
        return f"{type(value).__qualname__} {value}"

    def _aggregate(self, value: AggregateType, seen: frozenset[int]) -> str:
        """A class of the user's: its fields with their types and defaults, and its functions."""
        if id(value) in seen:
            return "recursion"
        self.watched.steady = False
        seen |= {id(value)}
        parts = [f"{value.__module__}.{value.__qualname__}"]
        for name, type in value.__aggregate_annotations__.items():
            default = value.__aggregate_defaults__.get(name, MISSING)
            parts.append(f"{name}: {self.said(type, seen)}" + ("" if default is MISSING else f" = {self.said(default, seen)}"))
        parts += [f"{name}: {self._called(function, seen)}" for name, function in members(value)]
        return _digest(parts)

    def function(self, function: Any, seen: frozenset[int]) -> str:
        """A Python function that runs while kernels are compiled: its code, and the values and functions that it reads."""
        code = getattr(function, "__code__", None)
        if code is None or id(function) in seen:
            return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__qualname__)}"
        if id(function) not in self.told:
            self.told[id(function)] = self._function(function, code, seen | {id(function)})
        return self.told[id(function)]

    def _function(self, function: types.FunctionType, code: types.CodeType, seen: frozenset[int]) -> str:
        self.watched.codes.append((function, code, function.__defaults__))
        parts = [_code(code)]
        for value in function.__defaults__ or ():
            parts.append(f"default {self._called(value, seen)}")
        keywords = function.__kwdefaults__ or {}
        for name in sorted(keywords):
            parts.append(f"default of {name}: {self._called(self.watched.key(keywords, name), seen)}")
        names = _names(code)
        for name in sorted(names.union(code.co_freevars)):
            value = self.watched.name(function, name)
            if isinstance(value, types.ModuleType):
                parts += [f"{name}={said}" for said in self._module(value, names, function, seen)]
            elif value is not MISSING:
                parts.append(f"{name}={self._called(value, seen)}")
        return _digest(parts)

    def _module(self, module: types.ModuleType, names: set[str], reader: types.FunctionType, seen: frozenset[int]) -> Iterator[str]:
        """What a function with these names may read of a module. What others have made and installed stays as it is: of that only
        constants."""
        yield self.said(module, seen)
        follow = _of_program(module, reader)
        for name in sorted(names & vars(module).keys()):
            value = vars(module)[name]
            if id(value) in seen or not (follow or isinstance(value, _PLAIN)):
                continue
            self.watched.attribute(module, name)
            if isinstance(value, types.ModuleType):
                yield from self._module(value, names, reader, seen | {id(module), id(value)})
            else:
                yield f"{name}={self._called(value, seen)}"

    def _called(self, value: Any, seen: frozenset[int]) -> str:
        """As `said`; a plain function, which runs where this one is read, by its code."""
        return self.function(value, seen) if isinstance(value, types.FunctionType) else self.said(value, seen)


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _names(code: types.CodeType) -> set[str]:
    """Names of globals and attributes in a function and in the functions, generators and comprehensions inside it."""
    return set(code.co_names).union(*(_names(inner) for inner in code.co_consts if isinstance(inner, types.CodeType)))


def _of_program(module: types.ModuleType, reader: types.FunctionType) -> bool:
    """Whether a module belongs to the program that a function is of: to its package, or to what nobody installed."""
    package = module.__name__.partition(".")[0]
    if package == "tilefw" or package in sys.stdlib_module_names:
        return False
    if package == str(reader.__module__).partition(".")[0]:
        return True
    return not set(PurePath(getattr(module, "__file__", None) or "").parts).intersection(_INSTALLED)


def _code(code: types.CodeType) -> str:
    constants = [_code(c) if isinstance(c, types.CodeType) else repr(c) for c in code.co_consts]
    return hashlib.sha256(repr((code.co_code, constants, code.co_names)).encode()).hexdigest()


def _defaults(kernel: Any) -> list[tuple[str, str]]:
    return [(p.name, _Reading(Watched()).said(p.default, frozenset())) for p in kernel.params if p.has_default]


def _free_chains(tree: ast.FunctionDef) -> set[tuple[str, ...]]:
    """Names that the body loads and does not bind, with the attributes that follow them."""
    bound = {argument.arg for argument in (*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs)}
    bound |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    chains: set[tuple[str, ...]] = set()
    stack: list[tuple[ast.AST, tuple[str, ...]]] = [(statement, ()) for statement in tree.body]
    while stack:
        node, after = stack.pop()
        if isinstance(node, ast.Attribute):
            stack.append((node.value, (node.attr, *after)))
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load) and node.id not in bound:
                chains.add((node.id, *after))
        else:
            stack += [(child, ()) for child in ast.iter_child_nodes(node)]
    return chains
