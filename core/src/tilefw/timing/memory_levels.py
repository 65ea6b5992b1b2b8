"""Which level of memory answers: caches of a processor line by line, those that processors share by who else wants the same line.

Workgroups that are resident at once run side by side, so that a line which several of them want comes from memory once and is then
found in the cache that they share. How many share it is counted over the recorded workgroups; a cache that they share has room for
what they use together, or else a line that was there is as likely to be found as the part of it all that fits.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import numpy as np

from tilefw.api.execution_trace import CHUNK, ExecutionTrace
from tilefw.timing.chip_timing import ChipTiming, MemoryLevel


@dataclass(slots=True)
class Traffic:
    """What one access moves: the level that answers last, and bytes that come through each level from the second on."""

    level: int
    nbytes: list[float]


class LineCache:
    """A cache of one processor, lines by least recent use."""

    def __init__(self, level: MemoryLevel) -> None:
        self._lines: OrderedDict[int, None] = OrderedDict()
        self._most = level.nbytes // level.line

    def holds(self, line: int) -> bool:
        """Whether a line is there; it is from now on."""
        lines = self._lines
        if line in lines:
            lines.move_to_end(line)
            return True
        lines[line] = None
        if len(lines) > self._most:
            lines.popitem(last=False)
        return False


class MemoryLevels:
    """The memory of one processor whose workgroups are simulated, beside those of a recorded launch.

    `warm`: bytes of all that the launch may touch, where an earlier launch has left it in the caches that hold so much; None: what
    caches hold at the start is of no use."""

    def __init__(self, chip: ChipTiming, trace: ExecutionTrace, warm: int | None = None) -> None:
        self._chip = chip
        first = chip.levels[0]
        self._own = LineCache(first) if first.shared_by == "processor" else None
        self._outer = chip.levels[1:] if self._own is not None else chip.levels
        self._shift = 1 if self._own is not None else 0
        self._sharers = [_Sharers(chip, level, trace) for level in self._outer[:-1]]
        self._seen: list[set[int]] = [set() for _ in self._outer]
        self._holds = [warm is not None and warm <= level.nbytes for level in self._outer[:-1]] + [True]

    def forget(self) -> None:
        """Another workgroup begins: what it wants is new to the processor."""
        self._seen = [set() for _ in self._outer]
        if self._own is not None:
            self._own = LineCache(self._chip.levels[0])

    def read(self, chunks: tuple[int, ...], cached: bool, workgroup: int) -> Traffic:
        """Bring chunks to the processor; `cached`: its own cache may hold them."""
        levels = self._chip.levels
        moved = [0.0] * len(levels)
        deepest = 0
        own = self._own if cached else None
        unit = max(1, levels[0].line // CHUNK)
        for line in dict.fromkeys(chunk // unit for chunk in chunks):
            moved[0] += unit * CHUNK
            if own is None or not own.holds(line):
                deepest = max(deepest, self._beyond(line * unit, unit * CHUNK, workgroup, moved))
        return Traffic(deepest, moved)

    def write(self, chunks: tuple[int, ...]) -> Traffic:
        """Chunks that leave the processor, for the first level that has held all from the start, or the last."""
        nbytes = float(len(chunks) * CHUNK)
        last = self._shift + self._holds.index(True)
        return Traffic(self._shift, [nbytes if self._shift <= place <= last else 0.0 for place in range(len(self._chip.levels))])

    def _beyond(self, chunk: int, nbytes: int, workgroup: int, moved: list[float]) -> int:
        """The level that answers; its bytes and those of the levels on the way are added."""
        share = 1.0
        for place in range(len(self._outer)):
            moved[place + self._shift] += nbytes * share
            if self._holds[place]:
                return place + self._shift
            sharers = self._sharers[place]
            seen = self._seen[place]
            if chunk in seen:
                if sharers.fits >= 1.0:
                    return place + self._shift
                share *= 1.0 - sharers.fits
                if sharers.fits > 0.5:
                    return place + self._shift
            else:
                seen.add(chunk)
                share /= sharers.count(chunk, workgroup)
        raise AssertionError("the last level answers")


class _Sharers:
    """How many recorded workgroups of a die, or of the chip, touch a chunk, and what part of all that they touch fits the level."""

    def __init__(self, chip: ChipTiming, level: MemoryLevel, trace: ExecutionTrace) -> None:
        self._dies = chip.dies if level.shared_by == "die" else 1
        self._of_die: list[dict[int, int]] = [{} for _ in range(self._dies)]
        touched: list[list[np.ndarray]] = [[] for _ in range(self._dies)]
        for batch in trace.batches:
            groups = np.array(batch.workgroups)
            found: list[list[np.ndarray]] = [[] for _ in groups]
            for run in batch.runs:
                for access in run.accesses:
                    if access.chunks.shape[1]:
                        slots = np.nonzero(access.waves)[0]
                        for slot in np.unique(slots):
                            found[slot].append(access.chunks[slots == slot].reshape(-1))
            for slot, parts in enumerate(found):
                if parts:
                    unique = np.unique(np.concatenate(parts))
                    touched[int(groups[slot]) % self._dies].append(unique[unique >= 0])
        most = 0
        for die, parts in enumerate(touched):
            if parts:
                chunks, counts = np.unique(np.concatenate(parts), return_counts=True)
                most = max(most, len(chunks) * CHUNK)
                shared = counts > 1
                self._of_die[die] = dict(zip(chunks[shared].tolist(), counts[shared].tolist(), strict=True))
        self.fits = min(1.0, level.nbytes / most) if most else 1.0

    def count(self, chunk: int, workgroup: int) -> int:
        """Workgroups that share a chunk with this one, itself included."""
        return self._of_die[workgroup % self._dies].get(chunk, 1)
