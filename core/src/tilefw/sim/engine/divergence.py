"""Divergent paths: threads that are at one place of the program. A path splits at branches, and paths reconverge at one block."""

from __future__ import annotations

from dataclasses import dataclass

from tilefw.sim.floats import Array


@dataclass(slots=True)
class DivergentPath:
    """Threads at block `block`.

    `mask` is a full mask, None for every thread of the batch: [workgroups, waves, lanes], or [workgroups, waves, 1] where a program
    counter belongs to a wave. `stack` holds the blocks to return to. `ready` and `polls` are when it became ready, in blocks and
    polls of the batch, -1 while it runs. `part` is the part of the waves that it belongs to under a seed, -1 before it is sorted.
    """

    block: int
    mask: Array | None
    stack: tuple[int, ...] = ()
    ready: int = -1
    polls: int = 0
    part: int = -1
