"""Which copy of its array each read of a sweep takes: two reads of one array at one time need two, in different slices."""

from __future__ import annotations

from collections import defaultdict
from math import prod

from tilefw_spatial.sweep import VectorSweep


def copy_numbers(sweep: VectorSweep) -> list[int]:
    """The number of the copy for each of the sweep's reads, as few as will do. What is drained comes from no array: 0."""
    points = prod(sweep.domain)
    taken: dict[tuple[int, int], list[int]] = defaultdict(list)
    found: list[int] = []
    for number, read in enumerate(sweep.reads):
        copy = 0
        if number >= len(sweep.drains):
            while any(abs(read.time - time) < points for time in taken[id(read.walk.array), copy]):
                copy += 1
            taken[id(read.walk.array), copy].append(read.time)
        found.append(copy)
    return found
