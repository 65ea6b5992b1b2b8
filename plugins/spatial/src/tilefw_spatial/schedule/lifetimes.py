"""How long each array is needed, counted in sweeps of the work: rows of one that is no longer needed can become another's.

What the host fills, or another chip sends, has its rows from the beginning, and what the host reads keeps them to the end. The
products of a matrix sweep get their time with the sweep that drains it, so that what they read is needed until then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tilefw_spatial.sweep import Array, MatrixSweep, Sweep, VectorSweep, arrays_of

ALWAYS = -1
"""The birth of what is there before the first sweep."""


@dataclass(frozen=True, slots=True)
class Life:
    """The number of the first sweep that an array is touched by, and of the last; None where it is kept to the end."""

    birth: int = ALWAYS
    death: int | None = None


def lifetimes(arrays: Iterable[Array], sweeps: Sequence[Sweep], kept: Collection[int] = ()) -> dict[int, Life]:
    """The life of each array, by identity. Those of `kept` live from the beginning to the end, whoever touches them."""
    spans = _spans(sweeps)
    found: dict[int, Life] = {}
    for array in arrays:
        span = spans.get(id(array))
        if span is None or id(array) in kept or array.role not in ("temp", "out"):
            found[id(array)] = Life()
        else:
            found[id(array)] = Life(span[0], span[1] if array.role == "temp" else None)
    return found


def _spans(sweeps: Sequence[Sweep]) -> dict[int, tuple[int, int]]:
    spans: dict[int, tuple[int, int]] = {}
    for number, sweep in enumerate(sweeps):
        if isinstance(sweep, MatrixSweep):
            continue  # timed with the sweep that drains it
        together = (sweep, *sweep.drains) if isinstance(sweep, VectorSweep) else (sweep,)
        for array in (array for part in together for array in arrays_of(part)):
            first, _ = spans.get(id(array), (number, number))
            spans[id(array)] = (first, number)
    return spans


def most_alive(lives: Mapping[int, Life], sizes: Mapping[int, int]) -> int:
    """The greatest sum of sizes of arrays that are needed at one time."""
    changes: dict[int, int] = {}
    for key, size in sizes.items():
        life = lives[key]
        changes[life.birth] = changes.get(life.birth, 0) + size
        if life.death is not None:
            changes[life.death + 1] = changes.get(life.death + 1, 0) - size
    most = alive = 0
    for _, change in sorted(changes.items()):
        alive += change
        most = max(most, alive)
    return most
