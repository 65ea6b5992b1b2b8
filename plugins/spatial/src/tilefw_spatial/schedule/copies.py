"""Which copy of its array each read of a stream operation takes: two reads of one array at one time need two, in different
slices."""

from __future__ import annotations

from collections import defaultdict
from math import prod

from tilefw_spatial.stream_program import VectorStreamOp


def copy_numbers(stream_op: VectorStreamOp) -> list[int]:
    """The number of the copy for each of the stream operation's reads, as few as will do. What is drained comes from no array:
    0."""
    points = prod(stream_op.domain)
    taken: dict[tuple[int, int], list[int]] = defaultdict(list)
    found: list[int] = []
    for number, read in enumerate(stream_op.reads):
        copy = 0
        if number >= len(stream_op.drains):
            while any(abs(read.time - time) < points for time in taken[id(read.pattern.array), copy]):
                copy += 1
            taken[id(read.pattern.array), copy].append(read.time)
        found.append(copy)
    return found
