"""Accesses that a program leaves to an engine: they may be made at any time until its next fence for the system, by another agent.

Each program has one engine. It sees what the program did before it left the access to it, and the program sees what the engine did
behind the fence: whoever looks at the destination, or changes the source, in between races with it, whenever the access was made.
Under a seed stores are made at a time that is drawn; without one at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tilefw.tile.reference.ordering import Ordering
from tilefw.tile.reference.value import Array

ENGINES = 1 << 29  # from a program's number to that of its engine; numbers of both are below 2^31 in all launches together
_KEPT_BACK = 0.75  # how often a store is not made at once under a seed
_MADE = 0.1  # how often stores that were kept back are made at a turn


def program_of(agent: int) -> int:
    """The program that an agent is, or whose engine it is."""
    return agent - ENGINES if agent >= ENGINES else agent


@dataclass(frozen=True, slots=True)
class _KeptStore:
    programs: frozenset[int]
    make: Callable[[], None]


class AsynchronousAccesses:
    """Those of one launch; `random` draws when stores are made. `ordering` gives the order that the launch's accesses have."""

    __slots__ = ("_kept", "_ordering", "random")

    def __init__(self, ordering: Callable[[], Ordering]) -> None:
        self._ordering = ordering
        self._kept: list[_KeptStore] = []
        self.random: np.random.Generator | None = None

    def engines(self, programs: Array) -> Array:
        """The programs' engines, which see what the programs did until now."""
        for program in programs.tolist():
            self._ordering().hand_over(program, program + ENGINES)
        return programs + ENGINES

    def store(self, programs: Array, make: Callable[[], None]) -> None:
        """Make a store of the programs' engines, now or later."""
        if self.random is None or self.random.random() >= _KEPT_BACK:
            make()
        else:
            self._kept.append(_KeptStore(frozenset(programs.tolist()), make))

    def complete(self, programs: Array) -> None:
        """Everything that the programs left to their engines is done, and seen by them."""
        mine = frozenset(programs.tolist())
        self._make([kept for kept in self._kept if kept.programs & mine])
        for program in mine:
            self._ordering().take_over(program + ENGINES, program)

    def turn(self) -> None:
        """Time goes by: some stores are made."""
        if self._kept and self.random is not None:
            self._make([kept for kept in self._kept if self.random.random() < _MADE])

    def make_all(self) -> bool:
        """Make all stores that were kept back; whether there were any."""
        kept = bool(self._kept)
        self._make(list(self._kept))
        return kept

    def _make(self, stores: list[_KeptStore]) -> None:
        # Those of one program in the order in which it gave them.
        for kept in stores:
            self._kept.remove(kept)
            kept.make()
