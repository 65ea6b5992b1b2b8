"""The time of a node's launches on a system of such devices: seconds from the first launch to the last end, and their parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from tilefw.api.errors import UnsupportedError, UsageError
from tilefw.distributed.engine_copies import RankCopy
from tilefw.distributed.links.system import System, plugin_system
from tilefw.distributed.node import DeviceNode, JointResult
from tilefw.distributed.node_time.communication import RankAddresses
from tilefw.distributed.node_time.critical_path import PathStep, critical_path, parts
from tilefw.distributed.node_time.rank_execution import RankExecutions
from tilefw.distributed.node_time.replay import Replay
from tilefw.distributed.symmetric_heap import BASE_STEP
from tilefw.runtime.plugins.loader import find_target
from tilefw.timing.chip_timing import ChipTiming


@dataclass(frozen=True, slots=True)
class RankTime:
    """One rank: when its last launch ended, and the bytes that went to it and from it by its own doing."""

    rank: int
    seconds: float
    nbytes: int


@dataclass(frozen=True)
class NodeTime:
    """`seconds` of all launches of a node on a system of its devices, in `cycles` of their processors' clock. `parts`: what the
    seconds go for along the critical path `path`: `launch` of kernels, `compute`, `transfers` of data, `signals` that somebody
    waits for. Nothing of it is measured."""

    system: str
    seconds: float
    cycles: float
    parts: Mapping[str, float]
    ranks: tuple[RankTime, ...]
    path: tuple[PathStep, ...] = field(repr=False)
    replay: Replay = field(repr=False)


def default_system(target: str) -> System:
    """The system that the target's chip is usually in. Raises UnsupportedError TFW0666 for a target without a model of time,
    UsageError TFW0668 where its chip names no system."""
    chip = find_target(target).backend.timing()
    if not chip.system:
        raise UsageError(
            f"the model of time of {target} names no system of linked devices", code="TFW0668",
            help="name one by --system PLUGIN:NAME, in Python by tilefw.distributed.links.plugin_system",
        )
    return plugin_system(chip.system)


def check_system(system: System, ranks: int) -> None:
    """Raises UsageError TFW0668 for a system of fewer devices, CodeError TFW0665 for one without the latency of its links."""
    if ranks > system["ranks"]:
        raise UsageError(
            f"{system.name} has {system['ranks']:.0f} devices, and the node {ranks}", code="TFW0668",
            help="name a larger system by --system PLUGIN:NAME, in Python by tilefw.distributed.links.plugin_system",
        )
    system.figures.figure("link_latency")


def node_time(node: DeviceNode, system: System | None = None) -> NodeTime:
    """The time of all launches that a node made with `trace=True` has made so far. `system`: that of its chip where none is given.

    Raises UnsupportedError TFW0666, UsageError TFW0668 for a node without records, without a system, or of more ranks than the
    system has; CodeError TFW0665 for a system without the latency of its links."""
    chip = find_target(node.target).backend.timing()
    system = default_system(node.target) if system is None else system
    if not node.trace:
        raise UsageError("this node has kept no records of its launches", code="TFW0668", help="tilefw.node(…, trace=True)")
    check_system(system, node.num_ranks)
    replay = Replay(system, node.num_ranks, chip.clock_hz, chip.workgroup_cycles)
    executions = RankExecutions(chip)
    copies = {runs: list(behind) for runs, behind in groupby(node.copies, lambda one: one.runs_before)}
    for number, result in enumerate(node.results):
        _add_copies(replay, chip, copies.get(number, ()))
        _add(replay, executions, chip, node, result)
    _add_copies(replay, chip, copies.get(len(node.results), ()))
    microseconds = replay.play() if replay.steps else 0.0
    path = critical_path(replay.network.transfers, replay.steps) if replay.steps else []
    found = {name: taken * 1e-6 for name, taken in parts(path).items()}
    seconds = microseconds * 1e-6
    ranks = _ranks(node.ranks, replay)
    return NodeTime(system.name, seconds, seconds * chip.clock_hz, found, ranks, tuple(path), replay)


def _add(replay: Replay, executions: RankExecutions, chip: ChipTiming, node: DeviceNode, result: JointResult) -> None:
    bases = node.heap.bases

    def rank_of(address: int) -> int | None:
        number = (address - bases[0]) // BASE_STEP
        return number if 0 <= number < len(bases) else None

    for one, report in zip(result.launches, result.reports, strict=True):
        if not all(one.made.grid):
            continue
        if report.trace is None:
            raise UnsupportedError(f"the executor of {node.target} records no execution", code="TFW0666")

        def answer(peer: int, nbytes: int, rank: int = one.rank) -> float:
            return replay.answer_us(rank, peer, nbytes) * 1e-6 * chip.clock_hz

        addresses = RankAddresses(one.rank, rank_of, answer)
        replay.add(one.rank, chip.launch_seconds * 1e6, executions.of(one.made, report.trace, addresses))


def _add_copies(replay: Replay, chip: ChipTiming, copies: Sequence[RankCopy]) -> None:
    """Copies of engines. Starting one takes the host as long as starting a launch."""
    for one in copies:
        replay.copy(one, chip.launch_seconds * 1e6)


def _ranks(ranks: Sequence[int], replay: Replay) -> tuple[RankTime, ...]:
    ends, nbytes = dict.fromkeys(ranks, 0.0), dict.fromkeys(ranks, 0)
    for one, step in zip(replay.network.transfers, replay.steps, strict=True):
        ends[step.rank] = max(ends[step.rank], one.sent)
        nbytes[step.rank] += step.nbytes
    return tuple(RankTime(rank, ends[rank] * 1e-6, nbytes[rank]) for rank in ranks)
