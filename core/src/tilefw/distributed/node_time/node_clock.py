"""The clock of a node: it is given the launches of all ranks and the copies of engines in their order, and tells their time.

What a launch executed is not kept, only what it says to other ranks and when: a whole model is timed launch by launch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tilefw.distributed.engine_copies import RankCopy
from tilefw.distributed.links.flows import LinkTransfer
from tilefw.distributed.links.system import System
from tilefw.distributed.node_time.communication import RankAddresses
from tilefw.distributed.node_time.critical_path import PathStep, critical_path, parts
from tilefw.distributed.node_time.rank_execution import ExecutedLaunch, RankExecutions
from tilefw.distributed.node_time.replay import Replay
from tilefw.distributed.symmetric_heap import BASE_STEP
from tilefw.timing.chip_timing import ChipTiming


@dataclass(frozen=True, slots=True)
class RankTime:
    """One rank: when its last launch ended, and the bytes that went to it and from it by its own doing."""

    rank: int
    seconds: float
    nbytes: int


@dataclass(frozen=True, slots=True)
class RankLaunchTime:
    """A launch of a rank: it was begun `begin` seconds after the first of the node, its workgroups ran from `started` to `end`.
    `communicates`: with other ranks."""

    rank: int
    name: str
    begin: float
    started: float
    end: float
    communicates: bool


@dataclass(frozen=True)
class NodeTime:
    """`seconds` of all launches of a node on a system of its devices, in `cycles` of their processors' clock. `parts`: what the
    seconds go for along the critical path `path`: `launch` of kernels, `compute`, `transfers` of data, `signals` that somebody
    waits for. `launches` are in the order in which they were made. Nothing of it is measured."""

    system: str
    seconds: float
    cycles: float
    parts: Mapping[str, float]
    ranks: tuple[RankTime, ...]
    launches: tuple[RankLaunchTime, ...]
    path: tuple[PathStep, ...] = field(repr=False)
    replay: Replay = field(repr=False)


@dataclass(frozen=True, slots=True)
class _ReplayedLaunch:
    """A launch of a rank in the replay: its beginning, its end."""

    rank: int
    name: str
    begun: LinkTransfer
    ended: LinkTransfer
    communicates: bool

    def timed(self) -> RankLaunchTime:
        begin, started, end = (1e-6 * one for one in (self.begun.begin, self.begun.sent, self.ended.sent))
        return RankLaunchTime(self.rank, self.name, begin, started, end, self.communicates)


class NodeClock:
    """Launches of `ranks` whose heaps begin at `bases`, on devices of a chip that a system joins."""

    def __init__(self, chip: ChipTiming, system: System, bases: Sequence[int]) -> None:
        self._chip, self._system, self._bases = chip, system, bases
        self._replay = Replay(system, len(bases), chip.clock_hz, chip.workgroup_cycles)
        self._executions = RankExecutions(chip)
        self._made: list[_ReplayedLaunch] = []

    def launch(self, one: ExecutedLaunch) -> None:
        """A launch behind the others of its rank. Raises LaunchError TFW0342."""
        addresses = RankAddresses(one.rank, self._rank_of, lambda peer, nbytes: self._answer(one.rank, peer, nbytes))
        workgroups = self._executions.of(one, addresses)
        begun, ended = self._replay.add(one.rank, self._chip.launch_seconds * 1e6, workgroups)
        communicates = any(event.reads or event.writes for workgroup in workgroups for event in workgroup.events)
        self._made.append(_ReplayedLaunch(one.rank, one.name, begun, ended, communicates))

    def copy(self, one: RankCopy) -> None:
        """A copy of an engine behind the launches so far. Starting one takes the host as long as starting a launch."""
        self._replay.copy(one, self._chip.launch_seconds * 1e6)

    def time(self) -> NodeTime:
        """The time of all so far, which ends the clock."""
        replay = self._replay
        microseconds = replay.play() if replay.steps else 0.0
        path = critical_path(replay.network.transfers, replay.steps) if replay.steps else []
        found = {name: taken * 1e-6 for name, taken in parts(path).items()}
        seconds, launches = microseconds * 1e-6, tuple(one.timed() for one in self._made)
        ranks = _ranks(len(self._bases), replay)
        return NodeTime(
            self._system.name, seconds, seconds * self._chip.clock_hz, found, ranks, launches, tuple(path), replay
        )

    def _rank_of(self, address: int) -> int | None:
        number = (address - self._bases[0]) // BASE_STEP
        return number if 0 <= number < len(self._bases) else None

    def _answer(self, rank: int, peer: int, nbytes: int) -> float:
        """Cycles until a rank has bytes of another one's memory, where nothing else is on the way."""
        return self._replay.answer_us(rank, peer, nbytes) * 1e-6 * self._chip.clock_hz


def _ranks(count: int, replay: Replay) -> tuple[RankTime, ...]:
    ends, nbytes = [0.0] * count, [0] * count
    for one, step in zip(replay.network.transfers, replay.steps, strict=True):
        ends[step.rank] = max(ends[step.rank], one.sent)
        nbytes[step.rank] += step.nbytes
    return tuple(RankTime(rank, ends[rank] * 1e-6, nbytes[rank]) for rank in range(count))
