"""From where everything comes: of two programs with one flow every value is the same, whenever it is computed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

HOST = -1
"""Who accesses rows, where no burst does."""


class Edge(NamedTuple):
    """Values `first` to `first + run - 1` that burst `taker` takes by `field` are those numbered `source_first` on, `stride`
    apart, of burst `source`."""

    taker: int
    field: str
    first: int
    run: int
    source: int
    source_first: int
    stride: int


@dataclass(slots=True)
class StreamFlow:
    """All edges of a program: by lines (and links, weights), and by rows of slices and accumulators, point by point.

    `rows[index]` has, for each access of a row, in an order that time does not change: who accesses, which of its points, who
    wrote last before, which of its points."""

    edges: list[Edge] = field(default_factory=list)
    rows: dict[tuple[object, ...], NDArray[np.int64]] = field(default_factory=dict)

    def difference(self, other: StreamFlow) -> tuple[int, str] | None:
        """A burst that takes something else here than there, and what it takes; None where all is the same."""
        here, there = sorted(self.edges), sorted(other.edges)
        if here != there:
            edge = min({*here} ^ {*there})
            return edge.taker, f"takes by {edge.field} what is not meant for it"
        for index in {**self.rows, **other.rows}:
            mine, theirs = self.rows.get(index), other.rows.get(index)
            text = f"finds in {' '.join(map(str, index))} what is not meant for it"
            if mine is None or theirs is None or mine.shape != theirs.shape:
                return HOST, text
            changed = (mine != theirs).any(axis=1)
            if changed.any():
                return int(theirs[changed][0][0]), text
        return None
