"""Which accesses of different programs are ordered: vector clocks over release and acquire, who wrote an element, who loaded it.

A program's clock says up to which of their releases it has seen the others. A release leaves the program's clock at the
element that it writes, further read-modify-writes keep it there (a release sequence, C++20 [intro.races]),
and who acquires the element takes it over. Two accesses of one element race when neither program's clock has the other's
and not both are atomic in a scope that reaches both programs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilefw.tile.reference.value import Array

# How far an atomic of a scope is one: for its own program alone, for those of its device, for all of a node.
REACH = {"workgroup": 0, "device": 1, "system": 2}
_EVERYBODY = -1  # the scope instance of all programs; others are those of a device, by its rank
_NOBODY = -1
_SEVERAL = -1
Clock = dict[int, int]  # program: how many of its releases were seen
Loads = frozenset[tuple[int, int]]  # program, and how many releases it had made before it loaded


class Record:
    """For each element of a buffer: the program that wrote it last, after how many of its releases, and atomically for whom; and
    the programs that have loaded it."""

    __slots__ = ("_readers", "_writer", "epoch", "reach")

    def __init__(self, elements: int) -> None:
        self._writer = np.zeros(elements, np.int32)  # its number and one, so that untouched memory has no writer
        self._readers: Array | None = None  # see `Ordering.loaded`
        self.epoch = np.zeros(elements, np.int32)
        self.reach = np.zeros(elements, np.int8)  # of the atomic that wrote, by REACH; 0 of a store

    def writer(self, index: Array) -> Array:
        """The programs that wrote these elements last, -1 where nobody did."""
        return self._writer[index] - 1

    def note(self, index: Array, owner: Array, reach: int) -> None:
        """`owner` has written these elements, in the order of `index`."""
        self._writer[index] = owner + 1
        self.reach[index] = reach

    def readers(self, index: Array) -> Array:
        """Codes of the programs that have loaded these elements: 0 none, p + 1 the program p before its first release, -1 several
        programs, -2 - k the k-th set of `Ordering`."""
        return np.zeros(index.shape, np.int32) if self._readers is None else self._readers[index]

    def note_readers(self, index: Array, codes: Array) -> None:
        """Replace the codes of these elements; what comes twice in `index` with two codes was loaded by several programs."""
        if self._readers is None:
            self._readers = np.zeros(self._writer.size, np.int32)
        self._readers[index] = codes
        lost = self._readers[index] != codes
        if lost.any():
            self._readers[index[lost]] = _SEVERAL


class Ordering:
    """The clocks of one launch's programs, and those left at memory by address."""

    def __init__(self) -> None:
        self._clocks: dict[int, Clock] = {}
        self._left: dict[int, dict[int, Clock]] = {}  # by scope instance
        # By program and scope instance: its clock at its last release fence; what its relaxed atomics read, for an acquire fence.
        self._fenced: dict[tuple[int, int], Clock] = {}
        self._read: dict[tuple[int, int], Clock] = {}
        self._loads: list[Loads] = []
        self._numbers: dict[Loads, int] = {}

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

    def apart(self, record: Record, index: Array) -> Array:
        """Where a program of another device wrote the element last."""
        return np.zeros(index.shape, np.bool_)

    def wrote(self, record: Record, index: Array, owner: Array, reach: int) -> None:
        """Note who wrote elements, in the order of `index`, and how far that is atomic."""
        record.note(index, owner, reach)
        if self._clocks:
            programs, inverse = np.unique(owner, return_inverse=True)
            own = np.array([self._clocks.get(int(p), {}).get(int(p), 0) for p in programs], np.int32)
            record.epoch[index] = own[inverse.reshape(-1)].reshape(np.shape(owner))

    def loaded(self, record: Record, index: Array, owner: Array) -> None:
        """Note who loads elements: `owner` has the shape of `index`, or one that broadcasts to it."""
        before, owner = record.readers(index), np.broadcast_to(owner, index.shape).astype(np.int32)
        if self._clocks:
            codes = _by_pair(before, owner, self._with_load).astype(np.int32)
        else:
            codes = np.where((before == 0) | (before == owner + 1), owner + 1, np.int32(_SEVERAL))
        record.note_readers(index, codes)

    def unseen_loads(self, record: Record, index: Array, owner: Array) -> Array:
        """Where another program has loaded the element, and `owner` has seen no release of it since."""
        readers = record.readers(index)
        found = (readers != 0) & (readers != owner + 1)
        if self._clocks and found.any():
            found[found] = _by_pair(readers[found], np.broadcast_to(owner, index.shape)[found], self._unseen_load) != 0
        return found

    def reader(self, code: int, owner: int) -> int | None:
        """A program other than `owner` that a code of `Record.readers` names; None when the code keeps none."""
        return next((program for program, _ in sorted(self._loads_of(code)) if program != owner), None)

    def _loads_of(self, code: int) -> Loads:
        return frozenset({(code - 1, 0)}) if code > 0 else self._loads[-2 - code] if code < _SEVERAL else frozenset()

    def _with_load(self, code: int, program: int) -> int:
        """The code of what `code` names together with a load that `program` does now. Loads that it has seen are left out: who is
        ordered behind its load is ordered behind them too."""
        if code == _SEVERAL:
            return code
        seen = self._clocks.get(program, {})
        unseen = {(p, after) for p, after in self._loads_of(code) if p != program and after >= seen.get(p, 0)}
        loads = frozenset({(program, seen.get(program, 0)), *unseen})
        if loads == {(program, 0)}:
            return program + 1
        number = self._numbers.setdefault(loads, len(self._loads))
        if number == len(self._loads):
            self._loads.append(loads)
        return -2 - number

    def _unseen_load(self, code: int, program: int) -> int:
        seen = self._clocks.get(program, {})
        return int(code == _SEVERAL or any(p != program and after >= seen.get(p, 0) for p, after in self._loads_of(code)))

    def _scope_instances(self, reach: int) -> tuple[int, ...]:
        """Those whose programs see what one releases in this scope, and from which it acquires."""
        return (_EVERYBODY,)

    def acquire(self, program: int, addresses: Array, reach: int) -> None:
        """The program has seen what was released at these elements."""
        for instance in self._scope_instances(reach):
            for clock in self._found(addresses, instance):
                _join_clocks(self._clocks.setdefault(program, {program: 0}), clock)

    def read(self, program: int, addresses: Array, reach: int) -> None:
        """A relaxed atomic has read these elements: a fence may acquire what was released there."""
        for instance in self._scope_instances(reach):
            for clock in self._found(addresses, instance):
                _join_clocks(self._read.setdefault((program, instance), {}), clock)

    def hand_over(self, program: int, engine: int) -> None:
        """The engine has seen what the program did up to here."""
        own = self._clocks.setdefault(program, {program: 0})
        own[program] += 1
        _join_clocks(self._clocks.setdefault(engine, {engine: 0}), own)

    def take_over(self, engine: int, program: int) -> None:
        """The program has seen what its engine did, if it had it do anything."""
        if engine in self._clocks:
            self.hand_over(engine, program)

    def fence(self, program: int, acquires: bool, releases: bool, reach: int) -> None:
        """Order what the program did before with what it does now, by its relaxed atomics on either side."""
        own = self._clocks.setdefault(program, {program: 0})
        if acquires:
            for instance in self._scope_instances(reach):
                _join_clocks(own, self._read.get((program, instance), {}))
        if releases:
            own[program] += 1
            self._fenced.update({(program, instance): dict(own) for instance in self._scope_instances(reach)})

    def release(self, program: int, addresses: Array, reach: int) -> None:
        """Whoever acquires one of these elements has seen what the program did up to here."""
        own = self._clocks.setdefault(program, {program: 0})
        own[program] += 1
        for instance in self._scope_instances(reach):
            self._leave(own, addresses, instance)

    def publish(self, program: int, addresses: Array, reach: int) -> None:
        """A relaxed atomic has written these elements: who acquires one has seen what came before the program's last fence."""
        for instance in self._scope_instances(reach):
            if (program, instance) in self._fenced:
                self._leave(self._fenced[program, instance], addresses, instance)

    def _leave(self, own: Clock, addresses: Array, instance: int) -> None:
        left = self._left.setdefault(instance, {})
        joined: dict[int, Clock] = {}  # by what was left at an element before: mostly one clock, or none
        for address in np.unique(addresses).tolist():
            before = left.get(address)
            key = 0 if before is None else id(before)
            if key not in joined:
                clock = dict(own)
                _join_clocks(clock, before or {})
                joined[key] = clock
            left[address] = joined[key]

    def _found(self, addresses: Array, instance: int) -> list[Clock]:
        left = self._left.get(instance)
        if not left:
            return []
        found = {id(clock): clock for a in np.unique(addresses).tolist() if (clock := left.get(a)) is not None}
        return list(found.values())


