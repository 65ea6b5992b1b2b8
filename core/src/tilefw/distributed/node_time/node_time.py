"""The time of a node's launches on a system of such devices: seconds from the first launch to the last end, and their parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

from tilefw.api.errors import UnsupportedError, UsageError
from tilefw.api.execution_trace import ExecutionTrace
from tilefw.distributed.engine_copies import RankCopy
from tilefw.distributed.links.system import System, plugin_system
from tilefw.distributed.node import DeviceNode
from tilefw.distributed.node_time.node_clock import NodeClock, NodeTime
from tilefw.distributed.node_time.rank_execution import ExecutedLaunch
from tilefw.runtime.launchable import Launchable
from tilefw.runtime.plugins.loader import find_target


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
    clock = NodeClock(chip, system, node.heap.bases)
    copies = {runs: list(behind) for runs, behind in groupby(node.copies, lambda one: one.runs_before)}
    records = node.records
    for number, result in enumerate(records):
        _copy(clock, copies.get(number, ()))
        for one, report in zip(result.launches, result.reports, strict=True):
            if all(one.made.grid):
                clock.launch(_executed(one.rank, one.made, report.trace))
    _copy(clock, copies.get(len(records), ()))
    return clock.time()


def _executed(rank: int, made: Launchable, trace: ExecutionTrace | None) -> ExecutedLaunch:
    """Raises UnsupportedError TFW0666 without a record of what was executed."""
    if trace is None:
        raise UnsupportedError(f"the executor of {made.target.name} records no execution", code="TFW0666")
    threads = math.prod(made.block or made.entry.workgroup or (0,))
    return ExecutedLaunch(rank, made.name, threads, made.compiled.artifact.resources.occupancy, trace)


def _copy(clock: NodeClock, copies: Sequence[RankCopy]) -> None:
    for one in copies:
        clock.copy(one)
