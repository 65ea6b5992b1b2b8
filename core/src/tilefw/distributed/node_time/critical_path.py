"""What a run's time goes for: from its end back to its beginning, at each step to what it had waited for last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilefw.distributed.links.flows import LinkTransfer
from tilefw.distributed.node_time.replay import PARTS, Part, ReplayedStep


@dataclass(frozen=True, slots=True)
class PathStep:
    """A stretch of the critical path, in microseconds."""

    step: ReplayedStep
    begin: float
    end: float


def critical_path(transfers: Sequence[LinkTransfer], steps: Sequence[ReplayedStep]) -> list[PathStep]:
    """The steps that together take the whole time, in order."""
    last = max(transfers, key=_arrived)
    path, now = list[PathStep](), _arrived(last)
    while True:
        step = steps[last.number]
        before = max(step.before, key=_arrived, default=None)
        begin = 0.0 if before is None else min(_arrived(before), now)
        if now > begin:
            path.append(PathStep(step, begin, now))
        if before is None:
            return path[::-1]
        last, now = before, begin


def parts(path: Sequence[PathStep]) -> dict[Part, float]:
    """Microseconds of the path by part."""
    found = dict.fromkeys(PARTS, 0.0)
    for one in path:
        found[one.step.part] += one.end - one.begin
    return found


def _arrived(one: LinkTransfer) -> float:
    return one.sent + one.latency
