"""Threads that wait for what barriers that count, or those of clusters, will tell: held where they ask, and let go to ask again.

A change of a barrier lets everybody go. Where nobody can go on, engines end what they are at; where they have nothing to do either,
waits give up, as those do that have a limit of time. What comes back to its waits again and again stands in a deadlock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tilefw.sim.engine import engines
from tilefw.sim.engine.batch import Batch
from tilefw.sim.engine.divergence import DivergentPath
from tilefw.sim.engine.frame import Frame
from tilefw.sim.floats import Array
from tilefw.sim.memory.counting_barriers import BYTES, described
from tilefw.sim.memory.regions import Region, gather
from tilefw.sim.program import Instruction
from tilefw.sim.steps.prepare import PreparedBlock

# Waits in a row that give up with nothing changed in between, after which nothing ever will.
GIVEN_UP = 64


@dataclass(slots=True)
class _Held:
    """Threads that ask again from the beginning of `block`."""

    block: int
    mask: Array
    stack: tuple[int, ...]
    instruction: Instruction


class Holding:
    """Who is held in one batch."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._held: list[_Held] = []
        self._given_up = 0

    @property
    def empty(self) -> bool:
        return not self._held

    def hold(self, path: DivergentPath, frame: Frame, block: PreparedBlock) -> int | None:
        """A path has asked: the next block where all its threads may go on; else those that may not are held."""
        batch, flow = self._batch, block.flow
        assert flow is not None
        mask = batch.mask_of(path) & batch.alive
        passed = batch.spread(frame, frame.registers[block.flow_destinations[0]])
        waits = mask & ~passed
        if not waits.any():
            return path.block + 1
        frame.finish()
        self._held.append(_Held(path.block, waits, path.stack, flow))
        if (goes := mask & passed).any():
            batch.paths.append(DivergentPath(path.block + 1, goes, path.stack))
        return None

    def resume(self) -> None:
        """A barrier has changed: everybody asks again."""
        self._batch.barriers_changed, self._given_up = False, 0
        self._let_go(0)

    def nobody_else_goes_on(self) -> bool:
        """All that is left waits: let engines work, or waits give up; false where neither helps."""
        if not self._held:
            return False
        if engines.advance(self._batch):
            self._batch.barriers_changed = True
            return True
        self._given_up += 1
        if self._given_up > GIVEN_UP:
            return False
        for held in self._held:
            self._batch.barrier_waits.given_up(np.flatnonzero(np.broadcast_to(held.mask, self._batch.frame.shape)))
        self._let_go(1)
        return True

    def _let_go(self, ahead: int) -> None:
        for held in self._held:
            mask = held.mask & self._batch.alive
            if mask.any():
                self._batch.paths.append(DivergentPath(held.block + ahead, None if mask.all() else mask, held.stack))
        self._held = []
        self._batch.asked.clear()
        self._batch.reconverge()

    def waiting(self) -> list[tuple[Instruction, Array, Callable[[int], str]]]:
        """Who is held: at which instruction, which threads, and by workgroup on what."""
        return [(held.instruction, held.mask, self._told(held.instruction)) for held in self._held]

    def _told(self, instruction: Instruction) -> Callable[[int], str]:
        asked = self._batch.asked.get(instruction.index)

        def told(slot: int) -> str:
            if not asked:
                return "the barrier of the cluster"
            region = asked[0].region
            stride, index = max(1, region.stride), np.unique(np.concatenate([piece.index for piece in asked]))
            words = [self._wanted(region, place) for place in index[index // stride == slot][:3].tolist()]
            return " and ".join(words) or "a barrier of another workgroup"

        return told

    def _wanted(self, region: Region, place: int) -> str:
        """What a barrier still wants, and whether it may have been waited for too late."""
        ended = self._batch.barrier_waits.ended(place)
        word = int(gather(region, np.array([place]), BYTES)[0])
        so_far = f" ({ended} phases of it have ended)" if ended > 1 else ""
        return f"the barrier at {place % max(1, region.stride):#x}, whose {described(word)}{so_far}"
