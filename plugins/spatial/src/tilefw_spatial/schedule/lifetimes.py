"""How long each array is needed, counted in operations of the stream program: rows of one that is no longer needed can become
another's.

What the host fills, or another chip sends, has its rows from the beginning, and what the host reads keeps them to the end. The
products of a matrix stream operation get their time with the stream operation that drains it, so that what they read is needed
until then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tilefw_spatial.stream_program import Array, MatrixStreamOp, StreamOp, VectorStreamOp, arrays_of

ALWAYS = -1
"""The birth of what is there before the first stream operation."""


@dataclass(frozen=True, slots=True)
class Lifetime:
    """The number of the first stream operation that an array is accessed by, and of the last; None where it is kept to the end."""

    birth: int = ALWAYS
    death: int | None = None


def lifetimes(arrays: Iterable[Array], stream_ops: Sequence[StreamOp], kept: Collection[int] = ()) -> dict[int, Lifetime]:
    """The life of each array, by identity. Those of `kept` live from the beginning to the end, whoever accesses them."""
    spans = _spans(stream_ops)
    found: dict[int, Lifetime] = {}
    for array in arrays:
        span = spans.get(id(array))
        if span is None or id(array) in kept or array.role not in ("temp", "out"):
            found[id(array)] = Lifetime()
        else:
            found[id(array)] = Lifetime(span[0], span[1] if array.role == "temp" else None)
    return found


def _spans(stream_ops: Sequence[StreamOp]) -> dict[int, tuple[int, int]]:
    spans: dict[int, tuple[int, int]] = {}
    for number, stream_op in enumerate(stream_ops):
        if isinstance(stream_op, MatrixStreamOp):
            continue  # timed with the stream operation that drains it
        together = (stream_op, *stream_op.drains) if isinstance(stream_op, VectorStreamOp) else (stream_op,)
        for array in (array for part in together for array in arrays_of(part)):
            first, _ = spans.get(id(array), (number, number))
            spans[id(array)] = (first, number)
    return spans


def most_alive(lives: Mapping[int, Lifetime], sizes: Mapping[int, int]) -> int:
    """The greatest sum of sizes of arrays that are needed at one time."""
    changes: dict[int, int] = {}
    for key, size in sizes.items():
        lifetime = lives[key]
        changes[lifetime.birth] = changes.get(lifetime.birth, 0) + size
        if lifetime.death is not None:
            changes[lifetime.death + 1] = changes.get(lifetime.death + 1, 0) - size
    most = alive = 0
    for _, change in sorted(changes.items()):
        alive += change
        most = max(most, alive)
    return most
