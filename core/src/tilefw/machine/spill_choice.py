"""Which registers to spill: those that cost least for the register pressure that they relieve.

A spilled register occupies its file only around the instructions that access it. Its cost is the loads and stores there, weighted
by loop depth; accesses in one block share a load where the pressure between them is low. Its gain is the points of high pressure at
which it is live and not accessed: a value whose next use is far away gains most.

The registers that are live at the point of the highest pressure are scored together, as sums over arrays. The best of them are
spilled until a share of the excess at that point is gone; then the pressure has changed, and the next scores are computed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tilefw.api.integers import ceil_div
from tilefw.machine.flow import depths, successors
from tilefw.machine.inst import Function, Inst, Reg, Slice
from tilefw.machine.live_ranges import LivePart, LiveRanges, Segment, merged
from tilefw.machine.spill_model import MEMORY, SpillModel, SpillSlotClass
from tilefw.machine.spill_pressure import RUN, Excess, Points, SpillPressure
from tilefw.machine.table import InstructionTable

_LOOP = 8  # how often a loop is taken to run, in estimates of cost
_SHARES = 16  # of the excess at a point: one look at the scores lets one of them go, at least one register


@dataclass(slots=True)
class RegisterAccess:
    """One instruction that names a register: its number, its block, and how many smallest registers of it are read and written."""

    inst: Inst
    number: int
    block: int
    reads: int
    writes: int


@dataclass(slots=True)
class Choice:
    """A register to spill: to a slot, or (`again`) to be rematerialised by its one instruction wherever it is read.

    Of the instructions that access it, `in_place` take it from its slot; for the others, `accesses`, it is in its file. `loads`: of
    what spill code loaded for several readers, the instructions that did: each reader loads it from the same slot now.
    """

    reg: Reg
    slot_class: SpillSlotClass | None
    again: Inst | None
    accesses: list[RegisterAccess]
    in_place: list[RegisterAccess] = field(default_factory=list)
    loads: Sequence[Inst] = ()

    def stored(self, table: InstructionTable) -> bool:
        """Whether the value comes to its slot from its file: by a store, or by a copy that wrote the file and now writes the slot.
        What is only made in the slot's file, as a product is in its accumulator, and copied out of it, is not."""
        copied = any(_is_copy(access.inst, table) for access in self.in_place if access.writes)
        return copied or any(access.writes for access in self.accesses)

    def insts(self) -> Iterator[Inst]:
        """Every instruction that names the register."""
        yield from (access.inst for access in (*self.accesses, *self.in_place))
        if self.again is not None:
            yield self.again
        yield from self.loads


@dataclass(frozen=True, slots=True)
class SlotReload:
    """What spill code loaded into a register that nothing else writes: from which slot class, and by which instructions."""

    slot_class: SpillSlotClass | None
    insts: Sequence[Inst]


@dataclass(slots=True)
class _Option:
    """A choice with what its score is computed from.

    `kept`: the points at which the register is in its file although it is spilled. `relieved`: columns of start, end and sign, the
    segments of the register, less these points. `gaps`: columns of start, end and weight, each from an access to the next one of
    its block if that reads; where the pressure in a gap is too high, the value is loaded at its end. `always`: the weights of all
    other loads and of the stores. `price`: what a load or a store of weight 1 costs. `holding`: the pressure of the file that the
    new slot takes registers of, None where it takes none. A weight is that of the block, for each
    smallest register that is loaded or stored: of a tuple only the part that an instruction names is.
    """

    choice: Choice
    kept: frozenset[int]
    relieved: Points
    gaps: Points
    always: int
    price: int
    holding: SpillPressure | None


@dataclass(slots=True)
class _Candidate:
    """A register that may be spilled, and the points at which instructions read and write it, some of them twice.

    `option` is the cheapest way to spill it that is not known to have no room, None for none, and `tried` how many slot classes it
    is not. Options are made when they are needed, as asking the model is slow and most candidates are never looked at; until then
    `accesses` is None."""

    reg: Reg
    segments: list[Segment]
    points: list[int] = field(default_factory=list)
    accesses: list[RegisterAccess] | None = None
    option: _Option | None = None
    tried: int = 0


