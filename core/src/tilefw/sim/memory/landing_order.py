"""Which of the copies in flight land now, in parts where a part of one is finished, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, Self, TypeVar

import numpy as np

from tilefw.sim.floats import Array

Random = np.random.Generator | None


class Divisible(Protocol):
    """A copy with elements, or rows, that land by themselves."""

    def part(self, chosen: Array) -> Self:
        """The chosen ones as a copy of their own."""
        ...


Moving = TypeVar("Moving", bound=Divisible)


def landed(flying: Sequence[Moving], finished: Callable[[Moving], Array], random: Random) -> tuple[list[Moving], list[Moving]]:
    """What is `finished`, in the order of the starts or in one that the seed permutes, and what flies on."""
    landing: list[Moving] = []
    rest: list[Moving] = []
    for copy in flying:
        done = finished(copy)
        if done.all():
            landing.append(copy)
        elif done.any():
            landing.append(copy.part(done))
            rest.append(copy.part(~done))
        else:
            rest.append(copy)
    if random is not None:
        landing = [landing[i] for i in random.permutation(len(landing)).tolist()]
    return landing, rest
