"""What one launch tells a compiler that binds it: the grid, the scalars, and where the pointers point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class BufferPlacement:
    """Where a pointer argument points: `offset` bytes into storage number `storage`, which has `nbytes` bytes in all.

    Arguments that share memory name one storage.
    """

    storage: int
    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class LaunchArguments:
    """The arguments of one launch, by parameter: a target that wants the facts `scalars` and `grid` compiles for it alone.

    The grid has three extents. Core has put the scalars and the grid's extents into the module as constants by the time that a
    backend sees it; program ids stay.
    """

    grid: tuple[int, int, int]
    scalars: Mapping[str, int | float] = field(default_factory=dict)
    buffers: Mapping[str, BufferPlacement] = field(default_factory=dict)
