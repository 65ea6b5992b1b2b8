"""Which programs of a large launch a simulator runs, where running all would take hours: the first, the last, and some by a seed.

The interpreter runs all of them. Elements that the chosen programs write are judged; the device is given the interpreter's for the
others, so that the next launch has its inputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

USUAL_PROGRAMS = 64  # programs: one batch of a simulator's


@dataclass(frozen=True, slots=True)
class LaunchSample:
    """At most `programs` programs of each launch, at least two."""

    programs: int
    seed: int = 0

    def of(self, grid: tuple[int, int, int], number: int) -> tuple[int, ...] | None:
        """The numbers of the programs of launch `number` that run, in order; None for all of them."""
        count = prod(grid)
        wanted = max(2, self.programs)
        if count <= wanted:
            return None
        between = np.random.default_rng((self.seed, number)).choice(count - 2, wanted - 2, replace=False)
        return (0, *(int(program) + 1 for program in np.sort(between)), count - 1)


def sample_of(programs: int | None, seed: int) -> LaunchSample | None:
    """A sample of so many programs of each launch, as many as are usual where nobody says it; None where all run (0)."""
    wanted = USUAL_PROGRAMS if programs is None else programs
    return LaunchSample(wanted, seed) if wanted else None