class Chooser:
    """Chooses among the registers of one function, one file after the other."""

    def __init__(
        self, function: Function, ranges: LiveRanges, table: InstructionTable, model: SpillModel,
        pressures: Mapping[str, SpillPressure], reloads: Mapping[Reg, SlotReload] | None = None,
    ) -> None:
        """`pressures`: of each file; they follow the choices. `reloads`: of registers that spill code has loaded."""
        self.ranges, self.table, self.model, self.pressures, self.reloads = ranges, table, model, pressures, reloads or {}
        self.insts = [inst for block in function.blocks for inst in block.insts]
        self.weights = [_LOOP**depth for depth in depths(successors(function, table))]

    def choose(
        self, file: str, most: NDArray[np.int32], parts: Mapping[Reg, Sequence[LivePart]], leaving: Collection[Reg] = ()
    ) -> list[Choice]:
        """Registers to spill, among those of `file` in `parts`, so that at most `most` of it are live at each point; fewer where no
        more can be spilled. Those `leaving` are spilled first."""
        pressure = self.pressures[file]
        excess = Excess(pressure, most)
        if excess.worst() is None and not leaving:
            return []
        candidates = _candidates(parts, excess, leaving)
        self._find_accesses(candidates)
        living = _Living(candidates)
        chosen = self._spill_first(leaving, parts, living, pressure)
        excess.update()
        while (worst := excess.worst()) is not None:
            options = list(self._options_at(worst, living))
            if not options:
                break
            beyond = int(pressure.at[worst] - most[worst])
            until = int(pressure.at[worst]) - ceil_div(beyond, _SHARES)
            for index, option in _best_first(options, excess):
                if int(pressure.at[worst]) <= until:
                    break
                if self._has_room(option, living.candidates[index].segments):
                    self._spill(option, parts[option.choice.reg], pressure)
                    living.remove(index)
                    chosen.append(option.choice)
            excess.update()
        return chosen

    def _spill_first(
        self, leaving: Collection[Reg], parts: Mapping[Reg, Sequence[LivePart]], living: _Living, pressure: SpillPressure
    ) -> list[Choice]:
        """Spill those of the candidates, the cheapest way that has room."""
        chosen: list[Choice] = []
        for index, candidate in enumerate(living.candidates if leaving else ()):
            option = self._cheapest(candidate, candidate.segments[0][0]) if candidate.reg in leaving else None
            if option is not None and self._has_room(option, candidate.segments):
                self._spill(option, parts[candidate.reg], pressure)
                living.remove(index)
                chosen.append(option.choice)
        return chosen

    def _find_accesses(self, candidates: Mapping[Reg, _Candidate]) -> None:
        """The points of each candidate."""
        points = {reg: candidate.points for reg, candidate in candidates.items()}
        of = [points.get(piece.reg) for piece in self.ranges.subregisters.pieces]
        insts = iter(self.insts)
        read = 0
        for its in self.ranges.accesses:
            for reads, writes, inst in zip(its.reads, its.writes, insts, strict=False):
                for subregister in reads:
                    if (found := of[subregister]) is not None:
                        found.append(read)
                for subregister in writes:
                    if (found := of[subregister]) is not None:
                        found.append(read + 1)
                        if inst.predicate is not None:  # spill code loads what a false one keeps
                            found.append(read)
                read += 2

    def _accesses(self, candidate: _Candidate) -> list[RegisterAccess]:
        """What the points of a candidate stand for, in order."""
        points = set(candidate.points)
        found: list[RegisterAccess] = []
        for number in sorted({point // 2 for point in points}):
            inst, block = self.insts[number], bisect_right(self.ranges.starts, number) - 1
            reads = _named(inst.reads(), candidate.reg) if 2 * number in points else 0
            writes = _named(inst.writes(), candidate.reg) if 2 * number + 1 in points else 0
            found.append(RegisterAccess(inst, number, block, reads, writes))
        return found

    def _options_at(self, point: int, living: _Living) -> Iterator[tuple[int, _Option]]:
        """The cheapest way to spill each candidate that is live at a point, if it is not kept there, with its index."""
        for index in living.at(point):
            option = self._cheapest(living.candidates[index], point)
            if option is not None and point not in option.kept:
                yield index, option

    def _cheapest(self, candidate: _Candidate, point: int) -> _Option | None:
        """The cheapest way to spill a candidate; `point` is one at which it is live."""
        if candidate.accesses is None:
            candidate.accesses = self._accesses(candidate)
            candidate.option = self._rematerialised(candidate) or self._loaded_again(candidate) or self._next_option(candidate)
        # The pressure of the files that hold slots only rises, so that what has no room once never has.
        while candidate.option is not None and not self._has_room(candidate.option, candidate.segments, point):
            candidate.option = self._next_option(candidate)
        return candidate.option

    def _has_room(self, option: _Option, segments: Sequence[Segment], first: int = -1) -> bool:
        """Whether there is room for the slot; `first` is a point of the segments at which to look first."""
        pressure, width = option.holding, option.choice.reg.width
        return pressure is None or (int(pressure.at[first]) + width <= pressure.available and pressure.has_room(segments, width))

    def _spill(self, option: _Option, parts: Sequence[LivePart], pressure: SpillPressure) -> None:
        """Count a register as out of its file, except where it is kept, and as in its slot."""
        reg = option.choice.reg
        for part in parts:
            pressure.add(part.segments, -part.width)
        pressure.add_at(option.kept, reg.width)  # where it was live: these runs have changed already
        if option.holding is not None:
            for part in parts:
                option.holding.add(part.segments, part.width)

    def _rematerialised(self, candidate: _Candidate) -> _Option | None:
        """The spilling of a register whose one writer may be repeated anywhere."""
        accesses = candidate.accesses or []
        writers = [access.inst for access in accesses if access.writes]
        if len(writers) != 1 or not _accepted_anywhere(writers[0], candidate.reg, self.table):
            return None
        readers = [access for access in accesses if access.inst is not writers[0]]
        return self._option(Choice(candidate.reg, None, writers[0], readers), candidate)

    def _loaded_again(self, candidate: _Candidate) -> _Option | None:
        """The loading of what was loaded once for several readers, for each of them."""
        reload = self.reloads.get(candidate.reg)
        if reload is None:
            return None
        candidate.tried = len(self.model.slot_classes.get(candidate.reg.cls, ()))
        readers = [access for access in candidate.accesses or [] if access.reads]
        return self._option(Choice(candidate.reg, reload.slot_class, None, readers, loads=reload.insts), candidate)

    def _next_option(self, candidate: _Candidate) -> _Option | None:
        """The way to spill a register to the next slot class, the cheapest first; None behind the last."""
        reg, accesses = candidate.reg, candidate.accesses or []
        slot_classes = self.model.slot_classes.get(reg.cls, ())
        if candidate.tried == len(slot_classes):
            return None
        slot_class = slot_classes[candidate.tried]
        candidate.tried += 1
        in_place = self._in_place(reg, accesses, slot_class)
        numbers = {access.number for access in in_place}
        others = [access for access in accesses if access.number not in numbers]
        return self._option(Choice(reg, slot_class, None, others, in_place), candidate)

    def _option(self, choice: Choice, candidate: _Candidate) -> _Option:
        accesses, slot_class = choice.accesses, choice.slot_class
        kept = {2 * a.number for a in accesses if a.reads} | {2 * a.number + 1 for a in accesses if a.writes}
        relieved = [(*segment, 1) for segment in candidate.segments] + [(point, point + 1, -1) for point in kept]
        gaps: list[tuple[int, int, int]] = []
        always = 0
        last: RegisterAccess | None = None
        for access in accesses:
            weight = self.weights[access.block]
            loaded = weight * (min(access.reads, 1) if slot_class is None else access.reads)  # made again it is a whole
            if access.reads and last is not None and last.block == access.block:
                gaps.append((2 * last.number + 1, 2 * access.number, loaded))
            elif access.reads:
                always += loaded
            if slot_class is not None:
                always += weight * access.writes
            last = access
        price = 1 if slot_class is None else slot_class.cost
        holder = _holder(choice)
        holding = None if holder is None else self.pressures[self.table.file(holder)]
        return _Option(choice, frozenset(kept), _columns(relieved), _columns(gaps), always, price, holding)

    def _in_place(self, reg: Reg, accesses: Sequence[RegisterAccess], slot_class: SpillSlotClass) -> list[RegisterAccess]:
        if slot_class.holder == MEMORY or slot_class.units != 1:
            return []
        return [access for access in accesses if self.model.accepts(access.inst, reg, slot_class.holder)]


class _Living:
    """Which of the candidates are live at a point, by index. Segments are listed by the runs of points that they reach into."""

    __slots__ = ("_ends", "_first", "_of_run", "_owners", "_starts", "candidates")

    def __init__(self, candidates: Mapping[Reg, _Candidate]) -> None:
        self.candidates = list(candidates.values())
        flat = [(*segment, i) for i, candidate in enumerate(self.candidates) for segment in candidate.segments]
        self._starts, self._ends, self._owners = _columns(flat)
        first, last = self._starts // RUN, (self._ends - 1) // RUN
        counts = last - first + 1
        segments = np.repeat(np.arange(len(counts)), counts)
        runs = np.arange(len(segments)) - np.repeat(np.cumsum(counts) - counts - first, counts)
        self._of_run = segments[np.argsort(runs, kind="stable")]
        self._first = np.concatenate(([0], np.cumsum(np.bincount(runs))))

    def at(self, point: int) -> list[int]:
        """The candidates that are live at `point`, ascending."""
        run = point // RUN
        if run + 1 >= len(self._first):
            return []  # behind all candidates
        near = self._of_run[self._first[run] : self._first[run + 1]]
        return self._owners[near[(self._starts[near] <= point) & (point < self._ends[near])]].tolist()

    def remove(self, index: int) -> None:
        """Take a candidate out: from now on it is live nowhere."""
        first, last = np.searchsorted(self._owners, (index, index + 1))
        self._ends[first:last] = 0


def _candidates(
    parts: Mapping[Reg, Sequence[LivePart]], excess: Excess, leaving: Collection[Reg]
) -> dict[Reg, _Candidate]:
    """The registers that are live where the pressure is too high, but for the result of an instruction that the next one reads, and
    those that leave in any case."""
    flat = [(*segment, i) for i, its in enumerate(parts.values()) for part in its for segment in part.segments]
    starts, ends, owners = _columns(flat)
    waits = (starts % 2 == 0) | (ends - starts > 2)
    owners = set(owners[waits & (excess.within(starts, ends) > 0)].tolist())
    found = [(reg, its) for i, (reg, its) in enumerate(parts.items()) if i in owners or reg in leaving]
    return {reg: _Candidate(reg, merged([segment for part in its for segment in part.segments])) for reg, its in found}


def _holder(choice: Choice) -> str | None:
    """The class of which a choice takes registers for a new slot, None for none."""
    slot_class = choice.slot_class
    if slot_class is None or slot_class.holder == MEMORY or slot_class.units != 1 or choice.loads:
        return None
    return slot_class.holder


def _is_copy(inst: Inst, table: InstructionTable) -> bool:
    return table.traits(inst.opcode).move and any(isinstance(use, Slice) for use in inst.uses)


def _named(pieces: Iterable[Slice], reg: Reg) -> int:
    """How many smallest registers of a register the pieces name."""
    return sum(piece.count for piece in set(pieces) if piece.reg is reg)


def _best_first(options: Sequence[tuple[int, _Option]], excess: Excess) -> list[tuple[int, _Option]]:
    """The options with the least cost for what they relieve first; of equal ones those that are given first."""
    count = len(options)
    gains, gaps = [option.relieved for _, option in options], [option.gaps for _, option in options]
    starts, ends, signs = np.concatenate(gains, axis=1)
    gain = np.bincount(_owners(gains), excess.within(starts, ends) * signs, count)
    starts, ends, weights = np.concatenate(gaps, axis=1)
    loads = np.bincount(_owners(gaps), (excess.within(starts, ends) > 0) * weights, count)
    always, prices, widths = np.array([(option.always, option.price, option.choice.reg.width) for _, option in options]).T
    scores: NDArray[np.float64] = np.full(count, np.inf)  # of what relieves nothing, or adds more than it relieves: it comes last
    np.divide((loads + always) * prices, widths * gain, out=scores, where=gain > 0)
    return [options[i] for i in np.argsort(scores, kind="stable").tolist()]


def _owners(columns: Sequence[Points]) -> Points:
    """The index of the array that each column of all arrays together comes from."""
    return np.repeat(np.arange(len(columns)), [each.shape[1] for each in columns])


def _columns(rows: Sequence[tuple[int, int, int]]) -> Points:
    """Three rows as an array, from tuples of three."""
    return np.array(rows, np.int64).reshape(-1, 3).T


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


def as_wholes(parts: Mapping[Reg, Sequence[LivePart]]) -> dict[Reg, list[LivePart]]:
    """Every register as one part, that lives while any of its parts does: what is dead of a tuple may be of no use to another."""
    wholes: dict[Reg, list[LivePart]] = {}
    for reg, its in parts.items():
        wholes[reg] = [LivePart(0, reg.width, merged([segment for part in its for segment in part.segments]))]
    return wholes
