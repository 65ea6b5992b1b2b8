"""barriers: lanes of a wave come to an aligned barrier together, and every barrier is reached by all it waits for."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilefw.sim.floats import Array
from tilefw.sim.program import Instruction
from tilefw.sim.report import first_true


def check_aligned(batch: Any, mask: Array, instruction: Instruction) -> None:
    """Report waves of which only some living lanes are at an aligned barrier."""
    launch = batch.launch
    if "barriers" not in launch.checks:
        return
    torn = mask.any(axis=2, keepdims=True) & (batch.alive & ~mask).any(axis=2, keepdims=True)
    if not torn.any():
        return
    a, b, lane = first_true(mask & torn)
    missing = int((batch.alive & ~mask)[a, b].sum()) * batch.lanes_of_mask
    launch.reporter.add(
        "barriers", "TFW0807", f"only part of a wave reaches the barrier: {missing} of its lanes are elsewhere", instruction,
        where=(batch.workgroup(a), b, lane), count=int(torn.sum()),
    )


def report_deadlock(batch: Any, waiting: list[tuple[Instruction, int, Array]]) -> None:
    """Nobody can go on: say who waits on what, workgroup by workgroup for the first of them."""
    everyone = np.zeros(batch.alive.shape, dtype=np.bool_)
    for _, _, mask in waiting:
        everyone |= mask
    slot, wave, lane = first_true(everyone)
    lines = []
    for instruction, number, mask in waiting:
        if not mask[slot].any():
            continue
        waves = np.nonzero(mask[slot].any(axis=1))[0].tolist()
        what = "the lanes of its wave" if number < 0 else f"barrier {number}"
        place = f" ({instruction.code})" if instruction.code else ""
        threads = int(mask[slot].sum()) * batch.lanes_of_mask
        lines.append(f"{threads} threads of waves {waves} wait on {what} at `{instruction.text}`{place}")
    ended = batch.started - int(batch.alive[slot].sum()) * batch.lanes_of_mask
    if ended:
        lines.append(f"{ended} of {batch.started} threads have ended")
    batch.launch.reporter.add(
        "barriers", "TFW0811", "deadlock: no thread of the workgroup can go on", waiting[0][0],
        where=(batch.workgroup(slot), wave, lane), count=int(everyone.any(axis=(1, 2)).sum()), note="; ".join(lines),
    )
