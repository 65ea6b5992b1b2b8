"""Rows in the order of time: what each read finds, which writes nobody reads. For slices and for accumulators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


@dataclass(slots=True)
class RowAccesses:
    """All accesses of the rows of one slice or plane, as columns. `who` is a burst's number, or below 0 an array of the host's;
    `which` its point; in one cycle lower phases come first."""

    _parts: list[tuple[Numbers, ...]] = field(default_factory=list)

    def add(self, rows: Numbers, times: Numbers | int, phase: int, writes: bool, who: int, which: Numbers | int) -> None:
        """Note accesses, a row each."""
        columns = (rows, times, phase, int(writes), who, which)
        self._parts.append(tuple(np.broadcast_to(np.asarray(column, np.int64), rows.shape) for column in columns))

    def sorted(self) -> OrderedAccesses:
        """All of them by row, then time."""
        row, time, phase, writes, who, which = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        order = np.lexsort((phase, time, row))
        return OrderedAccesses(row[order], time[order], writes[order] != 0, who[order], which[order])


@dataclass(frozen=True, slots=True)
class OrderedAccesses:
    """Accesses by row, then time."""

    row: Numbers
    time: Numbers
    writes: NDArray[np.bool_]
    who: Numbers
    which: Numbers

    def written_by(self) -> Numbers:
        """For each access, the index of the write before it in its row; -1 where there is none."""
        indices = np.arange(len(self.row))
        last = np.maximum.accumulate(np.where(self.writes, indices, -1))
        before = np.concatenate([[-1], last[:-1]])
        return np.where((before >= 0) & (self.row[before] == self.row), before, -1)

    def replaced(self) -> Numbers:
        """Indices of writes whose next access in their row is a write."""
        same = np.concatenate([self.row[1:] == self.row[:-1], [False]])
        return np.flatnonzero(self.writes & same & np.concatenate([self.writes[1:], [False]]))

    def last_unread(self) -> Numbers:
        """Indices of writes that are the last access of their row."""
        return np.flatnonzero(self.writes & np.concatenate([self.row[1:] != self.row[:-1], [True]]))

    def sources(self) -> Numbers:
        """For each access in an order that time does not change: who, which point, which row, who wrote before, which point."""
        before = self.written_by()
        none = np.int64(np.iinfo(np.int64).min)
        who, which = (np.where(before >= 0, column[before], none) for column in (self.who, self.which))
        table: Numbers = np.stack([self.who, self.which, self.row, self.writes.astype(np.int64), who, which], axis=1)
        return table[np.lexsort((self.writes, self.row, self.which, self.who))]


def firsts(ordered: OrderedAccesses, indices: Numbers) -> Iterator[int]:
    """Of accesses of one burst only the earliest."""
    seen: set[int] = set()
    for index in indices[np.argsort(ordered.time[indices], kind="stable")].tolist():
        who = int(ordered.who[index])
        if who not in seen:
            seen.add(who)
            yield index
