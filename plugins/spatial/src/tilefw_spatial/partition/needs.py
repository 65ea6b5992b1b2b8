"""Which sweeps an array needs: backwards through what is read and written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilefw_spatial.isa import TYPES
from tilefw_spatial.sweep import Array, LinkSweep, Sweep, VectorSweep, reads_of, writes_of


def sources_of(sweep: Sweep) -> list[Array]:
    """The arrays that a sweep reads, and those that the products read that it drains."""
    drains = sweep.drains if isinstance(sweep, VectorSweep) else ()
    return reads_of(sweep) + [array for drained in drains for array in reads_of(drained)]


def needed(sweeps: Sequence[Sweep], arrays: Iterable[Array]) -> list[Sweep]:
    """Those of the sweeps that make the arrays and what they are made of, in their order."""
    wanted = {id(array) for array in arrays}
    kept: set[int] = set()
    for sweep in reversed(sweeps):
        if any(id(array) in wanted for array in writes_of(sweep)):
            kept.add(id(sweep))
            wanted |= {id(array) for array in sources_of(sweep)}
            if isinstance(sweep, VectorSweep):
                kept |= {id(drained) for drained in sweep.drains}
    return [sweep for sweep in sweeps if id(sweep) in kept]


def touched(sweeps: Iterable[Sweep]) -> dict[int, Array]:
    """The arrays that sweeps read or write, by identity."""
    return {id(array): array for sweep in sweeps for array in (*sources_of(sweep), *writes_of(sweep))}


TRAIN = 256
"""The most vectors that a link sweep sends: its slices do nothing else while it lasts."""


def sent(source: int, array: Array, *targets: tuple[int, Array], count: int | None = None) -> list[LinkSweep]:
    """The first `count` vectors of an array (None: all) on their way to others of the same shape, byte plane by byte plane."""
    count = array.vectors if count is None else count
    return [
        LinkSweep(source, array, byte, first, min(TRAIN, count - first), targets)
        for byte in range(TYPES[array.dtype].nbytes) for first in range(0, count, TRAIN)
    ]
