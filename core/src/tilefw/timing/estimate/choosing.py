"""Which configurations of a kernel are worth timing in detail, by their estimates."""

from __future__ import annotations

BAND = 0.15
"""How far estimates of most kernels' configurations are apart from the detailed model, beside a factor of all: bench/ranking.md has
those that are further."""
TIMED_PART = 1 / 25
"""The part of all configurations that is timed in detail at most."""


def may_be_faster(seconds: float, best: float) -> bool:
    """Whether a configuration may be faster than the `best` by estimates, which are both within the band of what is true."""
    return seconds * (1 - 2 * BAND) < best
