"""Which registers to spill: those that cost least for the register pressure that they relieve.

A spilled register occupies its file only around the instructions that access it. Its cost is the loads and stores there, weighted
by loop depth; accesses in one block share a load where the pressure between them is low. Its gain is the points of high pressure at
which it is live and not accessed: a value whose next use is far away gains most.
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
class RegisterAccess:
    """One instruction that names a register: its number, its block, and what it does there."""

    inst: Inst
    number: int
    block: int
    reads: bool
    writes: bool


@dataclass(slots=True)
class Choice:
    """A register to spill: to a slot, or (`again`) to be rematerialised by its one instruction wherever it is read.

    Of the instructions that access it, `in_place` take it from its slot; for the others, `accesses`, it is in its file, at the
    points `kept`, which are some of those at which it is live.
    """

    reg: Reg
    slot_class: SpillSlotClass | None
    again: Inst | None
    accesses: list[RegisterAccess]
    in_place: list[RegisterAccess] = field(default_factory=list)
    kept: set[int] = field(init=False)
    cost: float = 0.0

    def __post_init__(self) -> None:
        reads = {2 * t.number for t in self.accesses if t.reads}
        self.kept = reads | {2 * t.number + 1 for t in self.accesses if t.writes}


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
        self.accesses: dict[Reg, list[RegisterAccess]] = {}
        self._options: dict[Reg, list[Choice]] = {}
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
                self.accesses.setdefault(reg, []).append(RegisterAccess(inst, number, block, reg in read, reg in written))

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
        """Count a register as out of its file, except where it is accessed, and as in its slot."""
        parts = self.parts[choice.reg]
        for part in parts:
            pressure.add(part, -part.width)
        for point in choice.kept:
            pressure.at[point] += choice.reg.width
        if choice.slot_class is not None and choice.slot_class.holder != MEMORY and choice.slot_class.units == 1:
            for part in parts:
                self.room[self.table.file(choice.slot_class.holder)][0].add(part, part.width)

    def _option(self, reg: Reg, crowding: Crowding) -> Choice | None:
        """The cheapest way to spill a register."""
        for choice in self._options_of(reg):
            slot_class = choice.slot_class
            if slot_class is None:
                choice.cost = self._loads(choice, crowding)
                return choice
            if slot_class.holder == MEMORY or slot_class.units > 1 or self._has_room(reg, slot_class.holder):
                stores = sum(self.weights[t.block] for t in choice.accesses if t.writes)
                choice.cost = slot_class.cost * reg.width * (self._loads(choice, crowding) + stores)
                return choice
        return None

    def _options_of(self, reg: Reg) -> list[Choice]:
        """All ways to spill a register, the cheapest first; found once, as asking the model is slow."""
        if reg not in self._options:
            accesses = self.accesses[reg]
            again = self._made_again(reg, accesses)
            if again is not None:
                self._options[reg] = [Choice(reg, None, again, [t for t in accesses if t.inst is not again])]
            else:
                self._options[reg] = [self._to_slot(reg, accesses, slot_class) for slot_class in
                self.model.slot_classes.get(reg.cls, ())]
        return self._options[reg]

    def _to_slot(self, reg: Reg, accesses: list[RegisterAccess], slot_class: SpillSlotClass) -> Choice:
        in_place = self._in_place(reg, accesses, slot_class)
        return Choice(reg, slot_class, None, [t for t in accesses if t not in in_place], in_place)

    def _made_again(self, reg: Reg, accesses: list[RegisterAccess]) -> Inst | None:
        """The one instruction that writes a register, if it may be repeated anywhere."""
        writers = [t.inst for t in accesses if t.writes]
        return writers[0] if len(writers) == 1 and _accepted_anywhere(writers[0], reg, self.table) else None

    def _in_place(self, reg: Reg, accesses: list[RegisterAccess], slot_class: SpillSlotClass) -> list[RegisterAccess]:
        if slot_class.holder == MEMORY or slot_class.units != 1:
            return []
        return [t for t in accesses if self.model.accepts(t.inst, reg, slot_class.holder)]

    def _has_room(self, reg: Reg, holder: str) -> bool:
        pressure, most = self.room[self.table.file(holder)]
        segments = [segment for part in self.parts[reg] for segment in part.segments]
        return all(int(pressure.at[a:b].max()) + reg.width <= most for a, b in segments)

    def _loads(self, choice: Choice, crowding: Crowding) -> float:
        """How often the register comes back, weighted by loops."""
        loads = 0.0
        last: RegisterAccess | None = None
        for access in choice.accesses:
            kept = last is not None and last.block == access.block and not crowding.between(2 * last.number + 1, 2 * access.number)
            if access.reads and not kept:
                loads += self.weights[access.block]
            last = access
        return loads


def made_again(function: Function, table: InstructionTable) -> set[Reg]:
    """The registers that need no slot, as their one instruction may be repeated anywhere."""
    writers: dict[Reg, list[Inst]] = {}
    for inst in function.insts():
        for piece in inst.writes():
            writers.setdefault(piece.reg, []).append(inst)
    return {reg for reg, insts in writers.items() if len(insts) == 1 and _accepted_anywhere(insts[0], reg, table)}


def _accepted_anywhere(inst: Inst, reg: Reg, table: InstructionTable) -> bool:
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
