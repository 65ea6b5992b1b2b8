"""Which stream operations an array needs: backwards through what is read and written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilefw_spatial.isa import TYPES
from tilefw_spatial.stream_program import Array, LinkStreamOp, StreamOp, VectorStreamOp, reads_of, writes_of


def sources_of(stream_op: StreamOp) -> list[Array]:
    """The arrays that a stream operation reads, and those that the products read that it drains."""
    drains = stream_op.drains if isinstance(stream_op, VectorStreamOp) else ()
    return reads_of(stream_op) + [array for drained in drains for array in reads_of(drained)]


def needed(stream_ops: Sequence[StreamOp], arrays: Iterable[Array]) -> list[StreamOp]:
    """Those of the stream operations that make the arrays and what they are made of, in their order."""
    wanted = {id(array) for array in arrays}
    kept: set[int] = set()
    for stream_op in reversed(stream_ops):
        if any(id(array) in wanted for array in writes_of(stream_op)):
            kept.add(id(stream_op))
            wanted |= {id(array) for array in sources_of(stream_op)}
            if isinstance(stream_op, VectorStreamOp):
                kept |= {id(drained) for drained in stream_op.drains}
    return [stream_op for stream_op in stream_ops if id(stream_op) in kept]


def touched(stream_ops: Iterable[StreamOp]) -> dict[int, Array]:
    """The arrays that stream operations read or write, by identity."""
    return {id(array): array for stream_op in stream_ops for array in (*sources_of(stream_op), *writes_of(stream_op))}


LINK_VECTORS = 256
"""The most vectors that one link operation sends: its slices do nothing else while it lasts."""


def sent(source: int, array: Array, *targets: tuple[int, Array], count: int | None = None) -> list[LinkStreamOp]:
    """The first `count` vectors of an array (None: all) on their way to others of the same shape, byte plane by byte plane."""
    count = array.vectors if count is None else count
    return [
        LinkStreamOp(source, array, byte, first, min(LINK_VECTORS, count - first), targets)
        for byte in range(TYPES[array.dtype].nbytes) for first in range(0, count, LINK_VECTORS)
    ]
