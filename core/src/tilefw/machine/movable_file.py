"""A register file in which values that stand already move out of the way of one that finds no room.

At each point enough registers may be free, and yet none for the whole of a life with holes (`allocate` says why). Then a few of the
values that stand where it could go often find room elsewhere, as they are placed now with what came behind them known.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from heapq import heapify
from itertools import chain

from tilefw.machine.inst import Reg
from tilefw.machine.live_ranges import LivePart
from tilefw.machine.register_file import END, START, RegisterFile

_TRIES = 24  # of places for one value
_OTHERS = 4  # that move for one value


class MovableFile(RegisterFile):
    """As a register file, in the order of beginnings, where `stand` says which value was put where."""

    stride = sys.maxsize  # values that began long ago are placed again

    def __init__(self, count: int, reserved: frozenset[int]) -> None:
        super().__init__(count, reserved)
        self._fixed: list[tuple[int, Sequence[LivePart]]] = []
        self._standing: dict[Reg, tuple[int, Sequence[LivePart]]] = {}

    def fix(self, parts: Sequence[LivePart]) -> None:
        """What stands at the file's own registers, and stays there."""
        self.take(0, parts)
        self._fixed.append((0, parts))

    def stand(self, reg: Reg, first: int, parts: Sequence[LivePart]) -> None:
        """Say that `take` put this value there."""
        self._standing[reg] = first, parts

    def make_room(self, reg: Reg, parts: Sequence[LivePart], position: int) -> dict[Reg, int] | None:
        """The first registers of `reg`, and of those that moved for it; None where moving a few does not help. `position` is
        where `reg` begins."""
        self._forget(position)
        for first, others in self._fewest_in_the_way(reg, parts):
            placed = self._exchanged(reg, first, parts, others)
            if placed is not None:
                self._begin_again(position)
                return placed
        return None

    def _forget(self, position: int) -> None:
        """Values that have ended are in nobody's way."""
        over = [reg for reg, (_, parts) in self._standing.items() if all(part.segments[-1][1] <= position for part in parts)]
        for reg in over:
            del self._standing[reg]

    def _fewest_in_the_way(self, reg: Reg, parts: Sequence[LivePart]) -> list[tuple[int, list[Reg]]]:
        """Where `reg` may begin, with the values that would have to move, the fewest registers of them first."""
        there: list[list[tuple[Reg, LivePart]]] = [[] for _ in range(self.count)]
        for other, (first, its) in self._standing.items():
            for part in its:
                for register in range(first + part.first, first + part.first + part.width):
                    there[register].append((other, part))
        found: list[tuple[int, int, list[Reg]]] = []
        for first in _bits(self._firsts_of(reg.width, reg.align)):
            others = {
                other: None
                for part in parts for register in range(first + part.first, first + part.first + part.width)
                for other, its in there[register] if _meet(part, its)
            }
            if 0 < len(others) <= _OTHERS:
                found.append((sum(other.width for other in others), first, list(others)))
        return [(first, others) for _, first, others in sorted(found, key=lambda one: one[:2])[:_TRIES]]

    def _exchanged(self, reg: Reg, first: int, parts: Sequence[LivePart], others: Sequence[Reg]) -> dict[Reg, int] | None:
        """`reg` at `first`, and the others elsewhere; None, with all as it was, where one of them finds no place."""
        before = {other: self._standing[other] for other in others}
        for other in others:
            self._release(other)
        placed: dict[Reg, int] = {}
        if self._fits(first, parts):
            self._hold(reg, first, parts)
            placed[reg] = first
            for other in sorted(others, key=lambda other: -other.width):
                its = before[other][1]
                found = self.find_free(other.width, other.align, its, ())
                if found is None:
                    break
                self._hold(other, found, its)
                placed[other] = found
            else:
                return placed
        for other in placed:
            self._release(other)
        for other, (at, its) in before.items():
            self._hold(other, at, its)
        return None

    def _hold(self, reg: Reg, first: int, parts: Sequence[LivePart]) -> None:
        self._turn(first, parts)
        self._standing[reg] = first, parts
        self._reached |= (1 << first + reg.width) - 1

    def _release(self, reg: Reg) -> None:
        self._turn(*self._standing.pop(reg))

    def _turn(self, first: int, parts: Sequence[LivePart]) -> None:
        """Free becomes taken at the points of these parts, and taken free."""
        for part in parts:
            points = part.points << part.segments[0][0]
            for register in range(first + part.first, first + part.first + part.width):
                self._taken[register] ^= points

    def _begin_again(self, position: int) -> None:
        """What is taken at `position`, and what changes behind it, from where the values stand now."""
        self._busy, self._changes = 0, []
        for first, parts in chain(self._fixed, self._standing.values()):
            for part in parts:
                registers = ((1 << part.width) - 1) << first + part.first
                for begin, end in part.segments:
                    if end <= position:
                        continue
                    if begin <= position:
                        self._busy |= registers
                    else:
                        self._changes.append((begin, START, registers))
                    self._changes.append((end, END, registers))
        heapify(self._changes)


def _bits(registers: int) -> Iterator[int]:
    while registers:
        lowest = registers & -registers
        yield lowest.bit_length() - 1
        registers ^= lowest


def _meet(a: LivePart, b: LivePart) -> bool:
    """Whether two parts live at one point."""
    behind = a.segments[0][0] - b.segments[0][0]
    return bool((a.points << behind) & b.points if behind >= 0 else a.points & (b.points << -behind))
