"""A superlane's part of a plane of the matrix unit: its columns of weights, and its words of accumulators."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilefw_spatial.tick.exact import Number
    from tilefw_spatial.tick.point import TickBurst


@dataclass(slots=True, eq=False)
class TickWeights:
    """What one LW brought: for each column the weights of successive rows of K. `replaced`: the buffer is being loaded anew."""

    dtype: str
    source: TickBurst
    columns: list[list[Number]]
    filled: int = -1
    tainted: bool = False
    replaced: bool = False

    @property
    def depth(self) -> int:
        return len(self.columns[0])


@dataclass(frozen=True, slots=True)
class Accumulator:
    """A row's words of this superlane, as bits."""

    words: tuple[int, ...]
    tainted: bool


@dataclass(slots=True)
class PlanePart:
    """Buffers, what is installed, accumulators by row, and the cycle of the last product."""

    buffers: dict[int, TickWeights] = field(default_factory=dict)
    installed: TickWeights | None = None
    accumulators: dict[int, Accumulator] = field(default_factory=dict)
    last_product: int = -1
