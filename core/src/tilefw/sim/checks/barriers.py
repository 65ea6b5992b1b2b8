"""barriers: lanes of a wave come to an aligned barrier together, and every barrier is reached by all it waits for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

import numpy as np

from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.checks.check import Check
from tilefw.sim.engine.batch import Batch
from tilefw.sim.floats import Array
from tilefw.sim.program import Instruction
from tilefw.sim.report import LaunchStopped, first_true


class Barriers(Check):
    """Reports waves of which only some living lanes are at an aligned barrier."""

    name = "barriers"

    def arrived(self, batch: Batch, mask: Array, instruction: Instruction) -> None:
        torn = mask.any(axis=2, keepdims=True) & (batch.alive & ~mask).any(axis=2, keepdims=True)
        if not torn.any():
            return
        a, b, lane = first_true(mask & torn)
        missing = int((batch.alive & ~mask)[a, b].sum()) * batch.lanes_of_mask
        batch.launch.diagnostics.reporter.add(
            self.name, "TFW0807", f"only part of a wave reaches the barrier: {missing} of its lanes are elsewhere", instruction,
            where=(batch.workgroup(a), b, lane), count=int(torn.sum()),
        )


def report_split(batch: Batch, taken: Array, instruction: Instruction) -> None:
    """The code calls a branch uniform, and it splits waves: `taken` are the lanes that follow it."""
    a, b, lane = first_true(taken)
    batch.launch.diagnostics.reporter.add(
        "barriers", "TFW0813", "a branch that the code calls uniform splits a wave", instruction,
        where=(batch.workgroup(a), b, lane), count=int(taken.any(axis=2).sum()),
    )


def report_torn(lanes: NumpyLanes, torn: Array, taken: Array) -> NoReturn:
    """A wave has one program counter, and its lanes disagree on a branch: the launch cannot go on."""
    lanes.launch.diagnostics.reporter.add(
        "barriers", "TFW0813", "the lanes of a wave disagree on a branch, and the chip has one program counter for a wave",
        lanes.instruction, where=lanes.locate(*first_true(torn & taken)), count=int(torn.sum()),
    )
    raise LaunchStopped


def report_deadlock(
    batch: Batch, waiting: list[tuple[Instruction, int, Array]],
    held: Sequence[tuple[Instruction, Array, Callable[[int], str]]] = (),
) -> None:
    """Nobody can go on: say who waits on what, workgroup by workgroup for the first of them. `held` wait for what a workgroup's
    number in the batch tells."""
    everyone = np.zeros(batch.alive.shape, dtype=np.bool_)
    for mask in (*(mask for _, _, mask in waiting), *(mask for _, mask, _ in held)):
        everyone |= mask
    slot, wave, lane = first_true(everyone)
    lines = []
    for instruction, number, mask in waiting:
        if not mask[slot].any():
            continue
        waves = np.nonzero(mask[slot].any(axis=1))[0].tolist()
        what = {-1: "the lanes of its wave", -2: "the other waves of their group"}.get(number, f"barrier {number}")
        place = f" ({instruction.code})" if instruction.code else ""
        threads = int(mask[slot].sum()) * batch.lanes_of_mask
        lines.append(f"{threads} threads of waves {waves} wait on {what} at `{instruction.text}`{place}")
    for instruction, mask, told in held:
        if mask[slot].any():
            waves, place = np.nonzero(mask[slot].any(axis=1))[0].tolist(), f" ({instruction.code})" if instruction.code else ""
            lines.append(f"{int(mask[slot].sum())} threads of waves {waves} wait on {told(slot)} at `{instruction.text}`{place}")
    ended = batch.started - int(batch.alive[slot].sum()) * batch.lanes_of_mask
    if ended:
        lines.append(f"{ended} of {batch.started} threads have ended")
    batch.launch.diagnostics.reporter.add(
        "barriers", "TFW0811", "deadlock: no thread of the workgroup can go on", waiting[0][0] if waiting else held[0][0],
        where=(batch.workgroup(slot), wave, lane), count=int(everyone.any(axis=(1, 2)).sum()), note="; ".join(lines),
    )


def report_absent(batch: Batch, instruction: Instruction) -> None:
    """A sample of the grid polls memory without end."""
    slot, wave, lane = first_true(batch.alive)
    batch.launch.diagnostics.reporter.add(
        "barriers", "TFW0811", "deadlock: what runs of the grid polls memory that nobody changes", instruction,
        where=(batch.workgroup(slot), wave, lane),
        note="only a sample of the grid's programs runs: do they wait for others, as those of a chain or of a lock do?",
    )
