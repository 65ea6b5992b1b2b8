"""Which accesses of different programs are ordered: vector clocks over release and acquire, and who wrote an element last.

A program's clock says up to which of their releases it has seen the others. A release leaves the program's clock at the
element that it writes, further read-modify-writes keep it there (a release sequence, C++20 [intro.races]),
and who acquires the element takes it over. Two accesses of one element race when neither program's clock has the other's
and not both are atomic in a scope that reaches both programs.
"""

from __future__ import annotations

import numpy as np

from tilefw.tile.reference.value import Array

_NOBODY = -1
Clock = dict[int, int]  # program: how many of its releases were seen


class Record:
    """For each element of a buffer: the program that wrote it last, after how many of its releases, and whether atomically."""

    __slots__ = ("_writer", "atomic", "epoch")

    def __init__(self, elements: int) -> None:
        self._writer = np.zeros(elements, np.int32)  # its number and one, so that untouched memory says nobody
        self.epoch = np.zeros(elements, np.int32)
        self.atomic = np.zeros(elements, np.bool_)  # in a scope that reaches every program

    def writer(self, index: Array) -> Array:
        """The programs that wrote these elements last, -1 where nobody did."""
        return self._writer[index] - 1

    def note(self, index: Array, owner: Array, atomic: bool) -> None:
        """`owner` has written these elements, in the order of `index`."""
        self._writer[index] = owner + 1
        self.atomic[index] = atomic


class Ordering:
    """The clocks of one launch's programs, and those left at memory by address."""

    def __init__(self) -> None:
        self._clocks: dict[int, Clock] = {}
        self._left: dict[int, Clock] = {}

    def unseen(self, record: Record, index: Array, owner: Array) -> Array:
        """Where another program wrote the element last, and `owner` has seen no release of it since."""
        writer = record.writer(index)
        found = (writer != _NOBODY) & (writer != owner)
        if not self._clocks or not found.any():
            return found
        reader, source, after = np.broadcast_to(owner, index.shape)[found], writer[found], record.epoch[index][found]
        pairs, inverse = np.unique(np.stack([reader, source]), axis=1, return_inverse=True)
        seen = np.array([self._clocks.get(int(r), {}).get(int(w), 0) for r, w in pairs.T])
        found[found] = after >= seen[inverse.reshape(-1)]
        return found

    def wrote(self, record: Record, index: Array, owner: Array, atomic: bool) -> None:
        """Note who wrote elements, in the order of `index`."""
        record.note(index, owner, atomic)
        if self._clocks:
            programs, inverse = np.unique(owner, return_inverse=True)
            own = np.array([self._clocks.get(int(p), {}).get(int(p), 0) for p in programs], np.int32)
            record.epoch[index] = own[inverse.reshape(-1)].reshape(np.shape(owner))

    def acquire(self, program: int, addresses: Array) -> None:
        """The program has seen what was released at these elements."""
        if not self._left:
            return
        for clock in self._found(addresses):
            _join(self._clocks.setdefault(program, {program: 0}), clock)

    def release(self, program: int, addresses: Array) -> None:
        """Whoever acquires one of these elements has seen what the program did up to here."""
        own = self._clocks.setdefault(program, {program: 0})
        own[program] += 1
        joined: dict[int, Clock] = {}  # by what was left at an element before: mostly one clock, or none
        for address in np.unique(addresses).tolist():
            before = self._left.get(address)
            key = 0 if before is None else id(before)
            if key not in joined:
                clock = dict(own)
                _join(clock, before or {})
                joined[key] = clock
            self._left[address] = joined[key]

    def _found(self, addresses: Array) -> list[Clock]:
        found = {id(clock): clock for a in np.unique(addresses).tolist() if (clock := self._left.get(a)) is not None}
        return list(found.values())


def _join(clock: Clock, other: Clock) -> None:
    for program, count in other.items():
        if clock.get(program, 0) < count:
            clock[program] = count
