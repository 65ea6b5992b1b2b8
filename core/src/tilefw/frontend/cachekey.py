"""What makes two compilations of a kernel the same: its text and place, its callees, and the values of globals they read.

The place (file and first line) is part of it because machine code carries line numbers into every report.
"""

from __future__ import annotations

import hashlib
import types
from collections.abc import Iterator
from typing import Any

from tilefw.frontend.free_names import free_chains
from tilefw.frontend.host_reads import PLAIN, HostReads, digest
from tilefw.frontend.scope import is_constexpr_function, is_jit_function
from tilefw.frontend.watched import MISSING, Watched
from tilefw.language.aggregates import AggregateType, constants, members
from tilefw.language.constants import constexpr
from tilefw.language.dtypes import dtype


class Reads:
    """The free names of a kernel, found once, each a chain of attributes from a global: `("math", "pi")`. `digest` is of its text
    and place, `text` of its text alone."""

    __slots__ = ("chains", "digest", "text")

    def __init__(self, kernel: Any) -> None:
        source = kernel.source
        said = (source.file, source.first_line, source.text, kernel.debug)
        self.digest = hashlib.sha256(repr(said).encode()).hexdigest()
        self.text = hashlib.sha256(repr(said[2:]).encode()).hexdigest()
        self.chains = sorted(free_chains(source.tree))


def cache_key(kernel: Any, watched: Watched | None = None) -> str:
    """The digest of a kernel and of all it reads, with the values that those have now. `watched` gains what was looked at."""
    return _Reading(Watched() if watched is None else watched).kernel(kernel, frozenset())


def text_key(kernel: Any) -> str:
    """As `cache_key`, wherever the file is and the kernel stands in it: for what is remembered of a kernel beside its code."""
    return _Reading(Watched(), placed=False).kernel(kernel, frozenset())


def function_key(function: types.FunctionType) -> str:
    """The digest of a Python function that runs while kernels are compiled, and of all it reads."""
    return _Reading(Watched()).host.function(function, frozenset())


class _Reading:
    """One walk over what a kernel reads. Each value is told as text that changes when the kernel would; `seen` are the functions
    and classes that the walk is in the midst of. `placed`: where kernels stand counts."""

    def __init__(self, watched: Watched, placed: bool = True) -> None:
        self.watched, self.placed = watched, placed
        self.host = HostReads(watched, self.said)

    def kernel(self, kernel: Any, seen: frozenset[int]) -> str:
        if id(kernel) in seen:
            return "recursion"
        reads = kernel.__dict__.get("_reads")
        if reads is None:
            reads = kernel._reads = Reads(kernel)
        self.watched.names.append((kernel.__dict__, "_reads", reads))
        seen |= {id(kernel)}
        own = reads.digest if self.placed else reads.text
        parts = [own]
        parts += [f"{p.name} = {self.host.value(p.default, seen)}" for p in kernel.params if p.has_default]
        for chain in reads.chains:
            for value in self._values(chain, kernel.fn):
                parts.append(f"{'.'.join(chain)}={self.said(value, seen)}")
        return own if len(parts) == 1 else digest(parts)

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
            return self.host.function(value.fn, seen)
        if isinstance(value, constexpr):
            return f"constexpr {self.host.value(value.value, seen)}"
        if isinstance(value, types.ModuleType):
            return f"module {value.__name__}"
        if isinstance(value, tuple):
            return f"{type(value).__qualname__}({', '.join(self.host.value(item, seen) for item in value)})"
        if isinstance(value, PLAIN):
            return repr(value)
        name = getattr(value, "__qualname__", None)
        if isinstance(name, str):
            return f"{getattr(value, '__module__', '')}.{name}"
        if not isinstance(value, dtype):
            self.watched.steady = False
        return f"{type(value).__qualname__} {value}"

    def _aggregate(self, value: AggregateType, seen: frozenset[int]) -> str:
        """A class of the user's: its fields with their types and defaults, its functions, and its other attributes."""
        if id(value) in seen:
            return "recursion"
        self.watched.steady = False
        seen |= {id(value)}
        parts = [f"{value.__module__}.{value.__qualname__}"]
        for name, type in value.__aggregate_annotations__.items():
            default = value.__aggregate_defaults__.get(name, MISSING)
            parts.append(f"{name}: {self.said(type, seen)}" + ("" if default is MISSING else f" = {self.said(default, seen)}"))
        parts += [f"{name}: {self.host.value(function, seen)}" for name, function in members(value)]
        parts += [f"{name} = {self.host.value(found, seen)}" for name, found in constants(value)]
        return digest(parts)
