"""Which registers leave their file when too many live at once: those that cost least for the crowding that they take away.

A register in its home stands in its file only around the instructions that touch it. What it costs is the loads and stores there,
by the depth of the loops around them; touches of one block with no crowd between them share one load. What it gains is the crowded
points at which it is live and not touched: a value that waits long for its next use gains most.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tilefw.machine.flow import depths, successors
from tilefw.machine.inst import Function, Inst, Reg, Slice
from tilefw.machine.live_ranges import LivePart, LiveRanges, Segment, merged
from tilefw.machine.spill_model import MEMORY, SpillModel, SpillSlotClass
from tilefw.machine.table import InstructionTable

_LOOP = 8  # how often a loop is taken to run, in estimates of cost


@dataclass(slots=True)
class Touch:
    """One instruction that names a register: its number, its block, and what it does there."""

    inst: Inst
    number: int
    block: int
    reads: bool
    writes: bool


@dataclass(slots=True)
class Choice:
    """A register that leaves: to a home, or (`again`) to be made again by its one instruction wherever it is read.

    Of what touches it, `in_place` takes it where it is at home; for the others, `touches`, it is in its file, at the points `kept`,
    which are some of those at which it lives.
    """

    reg: Reg
    home: SpillSlotClass | None
    again: Inst | None
    touches: list[Touch]
    in_place: list[Touch] = field(default_factory=list)
    kept: set[int] = field(init=False)
    cost: float = 0.0

    def __post_init__(self) -> None:
        reads = {2 * t.number for t in self.touches if t.reads}
        self.kept = reads | {2 * t.number + 1 for t in self.touches if t.writes}


class SpillPressure:
    """How many registers of a file live at each point."""

    def __init__(
        self, ranges: LiveRanges, live: dict[Reg, list[LivePart]], table: InstructionTable, file: str, usable: frozenset[int]
    ) -> None:
        self.at = np.zeros(2 * ranges.starts[-1] + 3, np.int32)
        for reg, parts in live.items():
            if table.file(reg.cls) == file:
                for part in parts:
                    self.add(part, part.width)
        for reg, parts in ranges.fixed.items():
            if reg.cls == file:
                for part in parts:
                    self.add(part, len(usable.intersection(range(part.first, part.first + part.width))))

    def add(self, part: LivePart, count: int) -> None:
        for start, end in part.segments:
            self.at[start:end] += count

    def crowding(self, most: int) -> Crowding | None:
        """Where more than `most` live; None where that is nowhere."""
        crowded = self.at > most
        return Crowding(np.concatenate(([0], np.cumsum(crowded, dtype=np.int32)))) if crowded.any() else None


class Crowding:
    """The crowded points of a file, counted in any stretch of points in constant time."""

    def __init__(self, before: NDArray[np.int32]) -> None:
        """`before`: of each point, how many before it are crowded."""
        self._before = before

    def between(self, start: int, end: int) -> int:
        """How many of the points from `start` up to `end` are crowded."""
        return int(self._before[end] - self._before[start]) if end > start else 0

    def gain(self, segments: Sequence[Segment], kept: Iterable[int]) -> int:
        """How many crowded points lie in the segments of a register, but for those at which it is kept."""
        return sum(self.between(start, end) for start, end in segments) - sum(self.between(point, point + 1) for point in kept)


class _Living:
    """Which of some registers live at a point, in the order in which they are given."""

    def __init__(self, segments: Mapping[Reg, Sequence[Segment]]) -> None:
        self._regs = list(segments)
        flat = np.array([(*segment, i) for i, reg in enumerate(self._regs) for segment in segments[reg]], np.int64).reshape(-1, 3)
        self._starts, self._ends, self._owners = flat.T.copy()

    def at(self, point: int) -> list[Reg]:
        """The registers that live at `point`."""
        return [self._regs[i] for i in self._owners[(self._starts <= point) & (point < self._ends)].tolist()]


class Chooser:
    """Chooses among the registers of one function and one file."""

    def __init__(
        self, function: Function, parts: dict[Reg, list[LivePart]], table: InstructionTable, model: SpillModel, stay: set[Reg],
        room: dict[str, tuple[SpillPressure, int]],
    ) -> None:
        """`stay`: registers that must not leave. `room`: of each file its pressure, and how many registers it has for values."""
        self.function, self.parts, self.table, self.model, self.stay, self.room = function, parts, table, model, stay, room
        self.weights = [_LOOP**depth for depth in depths(successors(function, table))]
        self.touches: dict[Reg, list[Touch]] = {}
        self._ways: dict[Reg, list[Choice]] = {}
        number = 0
        for b, block in enumerate(function.blocks):
            for inst in block.insts:
                self._note(inst, number, b)
                number += 1

    def _note(self, inst: Inst, number: int, block: int) -> None:
        read = {use.reg for use in inst.reads()}
        written = {piece.reg for piece in inst.writes()}
        for reg in read | written:
            if not reg.physical:
                self.touches.setdefault(reg, []).append(Touch(inst, number, block, reg in read, reg in written))

    def choose(self, file: str, most: int) -> list[Choice]:
        """Registers to take out so that at most `most` of `file` live at once; fewer where no more can leave."""
        pressure, _ = self.room[file]
        waiting = [reg for reg in self.parts if self.table.file(reg.cls) == file and reg not in self.stay]
        segments = {reg: merged([segment for part in self.parts[reg] for segment in part.segments]) for reg in waiting}
        living = _Living(segments)
        chosen: list[Choice] = []
        gone: set[Reg] = set()
        while (crowding := pressure.crowding(most)) is not None:
            worst = int(pressure.at.argmax())
            best: Choice | None = None
            score = float("inf")
            for reg in living.at(worst):
                if reg in gone:
                    continue
                choice = self._option(reg, crowding)
                if choice is None or worst in choice.kept:
                    continue
                gain = reg.width * crowding.gain(segments[reg], choice.kept)
                if choice.cost / gain < score:
                    best, score = choice, choice.cost / gain
            if best is None:
                break
            gone.add(best.reg)
            chosen.append(best)
            self._leave(best, pressure)
        return chosen

    def _leave(self, choice: Choice, pressure: SpillPressure) -> None:
        """Count a register as gone from its file, but for where it is touched, and as come to its home."""
        parts = self.parts[choice.reg]
        for part in parts:
            pressure.add(part, -part.width)
        for point in choice.kept:
            pressure.at[point] += choice.reg.width
        if choice.home is not None and choice.home.holder != MEMORY and choice.home.units == 1:
            for part in parts:
                self.room[self.table.file(choice.home.holder)][0].add(part, part.width)

    def _option(self, reg: Reg, crowding: Crowding) -> Choice | None:
        """The cheapest way for a register to leave."""
        for choice in self._ways_of(reg):
            home = choice.home
            if home is None:
                choice.cost = self._loads(choice, crowding)
                return choice
            if home.holder == MEMORY or home.units > 1 or self._has_room(reg, home.holder):
                stores = sum(self.weights[t.block] for t in choice.touches if t.writes)
                choice.cost = home.cost * reg.width * (self._loads(choice, crowding) + stores)
                return choice
        return None

    def _ways_of(self, reg: Reg) -> list[Choice]:
        """All ways for a register to leave, the cheapest first; found once, as a model is slow to say what stands where."""
        if reg not in self._ways:
            touches = self.touches[reg]
            again = self._made_again(reg, touches)
            if again is not None:
                self._ways[reg] = [Choice(reg, None, again, [t for t in touches if t.inst is not again])]
            else:
                self._ways[reg] = [self._way(reg, touches, home) for home in self.model.homes.get(reg.cls, ())]
        return self._ways[reg]

    def _way(self, reg: Reg, touches: list[Touch], home: SpillSlotClass) -> Choice:
        in_place = self._in_place(reg, touches, home)
        return Choice(reg, home, None, [t for t in touches if t not in in_place], in_place)

    def _made_again(self, reg: Reg, touches: list[Touch]) -> Inst | None:
        """The one instruction that writes a register, if it may stand anywhere."""
        writers = [t.inst for t in touches if t.writes]
        return writers[0] if len(writers) == 1 and _stands_anywhere(writers[0], reg, self.table) else None

    def _in_place(self, reg: Reg, touches: list[Touch], home: SpillSlotClass) -> list[Touch]:
        if home.holder == MEMORY or home.units != 1:
            return []
        return [t for t in touches if self.model.stands(t.inst, reg, home.holder)]

    def _has_room(self, reg: Reg, holder: str) -> bool:
        pressure, most = self.room[self.table.file(holder)]
        segments = [segment for part in self.parts[reg] for segment in part.segments]
        return all(int(pressure.at[a:b].max()) + reg.width <= most for a, b in segments)

    def _loads(self, choice: Choice, crowding: Crowding) -> float:
        """How often the register comes back, weighted by loops."""
        loads = 0.0
        last: Touch | None = None
        for touch in choice.touches:
            kept = last is not None and last.block == touch.block and not crowding.between(2 * last.number + 1, 2 * touch.number)
            if touch.reads and not kept:
                loads += self.weights[touch.block]
            last = touch
        return loads


def made_again(function: Function, table: InstructionTable) -> set[Reg]:
    """The registers that need no home, as their one instruction may stand anywhere."""
    writers: dict[Reg, list[Inst]] = {}
    for inst in function.insts():
        for piece in inst.writes():
            writers.setdefault(piece.reg, []).append(inst)
    return {reg for reg, insts in writers.items() if len(insts) == 1 and _stands_anywhere(insts[0], reg, table)}


def _stands_anywhere(inst: Inst, reg: Reg, table: InstructionTable) -> bool:
    """Whether an instruction makes a register from constants alone (see `InstructionTraits.cheap`)."""
    if not table.traits(inst.opcode).cheap or inst.predicate is not None or inst.defs != (reg.whole,):
        return False
    return not (inst.implicit_defs or inst.implicit_uses or any(isinstance(use, Slice) for use in inst.uses))


def as_wholes(parts: dict[Reg, list[LivePart]]) -> dict[Reg, list[LivePart]]:
    """Every register as one part, that lives while any of its parts does: what is dead of a tuple may be of no use to another."""
    wholes: dict[Reg, list[LivePart]] = {}
    for reg, its in parts.items():
        segments = merged([segment for part in its for segment in part.segments])
        wholes[reg] = [LivePart.of(0, reg.width, segments)]
    return wholes
