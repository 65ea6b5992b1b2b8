"""Accesses of elements in rounds: what names one element several times is carried out one after the other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tilefw.tile.reference.value import Array


def rounds(index: Array) -> Iterator[Array]:
    """The positions in `index`, divided into rounds. A round has no element twice; accesses of one element keep their order."""
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    positions = np.arange(index.size)
    first = np.ones(index.size, np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    if first.all():
        yield positions
        return
    rank = positions - np.maximum.accumulate(np.where(first, positions, 0))
    by_rank = np.argsort(rank, kind="stable")
    ends = np.cumsum(np.bincount(rank))[:-1]
    yield from np.split(order[by_rank], ends)
