"""The order of memory accesses: what a token stands for, and where a barrier keeps its promise.

Operations of tile IR access memory in the order of the program, but one lane may run ahead of another. An access that must come
behind another one, of which one writes, is behind a barrier; the barriers of acquiring and releasing atomics count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tilefw.frontend.builder import Builder
from tilefw.importers.cutile.bytecode_tree import BytecodeBlock

READ, WRITE = "read", "write"
_WRITES = frozenset({
    "store_ptr_tko", "store_view_tko", "atomic_rmw_tko", "atomic_cas_tko", "atomic_red_view_tko",
})
_READS = frozenset({"load_ptr_tko", "load_view_tko"})


@dataclass(frozen=True, slots=True)
class AccessToken:
    """All accesses up to `number` of the kinds in `kinds`, which may have been made or not."""

    number: int = 0
    kinds: frozenset[str] = frozenset()


def joined(tokens: Iterable[AccessToken]) -> AccessToken:
    """What stands for all accesses of several tokens."""
    found = list(tokens)
    return AccessToken(max((token.number for token in found), default=0), frozenset().union(*(token.kinds for token in found)))


def kinds_within(block: BytecodeBlock) -> frozenset[str]:
    """The kinds of all accesses within a block and its regions."""
    found: set[str] = set()
    for operation in block.operations:
        if operation.name in _WRITES:
            found.add(WRITE)
        elif operation.name in _READS:
            found.add(READ)
        for region in operation.regions:
            found |= kinds_within(region)
    return frozenset(found)


class MemoryOrder:
    """Numbers the accesses as they are made; those up to `_synchronised` lie behind a barrier already."""

    def __init__(self) -> None:
        self._last = 0
        self._synchronised = 0

    def before(self, b: Builder, token: AccessToken | None, kind: str) -> None:
        """Put a barrier before an access of a kind behind what a token stands for, where one is needed."""
        if token is None or token.number <= self._synchronised or WRITE not in token.kinds | {kind} or not token.kinds:
            return
        b.barrier()
        self._synchronised = self._last

    def after(self, token: AccessToken | None, kind: str) -> AccessToken:
        """The token of an access that was made behind another token."""
        self._last += 1
        return AccessToken(self._last, frozenset({kind}) | (token.kinds if token is not None else frozenset()))

    def acquired(self) -> None:
        """An atomic access synchronised the program's lanes by itself."""
        self._synchronised = self._last

    def fresh(self, kinds: frozenset[str]) -> AccessToken:
        """A token for accesses of these kinds made up to here on some way."""
        self._last += 1
        return AccessToken(self._last, kinds)

    @contextmanager
    def conditional(self) -> Iterator[None]:
        """Barriers within may not be reached."""
        outer = self._synchronised
        try:
            yield
        finally:
            self._synchronised = outer
