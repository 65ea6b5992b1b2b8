"""Events counted as waves go: when asynchronous copies have landed, and when accesses to shared memory count as made.

Each wave counts the events of each kind (queue and order) that some instruction settles with (`Issue.settles`). An event gets a
stamp: its wave's clock (see checks/races.py) and its number within that clock. What is settled of a wave, as far as another
knows, is a stamp: all events up to it are finished. A wave learns of its own at waits, of others at barriers.
Waves that do the same have the same stamps, so that one number serves for several readers of a place.

Nothing is counted while nobody asks: when races are not looked for and no copy flies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tilefw.sim.engine.frame import Frame
from tilefw.sim.floats import Array
from tilefw.sim.program import Instruction, Program
from tilefw.sim.tracking.queues import Kind, most_left

# A stamp: the number of the kind + 1 (0: a plain clock), the clock, the number within it, from the top.
KIND_SHIFT = 56
CLOCK_SHIFT = 16
LAST_NUMBER = (1 << CLOCK_SHIFT) - 1

def settling_kinds(program: Program) -> tuple[Kind, ...]:
    """The kinds of events that some instruction settles with."""
    return tuple(sorted({(i.queue, i.order) for instruction in program.instructions for i in instruction.issues if i.settles}))


def settled_by(instruction: Instruction) -> Kind | None:
    """The kind of event that finishes what the instruction does in shared memory."""
    return next(((i.queue, i.order) for i in instruction.issues if i.settles), None)


def later(a: Array, b: Array) -> Array:
    """One clock or stamp for two readers of a place: the later; of two events within one clock the earlier, as the waves that
    begin fewer would else be taken to have one that is not finished."""
    one_clock = (a >> KIND_SHIFT > 0) & (a >> CLOCK_SHIFT == b >> CLOCK_SHIFT)
    return np.where(one_clock, np.minimum(a, b), np.maximum(a, b))


class _Kind:
    """One kind's counters, [workgroups, waves]; `stamps` are those of the newest events by number, `settled[g, w, v]` is what wave
    w of workgroup g knows of wave v. `together` neighbouring waves begin each event as one."""

    def __init__(self, groups: int, waves: int, most: int, together: int) -> None:
        self.together = together
        self.issued = np.zeros((groups, waves), dtype=np.int64)
        self.done = np.zeros((groups, waves), dtype=np.int64)
        self.clock = np.zeros((groups, waves), dtype=np.int64)
        self.before = np.zeros((groups, waves), dtype=np.int64)
        self.stamps = np.zeros((groups, waves, most + 2), dtype=np.int64)
        self.settled = np.zeros((groups, waves, waves), dtype=np.int64)
        # Of groups: how many are closed, and by their number the newest event of each and its stamp.
        self.closed = np.zeros((groups, waves), dtype=np.int64)
        self.ends = np.zeros((2, groups, waves, most + 2), dtype=np.int64)


class Events:
    """The counted events of one batch: `frame` is that of all its waves, `clocks` are theirs where a check orders accesses."""

    def __init__(self, frame: Frame, clocks: Array | None, program: Program, kinds: Sequence[Kind]) -> None:
        self._frame = frame
        self._clocks = clocks
        self.watching = clocks is not None and bool(kinds)
        groups, waves, _ = frame.shape
        most: Mapping[str, int] = most_left(program.instructions)
        self._everyone = tuple(axis.reshape(-1) for axis in np.indices((groups, waves)))
        self._numbers = {kind: number for number, kind in enumerate(kinds)}
        self._grouped = {
            (issue.queue, issue.order): instruction.gathers
            for instruction in program.instructions for issue in instruction.issues if issue.grouped
        }
        self._kinds = [_Kind(groups, waves, most.get(kind[0], 0), self._grouped.get(kind, 0)) for kind in kinds]
        self._of_units = np.array([False, *(kind in self._grouped for kind in kinds)])

    def _waves(self, frame: Frame) -> tuple[Array, ...]:
        """(workgroups, waves) that execute in a frame."""
        waves = frame.view.active
        if frame is self._frame and waves is None:
            return self._everyone
        where = tuple(np.broadcast_to(a[:, :, 0], frame.shape[:2]) for a in (frame.group, frame.wave))
        rows = np.ones(frame.shape[:2], dtype=np.bool_) if waves is None else waves[:, :, 0]
        return tuple(axis[rows] for axis in where)

    def begin(self, frame: Frame, kinds: Iterable[Kind]) -> None:
        """The waves of the frame begin an event of each kind."""
        for name in kinds:
            kind, where = self._kinds[self._numbers[name]], self._waves(frame)
            kind.issued[where] += 1
            if self._clocks is not None:
                self._stamp(kind, where, self._clocks)

    def _stamp(self, kind: _Kind, where: tuple[Array, ...], clocks: Array) -> None:
        slots, waves = where
        issued, clock = kind.issued[where], clocks[slots, waves, waves]
        kind.before[where] = np.where(kind.clock[where] == clock, kind.before[where], issued - 1)
        kind.clock[where] = clock
        number = np.minimum(issued - kind.before[where], LAST_NUMBER - 1)
        kind.stamps[slots, waves, issued % kind.stamps.shape[2]] = clock << CLOCK_SHIFT | number

    def close(self, frame: Frame, kinds: Iterable[Kind]) -> None:
        """The events that the waves of the frame have begun since they last did are a group, of each kind."""
        for name in kinds:
            kind, where = self._kinds[self._numbers[name]], self._waves(frame)
            kind.closed[where] += 1
            issued, place = kind.issued[where], kind.closed[where] % kind.ends.shape[3]
            kind.ends[0, *where, place] = issued
            kind.ends[1, *where, place] = kind.stamps[*where, issued % kind.stamps.shape[2]]

    def wait(self, frame: Frame, name: Kind, left: int) -> Array:
        """The waves of the frame wait until at most `left` events of a kind, or groups of them, are unfinished; gives how many
        events of each wave are finished [workgroups, waves]."""
        kind, where = self._kinds[self._numbers[name]], self._waves(frame)
        if name in self._grouped:
            return self._wait_groups(kind, where, left)
        issued = kind.issued[where]
        kind.done[where] = np.maximum(kind.done[where], issued - left)
        if self._clocks is not None:
            # Up to the event before the oldest that may be unfinished; with none left, up to the newest.
            slots, waves = where
            newest = kind.stamps[slots, waves, (issued - max(0, left - 1)) % kind.stamps.shape[2]] - (left > 0)
            known = kind.settled[slots, waves, waves]
            kind.settled[slots, waves, waves] = np.where(issued > left, np.maximum(known, newest), known)
        return kind.done

    def _wait_groups(self, kind: _Kind, where: tuple[Array, ...], left: int) -> Array:
        group = kind.closed[where] - left
        issued, stamp = np.where(group > 0, kind.ends[:, *where, group % kind.ends.shape[3]], 0)
        kind.done[where] = np.maximum(kind.done[where], issued)
        slots, waves = where
        kind.settled[slots, waves, waves] = np.maximum(kind.settled[slots, waves, waves], stamp)
        self._wait_for_neighbours(kind, where, group, issued)
        return kind.done

    @staticmethod
    def _wait_for_neighbours(kind: _Kind, where: tuple[Array, ...], group: Array, issued: Array) -> None:
        """A unit does an event of several waves as one: who waits for its own part has waited for those of its neighbours."""
        slots, waves = where
        for step in range(1, kind.together):
            other = waves // kind.together * kind.together + (waves + step) % kind.together
            there = other < kind.issued.shape[1]
            other = np.minimum(other, kind.issued.shape[1] - 1)
            place = group % kind.ends.shape[3]
            closed = there & (group > 0) & (kind.ends[0, slots, other, place] == issued)
            newest = there & (group > 0) & (kind.issued[slots, other] == issued)
            last = kind.stamps[slots, other, issued % kind.stamps.shape[2]]
            stamp = np.where(closed, kind.ends[1, slots, other, place], np.where(newest, last, 0))
            kind.settled[slots, waves, other] = np.maximum(kind.settled[slots, waves, other], stamp)

    def number(self, frame: Frame, kind: Kind, instruction: Instruction) -> Array:
        """For each wave of the batch, the number of the event that the running instruction has begun."""
        if not self.watching:
            # The first copy: from now on events are counted, this instruction's first.
            self.watching = True
            self.begin(frame, [(i.queue, i.order) for i in instruction.issues if (i.queue, i.order) in self._numbers])
        return self._kinds[self._numbers[kind]].issued

    # --- what the race check asks ------------------------------------------------------------------------------------------

    def settled_arrays(self) -> list[Array]:
        """By kind, what each wave knows of each wave of its workgroup."""
        return [kind.settled for kind in self._kinds]

    def stamp(self, kind: Kind, slots: Array, waves: Array) -> Array:
        """The stamps of the running instruction's events of these waves."""
        number = self._numbers[kind]
        counters = self._kinds[number]
        newest = counters.stamps[slots, waves, counters.issued[slots, waves] % counters.stamps.shape[2]]
        return newest | (number + 1) << KIND_SHIFT

    def of_units(self, stamps: Array) -> Array:
        """Whether these are stamps of grouped events, which go on beside what their own wave does."""
        return self._of_units[stamps >> KIND_SHIFT]

    def settled(self, stamps: Array, slots: Array, waves: Array, others: Array, several: Array) -> Array:
        """Whether these waves know the events of `others` up to the stamps to be finished; of all waves where `several` is true."""
        kinds, plain = stamps >> KIND_SHIFT, stamps & ((1 << KIND_SHIFT) - 1)
        result = np.zeros(stamps.shape, dtype=np.bool_)
        for number, kind in enumerate(self._kinds, 1):
            of_kind = kinds == number
            if of_kind.any():
                known = kind.settled[slots, waves, others]
                if several.any():
                    known = np.where(several, kind.settled.min(axis=2)[slots, waves], known)
                result |= of_kind & (known >= plain)
        return result

    def barrier(self, slot: int, waves: Array, clock: int) -> None:
        """Waves of a workgroup, whose clocks are all `clock`, have met."""
        for kind in self._kinds:
            settled = kind.settled[slot]
            clean = waves[kind.done[slot, waves] == kind.issued[slot, waves]]
            settled[clean, clean] = clock << CLOCK_SHIFT | LAST_NUMBER
            settled[waves] = settled[waves].max(axis=0)

    def barrier_all(self, clocks: Array) -> None:
        """All waves of every workgroup have met; `clocks` [workgroups, 1] are theirs."""
        for kind in self._kinds:
            waves = np.arange(kind.issued.shape[1])
            own = kind.settled[:, waves, waves]
            kind.settled[:, waves, waves] = np.where(kind.done == kind.issued, clocks << CLOCK_SHIFT | LAST_NUMBER, own)
            kind.settled[...] = kind.settled.max(axis=1, keepdims=True)

    def told(self, slot: int, wave: int, clock: int, known: Array | None) -> Array:
        """What a wave knows to be finished, by kind and wave, as it arrives at a barrier that counts, with what is `known` there;
        `clock` is its own, up to which all of it is where nothing of it is unfinished: what it begins then has a later one."""
        for kind in self._kinds:
            if kind.done[slot, wave] == kind.issued[slot, wave]:
                kind.settled[slot, wave, wave] = max(kind.settled[slot, wave, wave], clock << CLOCK_SHIFT | LAST_NUMBER)
        mine = np.stack([kind.settled[slot, wave] for kind in self._kinds]) if self._kinds else self.nothing_told()
        return mine if known is None else np.maximum(mine, known)

    def nothing_told(self) -> Array:
        """What somebody tells who knows of no event."""
        return np.zeros((len(self._kinds), self._frame.shape[1]), np.int64)

    def learn(self, slot: int, wave: int, known: Array) -> None:
        """A wave has passed a barrier where so much is known."""
        for kind, row in zip(self._kinds, known, strict=True):
            kind.settled[slot, wave] = np.maximum(kind.settled[slot, wave], row)
