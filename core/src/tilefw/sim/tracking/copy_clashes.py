"""Where accesses meet, byte for byte, what copies of engines on their way read and write in memory that all workgroups share.

Whoever writes the bytes that a copy writes as well, or that stand where it reads, changes nothing that anybody sees.
"""

from __future__ import annotations

import numpy as np

from tilefw.sim.floats import Array
from tilefw.sim.memory.engine_copies import EngineCopy
from tilefw.sim.memory.regions import Region, common_alignment, gather, same_bytes
from tilefw.sim.tracking.copies_in_flight import where_in


def meets(copy: EngineCopy, reading: bool, region: Region, index: Array, size: int, values: Array | None) -> Array:
    """Of elements of `size` bytes at flat byte offsets, which the access writes where it has `values`, those that a copy on its way
    is still to write, or where `reading` to read."""
    theirs = copy.read_from if reading else copy.written
    if not len(theirs) or not len(index):
        return np.zeros(len(index), dtype=np.bool_)
    granule = min(common_alignment(index, size), common_alignment(theirs, copy.size))
    at = where_in(_granules(index, size, granule), _granules(theirs, copy.size, granule).reshape(-1))
    met = at >= 0
    if values is not None and met.any():
        same = same_bytes(region, index, values, size, granule) if reading else _equal(copy, values, at, granule)
        met &= ~same
    return np.asarray(met.any(axis=1))


def rows_that_meet(copy: EngineCopy) -> Array:
    """Of the elements that a copy writes, those where another row of it, another thread's, writes other bytes."""
    rows, index = copy.elements(writes=True)
    order = np.argsort(index, kind="stable")
    one, next_one = order[:-1], order[1:]
    found = np.zeros(len(index), dtype=np.bool_)
    met = (index[one] == index[next_one]) & (rows[one] != rows[next_one])
    if met.any() and (coming := _coming(copy, copy.size)) is not None:
        met &= (coming[one] != coming[next_one]).any(axis=1)
    found[next_one] = met
    return found


def _equal(copy: EngineCopy, values: Array, at: Array, granule: int) -> Array:
    """By granule of values, whether the copy brings the same to the granule `at` which it writes."""
    coming = _coming(copy, granule)
    if coming is None:
        return np.zeros(at.shape, dtype=np.bool_)
    mine = np.ascontiguousarray(values)[..., None].view(np.uint8).reshape(*at.shape, granule)
    return (coming[at] == mine).all(axis=2)


def _coming(copy: EngineCopy, granule: int) -> Array | None:
    """The bytes that a copy writes, by granule in its own order; None where they are not its source's."""
    if copy.reduction is not None or copy.filling:
        return None
    if copy.data is None:
        read = gather(copy.source, copy.read_from, copy.size)
    else:
        read = copy.data.reshape(-1) if copy.inside is None else copy.data[copy.inside]
    return np.ascontiguousarray(read)[..., None].view(np.uint8).reshape(-1, granule)


def _granules(index: Array, size: int, granule: int) -> Array:
    return (index // granule)[:, None] + np.arange(max(1, size // granule))
