"""What passes between core and a backend that says what launches cost: by that, core chooses how a model is fused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilefw.api.artifact import Artifact


@dataclass(frozen=True, slots=True)
class LaunchWork:
    """What launches do, counted before they are compiled. `bytes_moved` are those of all tensors that a launch is given, each
    whole, once a launch; `operations` are the elements of elementwise rows that are computed, those of a function (an exponential,
    a sine) as several; `multiply_adds` are those of products of matrices."""

    launches: int = 0
    bytes_moved: int = 0
    operations: int = 0
    multiply_adds: int = 0

    def __add__(self, other: LaunchWork) -> LaunchWork:
        return LaunchWork(
            self.launches + other.launches, self.bytes_moved + other.bytes_moved, self.operations + other.operations,
            self.multiply_adds + other.multiply_adds,
        )


@dataclass(frozen=True, slots=True)
class LaunchSequence:
    """Successive launches, one of the ways to compute a part of a model. `compiled` compiles them, for a backend whose cost is of
    machine code: one artifact for each launch, or for each link where the backend links (`Backend.link`)."""

    work: LaunchWork
    compiled: Callable[[], Sequence[Artifact]]


@dataclass(frozen=True, slots=True)
class CostRates:
    """How many bytes a chip moves to and from memory while it begins a launch, computes an element of a row, or multiplies and adds
    once in a product. Where a backend says nothing, those of a chip whose memory is slow beside its arithmetic."""

    launch: float = 131072.0
    operation: float = 0.125
    multiply_add: float = 0.03125

    def cost(self, work: LaunchWork) -> float:
        """The bytes that could have been moved meanwhile, if nothing is done at the same time as anything else."""
        computed = self.operation * work.operations + self.multiply_add * work.multiply_adds
        return self.launch * work.launches + work.bytes_moved + computed
