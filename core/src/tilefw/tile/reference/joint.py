"""Launches of the reference at once in one memory: every program of all of them is a coroutine, and each may wait for any other.

A program gives way behind each atomic and each turn of a `while` loop; under a seed behind loads and stores too, by chance, and the
order of programs within a round is drawn. Programs of a kernel that neither polls nor has atomics run as batches. Races are looked
for between all programs: their numbers follow each other from launch to launch.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

import numpy as np
from xdsl.dialects import scf
from xdsl.ir import Operation

from tilefw.cancellation import check_wanted
from tilefw.tile.dialect.atomic_ops import AtomicOp
from tilefw.tile.dialect.memory_ops import LoadOp, StoreOp
from tilefw.tile.reference.asynchronous_accesses import ENGINES
from tilefw.tile.reference.interpret import GridRun, OutOfBudget, ProgramFrame, RefReport
from tilefw.tile.reference.ordering import Ordering, OrderingOfLaunch
from tilefw.tile.reference.scheduling import Run
from tilefw.tile.reference.value import Array, EvaluatedValue

# Turns of each program's `while` loops in which nobody has done anything but poll words that nobody changed, after which nobody
# ever will; one that changed what its loop carries, as by counting, may come to something else, and is this part of one.
VAIN_TURNS = 64
_CARRIED_ON = 1 / 64
_GIVES_WAY = 0.25  # how often under a seed, behind a load or a store


@dataclass(frozen=True, slots=True)
class ProgramPoll:
    """A load or an atomic: by which program, where, and what it found."""

    op: Operation
    program: int
    address: Array
    found: Array

    def same(self, other: ProgramPoll | None) -> bool:
        """Whether two polls found the same at the same places."""
        return (
            other is not None and self.op is other.op and np.array_equal(self.address, other.address)
            and np.array_equal(self.found, other.found)
        )


class JointRun(GridRun):
    """One launch of several; `title` names it in reports, `rank` the device that it runs on."""

    title, rank = "the launch", 0
    resident: int | None = None  # programs that run at once at most
    random: np.random.Generator | None = None
    poll: ProgramPoll | None = None
    went_on = False  # the program whose turn it is has come by an op outside all `while` loops: those alone may last for ever
    joint = True

    @cached_property
    def waiting_ops(self) -> frozenset[Operation]:
        """All that is in `while` loops."""
        return frozenset(op for loop in self.function.walk() if isinstance(loop, scf.WhileOp) for op in loop.walk())

    def gives_way(self, op: Operation, frame: ProgramFrame, results: Sequence[EvaluatedValue]) -> bool:
        if not isinstance(op, LoadOp | AtomicOp | StoreOp):
            return False
        self.access.asynchronous.turn()
        if op not in self.waiting_ops:
            self.went_on = True
        elif not isinstance(op, StoreOp):
            self.poll = ProgramPoll(op, int(frame.programs[0]), frame[op.pointer].x, results[0].x)
        return isinstance(op, AtomicOp) or (self.random is not None and self.random.random() < _GIVES_WAY)

    @property
    def progress(self) -> tuple[int, int]:
        """What grows when somebody changes memory."""
        return self.access.changes, self.access.stores

    @property
    def failed(self) -> bool:
        return any(finding.severity == "error" for finding in self.findings.found)

    def _batch(self, start: int, end: int) -> Run:
        yield from super()._batch(start, end)
        self.access.asynchronous.complete(np.arange(start, end))

    def programs(self) -> Iterator[Run]:
        """All that runs of it."""
        alone = any(isinstance(op, AtomicOp | scf.WhileOp) for op in self.function.walk())
        return self.batches(1 if alone else None)

    def following(self, programs: Iterator[Run], running: int) -> list[_RunningProgram]:
        """Those that begin now, where so many run."""
        free = None if self.resident is None else max(0, self.resident - running)
        return [_RunningProgram(self, run) for run in islice(programs, free)]


@dataclass(slots=True)
class _RunningProgram:
    """A program, or a batch of them, that has not ended; `vain` counts its turns of loops in a row that found what they had found
    before."""

    launch: JointRun
    run: Run
    vain: float = 0
    polls: dict[int, ProgramPoll] = field(default_factory=dict)
    newest: ProgramPoll | None = None

    def turn(self) -> tuple[bool, bool]:
        """Whether it has ended, and whether it has done anything but poll in vain."""
        launch, before = self.launch, self.launch.progress
        launch.poll, launch.circled, launch.went_on = None, None, False
        try:
            ended = next(self.run, _ENDED) is _ENDED
        except OutOfBudget:
            return True, True
        poll = launch.poll
        again = poll is None or poll.same(self.polls.get(id(poll.op)))
        if poll is not None:
            self.polls[id(poll.op)] = self.newest = poll
        if ended or launch.went_on or launch.progress != before or not again:
            self.vain = 0
            return ended, True
        if launch.circled is not None and self.newest is not None:
            self.vain += 1 if launch.circled else _CARRIED_ON
        return False, False


_ENDED = object()


def run_jointly(launches: Sequence[JointRun], seed: int) -> tuple[RefReport, ...]:
    """Execute all launches; their reports in their order. One with an error ends the others; where no program can go on, each that
    waits is reported (TFW0870)."""
    began = time.perf_counter()
    random = np.random.default_rng(seed) if seed else None
    _share(launches, random)
    running, left = list[_RunningProgram](), [(launch, launch.programs()) for launch in launches]
    while not any(launch.failed for launch in launches):
        for launch, programs in left:
            running += launch.following(programs, sum(program.launch is launch for program in running))
        if not running:
            break
        order = running if random is None else [running[i] for i in random.permutation(len(running))]
        ended: set[int] = set()
        for program in order:
            check_wanted()
            over, moved = program.turn()
            if over:
                ended.add(id(program))
            if moved:
                for other in running:
                    other.vain = 0
            if program.launch.failed:
                break
        running = [program for program in running if id(program) not in ended]
        stuck = running and all(program.vain > VAIN_TURNS for program in running)
        if stuck and any([launch.access.asynchronous.make_all() for launch in launches]):
            for program in running:
                program.vain = 0
        elif stuck:
            begun = {id(launch): next(programs, None) is None for launch, programs in left}
            for program in running:
                _report_waiting(program, begun[id(program.launch)])
            break
    seconds = time.perf_counter() - began
    return tuple(RefReport(launch.findings.found, launch.counters, seconds) for launch in launches)


def _share(launches: Sequence[JointRun], random: np.random.Generator | None) -> None:
    """One order of accesses for the programs of all launches."""
    shared, firsts = Ordering(), np.cumsum([0, *(launch.counters["programs"] for launch in launches)]).tolist()

    def told(program: int) -> str:
        number = int(np.searchsorted(firsts, program, side="right")) - 1
        return f"program {launches[number].position(program - firsts[number])} of {launches[number].title}"

    by_launch = np.array([launch.rank for launch in launches])

    def ranks(agents: Array) -> Array:
        return by_launch[np.searchsorted(firsts[:-1], agents % ENGINES, side="right") - 1]

    for launch, first in zip(launches, firsts, strict=False):
        launch.random = launch.access.asynchronous.random = random
        launch.access.ordering, launch.access.told = OrderingOfLaunch(shared, first, launch.rank, ranks), told


def _report_waiting(program: _RunningProgram, begun: bool) -> None:
    poll, launch = program.newest, program.launch
    absent = "" if begun else "; other programs of this launch have not begun: the device holds no more at once"
    if poll is None:
        return
    launch.findings.add(
        "deadlock", poll.op, "waits for a word that nobody changes", program=launch.position(poll.program),
        address=int(poll.address.flat[0]), note=f"the word holds {poll.found.flat[0]}{absent}",
    )
