"""A run on a node whose launches are timed: what each rank executes, on the chip's model of time and the model of links.

Nothing of it is measured: seconds are those of real devices of the target's kind, as far as the models know them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tilefw.api.errors import UnsupportedError
from tilefw.distributed.links.system import System
from tilefw.distributed.node_time import ExecutedLaunch, NodeClock, NodeTime, check_system, default_system
from tilefw.graph.node_session import NodeSession, RankArrays
from tilefw.graph.plan import PlanLaunch
from tilefw.runtime.plugins.loader import find_target


@dataclass(frozen=True, slots=True)
class NodeProfile:
    """The outputs of each rank, and the time of the whole run."""

    outputs: RankArrays
    time: NodeTime


def profiled_on_node(
    session: NodeSession, inputs: Mapping[str, Any], system: System | None = None, progress: Callable[[str], None] | None = None
) -> NodeProfile:
    """Run a session's plan on `inputs` and tell its time on a system of devices, that of their chip where none is given; `progress`
    is told each launch that all ranks have made. Raises UnsupportedError TFW0666 for a target without a model of time, UsageError
    TFW0668 for a system of fewer devices, and as `Session.run` does."""
    chip = find_target(session.plan.target).backend.timing()
    system = default_system(session.plan.target) if system is None else system
    check_system(system, session.plan.ranks)
    if not session.traces:
        raise UnsupportedError(f"the executor of {session.plan.target} records no execution", code="TFW0666")
    clock = NodeClock(chip, system, session.heap.bases)
    with session.alone():
        session.begin(inputs)
        for number, one in enumerate(session.ranks[0].launches):
            for rank, report in enumerate(session.launch(number, trace=True)):
                if report.trace is not None:  # a grid without a program has none
                    clock.launch(ExecutedLaunch(rank, one.label, _threads(one), one.artifact.resources.occupancy, report.trace))
            if progress is not None:
                progress(one.label)
        outputs = [one.outputs() for one in session.ranks]
    return NodeProfile(outputs, clock.time())


def _threads(launch: PlanLaunch) -> int:
    """Of a workgroup; 0 where nobody knows."""
    return math.prod(launch.artifact.entry().workgroup or (0,))
