"""Where the time of a model's run goes: seconds of every launch, by node and by kernel, and the run as a timeline.

The format of the timeline is the Trace Event Format, which ui.perfetto.dev and chrome://tracing open.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilefw.graph.session import Arrays, Session


@dataclass(frozen=True, slots=True)
class LaunchTime:
    """One launch: it began `begin` seconds after the run, took `seconds` for whoever waited, and `device_seconds` of them on the
    device. `counters` are the executor's own, such as executed instructions."""

    label: str
    kernel: str
    grid: tuple[int, int, int]
    begin: float
    seconds: float
    device_seconds: float
    counters: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class KernelTime:
    """All launches of one kernel."""

    kernel: str
    launches: int
    seconds: float


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """The outputs of a run, and its launches in order."""

    outputs: Arrays
    launches: tuple[LaunchTime, ...]

    @property
    def seconds(self) -> float:
        """From the first launch's beginning to the last one's end, without what lies between."""
        return sum(launch.seconds for launch in self.launches)

    def by_kernel(self) -> list[KernelTime]:
        """The kernels, that which takes longest first."""
        named: dict[str, list[float]] = {}
        for launch in self.launches:
            named.setdefault(launch.kernel, []).append(launch.seconds)
        found = [KernelTime(kernel, len(seconds), sum(seconds)) for kernel, seconds in named.items()]
        return sorted(found, key=lambda one: -one.seconds)

    def slowest(self, count: int) -> Sequence[LaunchTime]:
        """The launches that take longest."""
        return sorted(self.launches, key=lambda one: -one.seconds)[:count]


def profiled(session: Session, inputs: Mapping[str, Any], progress: Callable[[str], None] | None = None) -> ModelProfile:
    """Run a session's plan on `inputs`, each launch waited for; `progress` is told each launch's label when it is over."""
    launches: list[LaunchTime] = []
    with session.alone():
        session.begin(inputs)
        start = time.perf_counter()
        for number, one in enumerate(session.launches):
            begin = time.perf_counter()
            report = session.launch(number)
            on_device = report.seconds if report.completion is None else report.completion.wait()
            seconds = time.perf_counter() - begin
            kernel = one.artifact.entry().name
            launches.append(LaunchTime(one.label, kernel, one.grid, begin - start, seconds, on_device, dict(report.counters)))
            if progress is not None:
                progress(one.label)
        return ModelProfile(session.outputs(), tuple(launches))


def trace_events(profile: ModelProfile, title: str) -> str:
    """The JSON text of a run's timeline: a row of nodes, with the kernel, the grid and the counters of each."""
    events: list[dict[str, Any]] = [
        {"ph": "M", "pid": 1, "tid": 1, "name": "process_name", "args": {"name": title}},
        {"ph": "M", "pid": 1, "tid": 1, "name": "thread_name", "args": {"name": "launches"}},
    ]
    for launch in profile.launches:
        facts = {"kernel": launch.kernel, "grid": list(launch.grid), "us on the device": launch.device_seconds * 1e6}
        events.append({
            "ph": "X", "pid": 1, "tid": 1, "ts": launch.begin * 1e6, "dur": launch.seconds * 1e6, "name": launch.label,
            "cat": launch.kernel, "args": {**facts, **launch.counters},
        })
    lines = ",\n".join(json.dumps(event, separators=(",", ":")) for event in events)
    return f'{{"otherData":{json.dumps({"title": title})},\n"traceEvents":[\n{lines}\n]}}\n'
