"""What engines get done while the waves wait: which copies come to their end, what they deliver, and what is left at the end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilefw.sim.engine.batch import Batch
from tilefw.sim.memory.counting_barriers import BYTES, MOST_BYTES, BarrierWords, described
from tilefw.sim.memory.engine_copies import EngineCopy
from tilefw.sim.memory.regions import gather, scatter
from tilefw.sim.report import LaunchStopped


def landed(batch: Batch, copies: Sequence[EngineCopy]) -> None:
    """Copies have ended: checks hear of it, and barriers get their bytes. Raises LaunchStopped."""
    for copy in copies:
        for observe in batch.launch.diagnostics.observers.engine_landed:
            observe(batch, copy)
        if copy.barriers is not None:
            _deliver(batch, copy)


def advance(batch: Batch) -> bool:
    """Everybody waits: the engines end copies that somebody waits for, else any; false where there are none."""
    engines = batch.engines
    if not engines.outstanding:
        return False
    random = batch.launch.schedule.random
    awaited = np.concatenate([np.zeros(0, np.int64), *(piece.index for pieces in batch.asked.values() for piece in pieces)])

    def waited_for(copy: EngineCopy) -> np.ndarray:
        none = np.zeros(len(copy.thread), dtype=np.bool_)
        return none if copy.barrier is None else np.isin(copy.barrier, awaited)

    done = engines.finish(waited_for, random)
    if not done:
        done = engines.finish(lambda copy: np.full(len(copy.thread), copy.barriers is not None), random)
    landed(batch, done)
    return bool(done)


def leave(batch: Batch) -> None:
    """The batch has ended: what nobody has waited for is reported, and ends now."""
    for copy in batch.engines.flying:
        for observe in batch.launch.diagnostics.observers.engine_left:
            observe(batch, copy)
    landed(batch, batch.engines.finish(lambda copy: np.ones(len(copy.thread), dtype=np.bool_), None))


def _deliver(batch: Batch, copy: EngineCopy) -> None:
    region, index = copy.barriers, copy.barrier
    assert region is not None and index is not None
    places, of = np.unique(index, return_inverse=True)
    amounts = np.bincount(of.reshape(-1), copy.bytes, len(places)).astype(np.int64)
    parts = BarrierWords.of(gather(region, places, BYTES))
    parts.bytes = parts.bytes - amounts
    bad = ~parts.made | (parts.bytes < -MOST_BYTES)
    if bad.any():
        at = int(np.argmax(bad))
        row = int(np.argmax(index == places[at]))
        _, waves, width = batch.frame.shape
        thread = int(copy.thread[row])
        word = int(gather(region, places[at : at + 1], BYTES)[0])
        batch.launch.diagnostics.reporter.add(
            "barriers", "TFW0824", f"an engine's copy delivers {int(amounts[at])} bytes to a barrier that cannot take them: "
            f"{described(word)}", copy.instruction, count=int(bad.sum()), address=int(places[at]) % max(1, region.stride),
            where=(batch.workgroup(thread // (waves * width)), thread // width % waves, thread % width),
        )
        raise LaunchStopped
    batch.barrier_waits.advanced(places, parts.advance())
    scatter(region.data, region.view(BYTES), places, parts.words(), BYTES)
    batch.barriers_changed = True
