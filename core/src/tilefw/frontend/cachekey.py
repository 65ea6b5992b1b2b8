"""What makes two compilations of a kernel the same: its text and place, its callees, and the values of globals they read.

The place (file and first line) is part of it because machine code carries line numbers into every report.
"""

from __future__ import annotations

import ast
import hashlib
import types
from collections.abc import Iterator, Mapping
from typing import Any

from tilefw.frontend.scope import captured, is_constexpr_function, is_jit_function
from tilefw.language.aggregates import AggregateType, members
from tilefw.language.constants import constexpr

_MISSING = object()


class Reads:
    """The free names of a kernel, found once, each a chain of attributes from a global: `("math", "pi")`."""

    __slots__ = ("chains", "digest")

    def __init__(self, kernel: Any) -> None:
        source = kernel.source
        said = (source.file, source.first_line, source.text, kernel.debug, repr(_defaults(kernel)))
        self.digest = hashlib.sha256(repr(said).encode()).hexdigest()
        self.chains = sorted(_free_chains(source.tree))


def cache_key(kernel: Any, seen: frozenset[int] = frozenset()) -> str:
    """The digest of a kernel and of all it reads, with the values that those have now."""
    reads = kernel.__dict__.get("_reads")
    if reads is None:
        reads = kernel._reads = Reads(kernel)
    if not reads.chains:
        return reads.digest
    closure = captured(kernel.fn)
    parts = [reads.digest]
    for chain in reads.chains:
        for value in _values(chain, closure, kernel.fn.__globals__):
            parts.append(f"{'.'.join(chain)}={_said(value, seen | {id(kernel)})}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _values(chain: tuple[str, ...], closure: Mapping[str, Any], names: Mapping[str, Any]) -> Iterator[Any]:
    """What a chain leads through, from the first value that is not a module: for `NAME.upper`, both the string and its method."""
    value = closure.get(chain[0], names.get(chain[0], _MISSING))
    for name in chain[1:]:
        if value is _MISSING:
            return
        if not isinstance(value, types.ModuleType):
            yield value
        value = getattr(value, name, _MISSING)
    if value is not _MISSING:
        yield value


def _said(value: Any, seen: frozenset[int]) -> str:
    """A global's value as text that changes when the kernel would."""
    if is_jit_function(value):
        return "recursion" if id(value) in seen else cache_key(value, seen)
    if isinstance(value, AggregateType):
        return _aggregate(value, seen)
    if is_constexpr_function(value) and value.__module__.partition(".")[0] == "tilefw":
        return f"{value.__module__}.{value.__qualname__}"  # ours, which the version stands for
    if is_constexpr_function(value):
        return _function(value.fn, seen)
    if isinstance(value, constexpr):
        return f"constexpr {_said(value.value, seen)}"
    if isinstance(value, types.ModuleType):
        return f"module {value.__name__}"
    if isinstance(value, tuple):
        return f"{type(value).__qualname__}({', '.join(_said(item, seen) for item in value)})"
    if isinstance(value, bool | int | float | str | type(None)):
        return repr(value)
    name = getattr(value, "__qualname__", None)
    return f"{value.__module__}.{name}" if isinstance(name, str) else f"{type(value).__qualname__} {value}"


def _aggregate(value: AggregateType, seen: frozenset[int]) -> str:
    """A class of the user's: its fields with their types and defaults, and its functions."""
    if id(value) in seen:
        return "recursion"
    seen |= {id(value)}
    parts = [f"{value.__module__}.{value.__qualname__}"]
    for name, type in value.__aggregate_annotations__.items():
        default = value.__aggregate_defaults__.get(name, _MISSING)
        parts.append(f"{name}: {_said(type, seen)}" + ("" if default is _MISSING else f" = {_said(default, seen)}"))
    for name, function in members(value):
        said = _function(function, seen) if isinstance(function, types.FunctionType) else _said(function, seen)
        parts.append(f"{name}: {said}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _function(function: Any, seen: frozenset[int]) -> str:
    """A Python function that runs while kernels are compiled: its code, and the values and functions that it reads."""
    code = getattr(function, "__code__", None)
    if code is None or id(function) in seen:
        return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__qualname__)}"
    parts = [_code(code)]
    for name, value in {**function.__globals__, **captured(function)}.items():
        if name in code.co_names or name in code.co_freevars:
            reads = _function(value, seen | {id(function)}) if isinstance(value, types.FunctionType) else _said(value, seen)
            parts.append(f"{name}={reads}")
    return hashlib.sha256("\n".join(sorted(parts)).encode()).hexdigest()


def _code(code: types.CodeType) -> str:
    constants = [_code(c) if isinstance(c, types.CodeType) else repr(c) for c in code.co_consts]
    return hashlib.sha256(repr((code.co_code, constants, code.co_names)).encode()).hexdigest()


def _defaults(kernel: Any) -> list[tuple[str, str]]:
    return [(p.name, _said(p.default, frozenset())) for p in kernel.params if p.has_default]


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
