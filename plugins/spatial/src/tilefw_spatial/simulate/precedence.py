"""How far a burst may go before another that accesses the same rows must go first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilefw.api.integers import ceil_div
from tilefw_spatial.simulate.burst import Burst

_NEVER = np.iinfo(np.int64).max


def points_before(burst: Burst, due: int, other: Burst, other_due: int, *, ties: bool, anywhere: bool) -> int:
    """How many points of `burst`, the first due at `due`, come before the other burst accesses their rows; at least 1.

    `ties`: where both are due in one cycle the other comes first. `anywhere`: the rows of one of them depend on data. Of two bursts
    due in order the first point always comes first."""
    if anywhere:
        return max(1, min(burst.count, ceil_div(other_due - due + (0 if ties else 1), burst.period)))
    rows, other_rows = _span(burst), _span(other)
    if rows[1] < other_rows[0] or other_rows[1] < rows[0]:
        return burst.count
    if burst.step == other.step and burst.step and burst.period == other.period:
        lag, rest = divmod(other.address - burst.address, burst.step)
        # Row i of this burst is row i - lag of the other.
        if rest or other_due - due >= lag * burst.period + (1 if ties else 0):
            return burst.count
    accessed = np.full(max(rows[1], other_rows[1]) + 1 - min(rows[0], other_rows[0]), _NEVER)
    base = min(rows[0], other_rows[0])
    np.minimum.at(accessed, _rows(other) - base, other_due + other.period * np.arange(other.count))
    times = due + burst.period * np.arange(burst.count)
    first = accessed[_rows(burst) - base]
    late = np.flatnonzero(first <= times if ties else first < times)
    return max(1, int(late[0])) if len(late) else burst.count


def _rows(burst: Burst) -> NDArray[np.int64]:
    return burst.address + burst.step * np.arange(burst.count)


def _span(burst: Burst) -> tuple[int, int]:
    end = burst.address + burst.step * (burst.count - 1)
    return min(burst.address, end), max(burst.address, end)
