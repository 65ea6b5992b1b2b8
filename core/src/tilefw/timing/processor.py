"""One processor with its resident workgroups, event by event: waves issue in order, wait for results, pipes, memory and each other.

A wave's next instruction may issue when what it reads has arrived, and what it overwrites; then the instruction takes its
scheduler's next turn and its pipe's next room, in the order in which waves become ready. Where a scheduler issues nothing, the time
counts for what the wave that issues next was waiting for.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from tilefw.api.errors import UnsupportedError
from tilefw.timing.chip_timing import ChipTiming, InstructionCost
from tilefw.timing.instruction_facts import BarrierFacts, InstructionFacts, facts_of
from tilefw.timing.memory_levels import MemoryLevels, Traffic
from tilefw.timing.observer import ProcessorObserver
from tilefw.timing.phases import Phases, awaited, begun, phases_of
from tilefw.timing.streams import WaveAccess, WaveStream

ISSUE = "issue"
BARRIER = "barrier"
START = "start of a workgroup"
DRAIN = "last results"
NO_WAVE = "no wave"
COPIES = "asynchronous copies"
ATOMICS = "atomics"
SPILLS = "spills"
LINKS = "other devices"


@dataclass(frozen=True, slots=True)
class Ideal:
    """What a processor does not do that a real one does, to tell what that costs: `barriers` wait for nobody, of loads in `hidden`
    (numbers of instructions) nobody waits for the latency. `spills`: an assembler adds none."""

    barriers: bool = False
    spills: bool = False
    hidden: frozenset[int] = frozenset()


REAL = Ideal()


@dataclass(slots=True)
class Outcome:
    """What a processor did in the `cycles` until its workgroups ended. `limits`: for what cycles went, averaged over schedulers;
    they add up to `cycles`. `busy`: cycles in which a pipe or the way to a level of memory was taken. `stalls`: by instruction and
    cause, cycles that waves waited. `executed`: how often, by instruction. `moved`: bytes through each level. `operations`: of all
    lanes, by pipe. `marks`: when a wave, by its place among all, issued a marked access, by its place in the stream; `ends`: when
    it issued its last instruction."""

    cycles: float = 0.0
    limits: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    busy: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    stalls: dict[int, dict[str, float]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(float)))
    executed: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    moved: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    operations: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    marks: dict[tuple[int, int], float] = field(default_factory=dict)
    ends: dict[int, float] = field(default_factory=dict)


@dataclass(slots=True)
class _Wave:
    stream: WaveStream
    scheduler: int
    group: int
    index: int
    rounds: int
    next: int = 0
    ready: dict[int, tuple[float, str]] = field(default_factory=dict)
    open_copies: float = 0.0
    groups: deque[tuple[float, str]] = field(default_factory=deque)
    copies_cause: str = COPIES
    queues: dict[str, deque[tuple[float, str]]] = field(default_factory=lambda: defaultdict(deque))
    together: dict[str, tuple[float, str]] = field(default_factory=dict)
    at: float = 0.0
    cause: str = ISSUE
    longest: float = 0.0
    longest_cause: str = ISSUE

    @property
    def last(self) -> int:
        """The number of the instruction that it has executed last."""
        return self.stream.instructions[self.next - 1]


@dataclass(slots=True)
class _Gap:
    """Cycles before `end` in which a scheduler has issued nothing for a `cause`: `left` of them so far."""

    end: float
    left: float
    cause: str


class ProcessorModel:
    """One processor of a launch. `active` processors of the chip work at the same time and share what lies beyond. `together`: by
    atomic instruction, the part of the workgroups that want the same addresses. `tells`: what cycles go for; else an outcome has
    its `cycles` alone, in two thirds of the time. `lanes`: of a wave. `observer`: is told of each instruction, where it `tells`."""

    def __init__(
        self, chip: ChipTiming, instructions: Sequence[Any], memory: MemoryLevels, active: int,
        together: Mapping[int, float] = MappingProxyType({}), ideal: Ideal = REAL, tells: bool = True,
        lanes: int = 32, observer: ProcessorObserver | None = None,
    ) -> None:
        self._chip, self._memory, self._ideal, self._tells, self._observer = chip, memory, ideal, tells, observer
        self._queues = {number: max(1.0, part * active) for number, part in together.items()}
        self._static = [facts_of(chip, instruction, lanes) for instruction in instructions]
        self._rates = [_share(chip, place, active) for place in range(len(chip.levels))]

    def run(self, streams: Sequence[WaveStream], rounds: int = 1) -> Outcome:
        """Run the waves of the workgroups that are resident together, from cycle 0 on; with more `rounds`, each workgroup again in
        its own place as soon as it has ended, on other memory."""
        numbers = {number: place for place, number in enumerate(dict.fromkeys(s.workgroup for s in streams))}
        waves = [_Wave(s, i % self._chip.schedulers, numbers[s.workgroup], i, rounds) for i, s in enumerate(streams)]
        how = (self._ideal, self._tells, self._observer)
        return _ProcessorRun(self._chip, self._memory, self._static, self._rates, waves, self._queues, *how).outcome()


class _ProcessorRun:
    """One run. By scheduler: `turn`, when it is free, `issued`, when it last issued, and `gaps` before that. `free`: when a pipe
    (of a scheduler) is, `level_free`: when the way to a level of memory is. By workgroup: `arrived`, waves at its barriers by
    number, and `present`, all it has."""

    def __init__(
        self, chip: ChipTiming, memory: MemoryLevels, static: Sequence[InstructionFacts], rates: Sequence[float],
        waves: Sequence[_Wave], queues: Mapping[int, float], ideal: Ideal, tells: bool, observer: ProcessorObserver | None,
    ) -> None:
        self._queues, self._ideal, self._tells, self._observer = queues, ideal, tells, observer
        self._chip, self._memory, self._static, self._rates, self._waves = chip, memory, static, rates, waves
        self._out = Outcome()
        self._turn = [0.0] * chip.schedulers
        self._issued = [0.0] * chip.schedulers
        self._gaps: list[deque[_Gap]] = [deque() for _ in range(chip.schedulers)]
        self._free: dict[tuple[str, int], float] = defaultdict(float)
        self._level_free = [0.0] * len(chip.levels)
        self._arrived: dict[tuple[int, int], list[_Wave]] = defaultdict(list)
        self._passed: Counter[tuple[int, int]] = Counter()
        self._present = Counter(wave.group for wave in waves)
        self._roles = [one.cost.role for one in static]
        self._phases = {group: self._phases_of(group) for group in self._present}
        self._expecting: dict[tuple[int, tuple[int, int]], list[_Wave]] = defaultdict(list)
        self._woken: list[_Wave] = []

    def _phases_of(self, group: int) -> Phases | None:
        return phases_of([wave.stream for wave in self._waves if wave.group == group], self._roles)

    def outcome(self) -> Outcome:
        waves, out = self._waves, self._out
        heap = [(0.0, wave.index) for wave in waves]
        heapq.heapify(heap)
        while heap:
            index = heapq.heappop(heap)[1]
            while (going := self._step(waves[index])) is None:  # it alone goes on, first of all or not
                index = heapq.heappushpop(heap, (waves[index].at, index))[1]
            for woken in going:
                heapq.heappush(heap, (woken.at, woken.index))
        if any(wave.rounds for wave in waves):
            raise UnsupportedError("waves wait for others that never come: their barriers have no model of time", code="TFW0666")
        results = (max((when for when, _ in wave.ready.values()), default=0.0) for wave in waves)
        out.cycles = max(*self._issued, *self._level_free, *self._free.values(), *results)
        for issued in self._issued if self._tells else ():
            out.limits[DRAIN if issued else NO_WAVE] += out.cycles - issued
        for cause in out.limits:
            out.limits[cause] /= self._chip.schedulers
        return out

    # --- one instruction -------------------------------------------------------------------------------------------------

    def _step(self, wave: _Wave) -> list[_Wave] | None:
        """Issue a wave's next instruction, which is ready at `wave.at`; gives the waves that go on, None for this one alone."""
        number = wave.stream.instructions[wave.next]
        static = self._static[number]
        if static.cost.role == "await" and not self._settled(wave):
            return self._take_woken([])
        issue = self._issue(wave, number, static)
        accesses = wave.stream.accesses.get(wave.next, ())
        self._results(wave, static, issue, accesses)
        if accesses and accesses[0].marked:
            self._out.marks[wave.index, wave.next] = issue
        wave.next += 1
        meeting = static.meeting
        if meeting is not None and not self._ideal.barriers:
            going = self._meet(wave, meeting, issue)
            if meeting.waits:
                return self._take_woken(going)
            self._woken += going
        if wave.next == len(wave.stream.instructions):
            return self._take_woken(self._leave(wave, issue))
        pause = self._chip.issue_interval * static.cost.slots
        if static.branch and wave.stream.instructions[wave.next] != number + 1:
            pause = max(pause, static.cost.latency)  # the wave's next instructions are fetched anew
        self._prepare(wave, issue + pause)
        return self._take_woken([wave]) if self._woken else None

    def _take_woken(self, going: list[_Wave]) -> list[_Wave]:
        if self._woken:
            going += self._woken
            self._woken = []
        return going

    def _issue(self, wave: _Wave, number: int, static: InstructionFacts) -> float:
        """The cycle in which the instruction issues; pipes and turns are taken, waiting is accounted."""
        cost, scheduler = static.cost, wave.scheduler
        if not cost.slots:  # the machine executes nothing for it
            self._out.executed[number] += 1
            self._out.operations[cost.pipe] += cost.operations
            return wave.at
        key = (cost.pipe, scheduler if static.private else 0)
        at, turn, room = wave.at, self._turn[scheduler], self._free[key]
        self._turn[scheduler] = (turn if turn > at else at) + cost.slots
        self._free[key] = (room if room > at else at) + cost.cycles
        issue = max(at, turn, room)
        if not self._tells:
            if issue + cost.slots > self._issued[scheduler]:
                self._issued[scheduler] = issue + cost.slots
            return issue
        cause = cost.pipe if room >= turn else ISSUE
        if issue > at:
            self._waited(wave, number, issue - at, cause)
        out = self._out
        out.busy[cost.pipe] += cost.cycles
        out.executed[number] += 1
        out.operations[cost.pipe] += cost.operations
        if self._observer is not None:
            self._observer.issued(wave.index, number, (at, wave.cause), (issue, cause), cost.slots)
            self._observer.taken(*key, self._free[key] - cost.cycles, cost.cycles)
        self._account(wave, issue, cause, cost.slots)
        return issue

    def _account(self, wave: _Wave, issue: float, cause: str, slots: float) -> None:
        """A scheduler's cycles go to what it issues, and before that to what it waited for. What another wave issues while an
        instruction waits for its pipe takes its cycles from that wait."""
        limits, scheduler = self._out.limits, wave.scheduler
        idle, gaps = self._issued[scheduler], self._gaps[scheduler]
        while gaps and gaps[0].end <= wave.at:
            gaps.popleft()  # waves come in the order of their readiness: nothing issues there any more
        for end, why in ((wave.at, wave.cause), (issue, cause)):
            if end > idle:
                limits[why] += end - idle
                gaps.append(_Gap(end, end - idle, why))
                idle = end
        behind = min(float(slots), issue + slots - idle) if issue + slots > idle else 0.0
        limits[ISSUE] += behind
        early = slots - behind
        for gap in gaps:
            if early and gap.end > issue:
                taken = min(early, gap.left)
                gap.left -= taken
                early -= taken
                limits[gap.cause] -= taken
                limits[ISSUE] += taken
        self._issued[scheduler] = max(idle, issue + slots)

    def _prepare(self, wave: _Wave, earliest: float) -> None:
        """When the wave's next instruction can issue at the soonest, and what it waits for until then."""
        number = wave.stream.instructions[wave.next]
        static = self._static[number]
        at, cause = earliest, ISSUE
        ready = wave.ready
        for register in static.registers:
            if register in ready and ready[register][0] > at:
                at, cause = ready[register]
        for queue, pending in static.limits:
            events = wave.queues[queue]
            while len(events) > pending:
                when, what = events.popleft()
                if when > at:
                    at, cause = when, what
        if static.cost.role == "wait":
            while len(wave.groups) > static.cost.pending:
                when, what = wave.groups.popleft()
                if when > at:
                    at, cause = when, what
        if at > earliest and self._tells:
            self._waited(wave, number, at - earliest, cause)
        wave.at, wave.cause = at, cause

    def _waited(self, wave: _Wave, number: int, cycles: float, cause: str) -> None:
        """A wave's instruction has waited; the longest wait since the last barrier is what the others wait for there."""
        self._out.stalls[number][cause] += cycles
        if cycles > wave.longest:
            wave.longest, wave.longest_cause = cycles, cause

    def _results(self, wave: _Wave, static: InstructionFacts, issue: float, accesses: Sequence[WaveAccess]) -> None:
        """When what the instruction gives is there."""
        cost = static.cost
        done, cause = issue + cost.latency, cost.pipe
        number = wave.stream.instructions[wave.next]
        for access in accesses:
            when, where = self._access(number, cost, issue, access)
            if when > done:
                done, cause = when, where
        if static.writes:
            result, ready = (done, cause), wave.ready
            for register in static.writes:
                ready[register] = result
        if not static.plain:
            self._begun(wave, static, (issue, done), cause, bool(accesses))

    def _begun(self, wave: _Wave, static: InstructionFacts, times: tuple[float, float], cause: str, accesses: bool) -> None:
        """What an instruction has begun that others wait for: its issue, and when what it gives is there, are `times`."""
        cost, (issue, done) = static.cost, times
        if cost.role == "copy":
            if done > wave.open_copies:
                wave.open_copies, wave.copies_cause = done, cause
        elif cost.role == "commit":
            wave.groups.append((wave.open_copies, wave.copies_cause))
            wave.open_copies = 0.0
        for queue, registers, grouped in static.begins:
            if grouped:
                wave.together[queue] = max((done, cause), wave.together.get(queue, (0.0, cause)))
            else:
                self._append(wave, queue, (done, cause))
            for register in registers:
                wave.ready[register] = (0.0, ISSUE)  # a wait of the code, not the processor, orders its readers

        for queue in static.commits:
            self._append(wave, queue, wave.together.pop(queue, (issue, cause)))
        if wave.next in wave.stream.barriers and cost.role != "await":
            self._arrives(wave, cost, done, cause)

    def _append(self, wave: _Wave, queue: str, event: tuple[float, str]) -> None:
        events = wave.queues[queue]
        events.append(max(event, events[-1]) if events else event)

    def _arrives(self, wave: _Wave, cost: InstructionCost, done: float, cause: str) -> None:
        """A wave arrives at barriers that count, or an engine's copy will; with the last that a phase waits for its end is known to
        those that wait for it. They have waited for what kept the wave, or for the barrier itself."""
        phases = self._phases[wave.group]
        if phases is None:
            return
        if cost.role != "bulk":
            cause = wave.longest_cause if wave.longest > cost.latency else BARRIER
            wave.longest = 0.0
        if cost.role == "arrive_behind" and wave.open_copies > done:
            done, cause = wave.open_copies, wave.copies_cause
        for phase in begun(wave.stream, wave.next, self._roles):
            if phases.arrived(phase, done, cause):
                self._woken += self._expecting.pop((wave.group, phase), [])

    def _settled(self, wave: _Wave) -> bool:
        """Whether the phases that a wave waits for have ended by now. If not, the wave comes again when one has."""
        phases = self._phases[wave.group]
        assert phases is not None, "what a workgroup waits for has phases"
        for phase in awaited(wave.stream, wave.next):
            if not phases.complete(phase):
                self._expecting[wave.group, phase].append(wave)
                return False
            when, cause = phases.end(phase)
            if when > wave.at:
                self._waited(wave, wave.stream.instructions[wave.next], when - wave.at, cause)
                wave.at, wave.cause = when, cause
                self._woken.append(wave)
                return False
        return True

    def _access(self, number: int, cost: InstructionCost, issue: float, access: WaveAccess) -> tuple[float, str]:
        """When an access is answered, and by what."""
        chip = self._chip
        done, cause = issue, cost.pipe
        if access.passes:
            key = (chip.shared_pipe, 0)
            begin = max(issue, self._free[key])
            taken = access.passes * chip.shared_pass
            self._free[key] = begin + taken
            self._out.busy[chip.shared_pipe] += taken
            if self._observer is not None:
                self._observer.taken(*key, begin, taken)
            done, cause = begin + taken + cost.latency, chip.shared_pipe
        if access.remote_latency is not None:
            return issue + cost.latency + access.remote_latency, LINKS
        if access.chunks:
            write = access.kind == "write"
            cached = access.kind == "read" and cost.role not in ("copy", "bulk")
            traffic = self._memory.write(access.chunks) if write else self._memory.read(access, cached, number)
            when, where = self._transfer(traffic, issue, 0.0 if number in self._ideal.hidden else 1.0)
            if access.kind == "atomic":
                when, where = max((when, where), self._one_by_one(number, issue, access))
            if cost.role == "bulk":
                when += cost.latency
            if when > done:
                done, cause = when, where
            if write:
                done = issue + cost.latency  # nobody waits for what it writes
        return done, cause

    def _one_by_one(self, number: int, issue: float, access: WaveAccess) -> tuple[float, str]:
        """When an atomic access has had its turn at its address: lanes and workgroups that want one come one after the other."""
        key = (ATOMICS, 0)
        taken = access.repeats * self._queues.get(number, 1.0) * self._chip.atomic_cycles
        self._free[key] = max(issue, self._free[key]) + taken
        self._out.busy[ATOMICS] += taken
        if self._observer is not None:
            self._observer.taken(*key, self._free[key] - taken, taken)
        return self._free[key], ATOMICS

    def _transfer(self, traffic: Traffic, issue: float, latency: float) -> tuple[float, str]:
        levels = self._chip.levels
        done, cause = issue, levels[traffic.level].name
        for place, nbytes in enumerate(traffic.nbytes):
            if nbytes:
                taken = nbytes / self._rates[place]
                begin = max(issue, self._level_free[place])
                self._level_free[place] = begin + taken
                if self._tells:
                    self._out.busy[levels[place].name] += taken
                    self._out.moved[levels[place].name] += nbytes
                if self._observer is not None:
                    self._observer.taken(levels[place].name, 0, begin, taken)
                when = begin + taken + latency * levels[min(place, traffic.level)].latency
                if when > done:
                    done, cause = when, levels[place].name
        return done, cause

    # --- barriers and ends -----------------------------------------------------------------------------------------------

    def _meet(self, wave: _Wave, meeting: BarrierFacts, issue: float) -> list[_Wave]:
        key = (wave.group, meeting.number)
        if meeting.waits:
            wave.at = issue
            self._arrived[key].append(wave)
        else:
            self._passed[key] += 1
        come = len(self._arrived[key]) + self._passed[key]
        if come < (meeting.waves or self._present[wave.group]):
            return []
        return self._release(key, wave, issue + self._chip.barrier)

    def _release(self, key: tuple[int, int], last: _Wave, at: float) -> list[_Wave]:
        """All waves that have met go on. They have waited for what kept the last one, or for the barrier itself."""
        waiting = self._arrived.pop(key)
        self._passed[key] = 0
        cause = last.longest_cause if last.longest > self._chip.barrier else BARRIER
        going = []
        for wave in waiting:
            self._out.stalls[wave.last][cause] += at - wave.at
            wave.longest = 0.0
            if wave.next == len(wave.stream.instructions):
                going += self._leave(wave, at)
                continue
            self._prepare(wave, at)
            if wave.at == at:
                wave.cause = cause
            going.append(wave)
        return going

    def _leave(self, wave: _Wave, issue: float) -> list[_Wave]:
        wave.rounds -= 1
        self._out.ends[wave.index] = issue
        self._present[wave.group] -= 1
        if not self._present[wave.group] and wave.rounds:
            return self._next_round(wave.group, issue)
        going: list[_Wave] = []
        for key in [key for key, waiting in self._arrived.items() if key[0] == wave.group and waiting]:
            meeting = self._static[self._arrived[key][0].last].meeting
            assert meeting is not None, "waves that have met stand behind a barrier"
            if not meeting.waves and len(self._arrived[key]) + self._passed[key] == self._present[wave.group]:
                going += self._release(key, wave, issue + self._chip.barrier)
        return going

    def _next_round(self, group: int, ended: float) -> list[_Wave]:
        """The next workgroup in the place of one that has ended."""
        self._memory.forget()
        coming = [wave for wave in self._waves if wave.group == group]
        self._phases[group] = self._phases_of(group)
        self._present[group] = len(coming)
        for wave in coming:
            wave.next, wave.at, wave.cause = 0, ended + self._chip.workgroup_cycles, START
            wave.ready, wave.open_copies = {}, 0.0
            wave.together.clear()
            wave.groups.clear()
            wave.queues.clear()
        return coming


def _share(chip: ChipTiming, place: int, active: int) -> float:
    """Bytes a cycle of a level that are one processor's."""
    level = chip.levels[place]
    if level.shared_by == "processor":
        return level.bytes_per_cycle
    if level.shared_by == "die":
        return level.bytes_per_cycle / max(1.0, active / chip.dies)
    return level.bytes_per_cycle / max(1, active)
