"""Which level of memory answers: caches of a processor line by line, those that processors share by what they share (sharing.py).

Workgroups that are resident at once run side by side, so that a line which several of them want comes from memory once and is then
found in the cache that they share.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from tilefw.api.execution_trace import CHUNK
from tilefw.timing.chip_timing import ChipTiming, MemoryLevel
from tilefw.timing.sharing import Sharing
from tilefw.timing.streams import WaveAccess


@dataclass(slots=True)
class Traffic:
    """What one access moves: the level that answers last, and bytes that come through each level from the second on."""

    level: int
    nbytes: list[float]


class LineCache:
    """A cache of one processor, or its part of one that several share: at most so many lines, by least recent use."""

    def __init__(self, most: int) -> None:
        self._lines: OrderedDict[int, None] = OrderedDict()
        self._most = most

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
    """The memory of one processor whose workgroups are simulated, beside those that share with it.

    `active` processors work. `warm`: bytes of all that the launch may touch, where an earlier launch has left it in the caches
    that hold so much; None: what caches hold at the start is of no use."""

    def __init__(self, chip: ChipTiming, sharing: Sharing, active: int, warm: int | None = None) -> None:
        self._chip = chip
        first = chip.levels[0]
        self._own = _whole(first) if first.shared_by == "processor" else None
        self._outer = chip.levels[1:] if self._own is not None else chip.levels
        self._shift = 1 if self._own is not None else 0
        self._unit = max(1, first.line // CHUNK)
        self._sharing = sharing
        self._parts = [self._part(self._shift + place, active) for place in range(len(self._outer))]
        self._seen = [LineCache(most) for most in self._parts]
        self._holds = [warm is not None and warm <= level.nbytes for level in self._outer[:-1]] + [True]

    def forget(self) -> None:
        """Another workgroup begins: what it wants is new to the processor."""
        self._seen = [LineCache(most) for most in self._parts]
        if self._own is not None:
            self._own = _whole(self._chip.levels[0])

    def _part(self, place: int, active: int) -> int:
        """Lines that are this processor's of a level: each of those that share it has as much of it, and what they have in common
        counts once."""
        level = self._chip.levels[place]
        if place == len(self._chip.levels) - 1:
            return 0
        beside = {"processor": 1.0, "die": active / self._chip.dies, "chip": float(active)}[level.shared_by]
        return int(level.nbytes / max(1.0, beside * self._sharing.usual(place)) / self._chip.levels[0].line)

    def read(self, access: WaveAccess, cached: bool, instruction: int) -> Traffic:
        """Bring what an instruction (its number) reads to the processor; `cached`: the processor's own cache may hold it."""
        moved = [0.0] * len(self._chip.levels)
        own = self._own if cached else None
        lines = access.lines(self._unit)
        if self._own is not None:  # else the first level is among those that `_beyond` counts
            moved[0] = float(len(lines) * self._unit * CHUNK)
        if own is not None:
            lines = [line for line in lines if not own.holds(line)]
        return Traffic(self._beyond(lines, instruction, moved) if lines else 0, moved)

    def write(self, chunks: tuple[int, ...]) -> Traffic:
        """Chunks that leave the processor, for the first level that has held all from the start, or the last."""
        nbytes = float(len(chunks) * CHUNK)
        last = self._shift + self._holds.index(True)
        return Traffic(self._shift, [nbytes if self._shift <= place <= last else 0.0 for place in range(len(self._chip.levels))])

    def _beyond(self, lines: Sequence[int], instruction: int, moved: list[float]) -> int:
        """The level that answers last; its bytes and those of the levels on the way are added."""
        share = float(self._unit * CHUNK)
        for place in range(self._shift, self._shift + len(self._outer)):
            moved[place] += len(lines) * share
            if self._holds[place - self._shift]:
                return place
            holds = self._seen[place - self._shift].holds
            beyond = [line for line in lines if not holds(line)]
            if not beyond:
                return place
            lines = beyond
            share *= self._sharing.part(place, instruction)
        raise AssertionError("the last level answers")


def _whole(level: MemoryLevel) -> LineCache:
    return LineCache(level.nbytes // level.line)