class OrderingOfLaunch(Ordering):
    """What one of several launches at once asks of the `shared` order of them all: its programs are numbered there from `first`
    on, and so are those that answers name. It runs on the device `rank`; `ranks` tells on which programs of these numbers run."""

    def __init__(self, shared: Ordering, first: int, rank: int, ranks: Callable[[Array], Array]) -> None:
        vars(self).update(vars(shared))  # what all of them add to
        self._first, self._rank, self._ranks = first, rank, ranks

    def unseen(self, record: Record, index: Array, owner: Array) -> Array:
        return super().unseen(record, index, owner + self._first)

    def apart(self, record: Record, index: Array) -> Array:
        return self._ranks(record.writer(index)) != self._rank

    def wrote(self, record: Record, index: Array, owner: Array, reach: int) -> None:
        super().wrote(record, index, owner + self._first, reach)

    def loaded(self, record: Record, index: Array, owner: Array) -> None:
        super().loaded(record, index, owner + self._first)

    def unseen_loads(self, record: Record, index: Array, owner: Array) -> Array:
        return super().unseen_loads(record, index, owner + self._first)

    def reader(self, code: int, owner: int) -> int | None:
        return super().reader(code, owner + self._first)

    def _scope_instances(self, reach: int) -> tuple[int, ...]:
        return (_EVERYBODY, self._rank) if reach == REACH["system"] else (self._rank,)

    def acquire(self, program: int, addresses: Array, reach: int) -> None:
        super().acquire(program + self._first, addresses, reach)

    def read(self, program: int, addresses: Array, reach: int) -> None:
        super().read(program + self._first, addresses, reach)

    def hand_over(self, program: int, engine: int) -> None:
        super().hand_over(program + self._first, engine + self._first)

    def take_over(self, engine: int, program: int) -> None:
        if engine + self._first in self._clocks:
            self.hand_over(engine, program)

    def fence(self, program: int, acquires: bool, releases: bool, reach: int) -> None:
        super().fence(program + self._first, acquires, releases, reach)

    def release(self, program: int, addresses: Array, reach: int) -> None:
        super().release(program + self._first, addresses, reach)

    def publish(self, program: int, addresses: Array, reach: int) -> None:
        super().publish(program + self._first, addresses, reach)


def _by_pair(a: Array, b: Array, function: Callable[[int, int], int]) -> Array:
    """`function` of each pair of elements of two arrays of one shape, computed once for equal pairs."""
    pairs, inverse = np.unique(np.stack([a.reshape(-1), b.reshape(-1)]), axis=1, return_inverse=True)
    return np.array([function(int(x), int(y)) for x, y in pairs.T], np.int64)[inverse.reshape(-1)].reshape(a.shape)


def _join_clocks(clock: Clock, other: Clock) -> None:
    for program, count in other.items():
        if clock.get(program, 0) < count:
            clock[program] = count
