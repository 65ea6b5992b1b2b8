"""Several launches at once in one memory, by turns: each may wait for what another one writes.

In every round each launch that has not ended has one turn, so that none is passed over. Under a seed the order within a round and
the lengths of turns are drawn; now and then all turns of some rounds in a row are long ones. When nobody does anything in many long
turns but poll memory that nobody changes, nobody ever will.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from tilefw.api.device import LaunchReport
from tilefw.cancellation import check_wanted
from tilefw.sim.engine.execution import IDLE_POLLS
from tilefw.sim.engine.launch import RunningLaunch
from tilefw.sim.engine.run import QUANTUM, Room, Turn, kept_regions, run_by_turns
from tilefw.sim.memory.regions import GlobalMemory

DEADLOCK = "TFW0870"
# Under a seed a turn has from 1 to 2**n blocks, short ones as often as long ones, but for the second half of each so many rounds; n
# is drawn for each such half, up to _LONGEST. So some seeds take small steps only, without which a short kernel ends in one turn.
_LONGEST = 9
_ROUNDS = 128
# Long turns of each batch in a row, 512 polls, after which nothing will come; a turn that ends in a new state is this part of one,
# so that a loop which counts is given some 4096 polls.
VAIN_TURNS = 512 // IDLE_POLLS
_NEW_STATE = 1 / 8
# Blocks of a turn of launches that are recorded: short, so that who waits sees each change soon, as it does where all run at once.
_RECORDED = 32
_SHOWN_WORDS = 4  # of each poll


@dataclass(slots=True)
class _RunningByTurns:
    """A launch that has not ended: its newest turn, and since anybody did anything but poll in vain, how many turns of each batch
    (0: of the launch itself, where it waited for room), and the states in which they ended."""

    launch: RunningLaunch
    room: Room
    turns: Generator[Turn, int, LaunchReport] | None = None
    newest: Turn | None = None
    vain: dict[int, float] = field(default_factory=dict)
    states: set[bytes] = field(default_factory=set)

    @property
    def stuck(self) -> bool:
        if self.newest is None or not self.vain:
            return False
        return all(self.vain.get(id(batch), 0) > VAIN_TURNS for batch in self.newest.running)

    def count(self, turn: Turn) -> None:
        """One more turn in vain."""
        if not turn.running:
            self.vain[0] = 1
            return
        batch = turn.running[-1]
        state = batch.state()
        self.vain[id(batch)] = self.vain.get(id(batch), 0) + (1 if state in self.states else _NEW_STATE)
        self.states.add(state)

    def forget(self) -> None:
        """Somebody has done something."""
        self.vain.clear()
        self.states.clear()


def run_jointly(
    launches: Sequence[RunningLaunch], ranks: Sequence[int], memory: GlobalMemory, seed: int
) -> tuple[LaunchReport, ...]:
    """Execute all launches; their reports in their order. One that a check ends, or that stands in a deadlock (TFW0870), ends the
    others, whose reports then tell what they did so far. Launches of one rank share the room of one device."""
    random = np.random.default_rng(seed) if seed else None
    usual = _RECORDED if any(launch.state.options.trace for launch in launches) else QUANTUM
    reports: dict[int, LaunchReport] = {}
    with kept_regions(memory), np.errstate(all="ignore"):
        rooms = {rank: Room() for rank in ranks}
        running = {
            number: _RunningByTurns(launch, rooms[rank])
            for number, (launch, rank) in enumerate(zip(launches, ranks, strict=True))
        }
        try:
            rounds, longest = 0, 0
            while running and not any(report.errors for report in reports.values()):
                if random is not None and rounds % _ROUNDS == 0:
                    longest = int(random.integers(1, _LONGEST + 1))
                rounds += 1
                waiting = all(one.vain for one in running.values())
                long = random is None or rounds % _ROUNDS >= _ROUNDS // 2 or waiting
                order = list(running) if random is None else random.permutation(list(running)).tolist()
                for number in order:
                    check_wanted()
                    one = running[number]
                    blocks = QUANTUM if waiting else usual
                    ended = _turn(one, blocks if random is None or long else int(2 ** random.uniform(0, longest)))
                    if not one.vain:
                        for other in running.values():
                            other.forget()
                    if ended is not None:
                        del running[number]
                        reports[number] = ended
                        if ended.errors:
                            break
                if running and all(one.stuck for one in running.values()):
                    for one in running.values():
                        _report_waiting(one)
                    break
        finally:
            for turns in filter(None, (one.turns for one in running.values())):
                turns.close()
    return tuple(reports.get(number) or _unfinished(launch) for number, launch in enumerate(launches))


def _turn(one: _RunningByTurns, quantum: int) -> LaunchReport | None:
    """One turn of a launch; its report where it has ended."""
    try:
        if one.turns is None:
            one.turns = run_by_turns(one.launch, quantum, one.room)
            one.newest = next(one.turns)
        else:
            one.newest = one.turns.send(quantum)
    except StopIteration as ended:
        one.forget()
        return ended.value
    if one.newest.vain:
        one.count(one.newest)
    else:
        one.forget()
    return None


def _unfinished(launch: RunningLaunch) -> LaunchReport:
    diagnostics = launch.state.diagnostics
    return LaunchReport(diagnostics.reporter.findings, diagnostics.counters.totals())


def _report_waiting(one: _RunningByTurns) -> None:
    """Which workgroups of a launch wait at which instruction for which word."""
    turn, state = one.newest, one.launch.state
    assert turn is not None
    absent = "" if turn.begun else "; other programs of this launch have not begun: the device holds no more at once"
    if not turn.running:
        state.diagnostics.reporter.add(
            "deadlock", DEADLOCK, "waits for room on its device, which launches that wait themselves have taken",
            state.program.instructions[0],
        )
    for batch, poll in ((waiting.batch, poll) for waiting in turn.running for poll in waiting.vain_polls.values()):
        for slot, region, offset in islice(poll.words(), _SHOWN_WORDS):
            state.diagnostics.reporter.add(
                "deadlock", DEADLOCK, "waits for a word that nobody changes", poll.instruction,
                where=(batch.workgroup(slot), 0, 0), address=region.base + offset, other_site=region.base + offset,
                note=f"the word holds {poll.value(region, offset)}{absent}",
            )
