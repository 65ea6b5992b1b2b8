"""How everything here is timed: alternating rounds of both sides on one machine, medians, and tables of ratios.

Seconds are those of the processor, of this process and the children it waited for: both sides compute in one thread and wait for
nothing, so they are what a clock shows on an idle machine, and a busy one disturbs them least.
"""

from __future__ import annotations

import platform
import resource
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import metadata


@dataclass(frozen=True, slots=True)
class Ratio:
    """Medians in seconds of ours and the peer's; `goal` is the ratio of docs/architecture.md, None where it names none."""

    what: str
    ours: float
    peer: float
    goal: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float:
        return self.ours / self.peer


def seconds() -> float:
    """The processor's seconds so far."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def alternate(sides: Mapping[str, Callable[[], float | None]], rounds: int) -> dict[str, float]:
    """The median of each side, run in turn `rounds` times; a side may return its own seconds instead of being timed."""
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, run in sides.items():
            start = seconds()
            own = run()
            taken[name].append(seconds() - start if own is None else own)
    return {name: statistics.median(values) for name, values in taken.items()}


def table(title: str, peer: str, ratios: list[Ratio], comment: str) -> str:
    lines = [f"## {title}", "", comment, "", f"| | tilefw ms | {peer} ms | ratio | goal | |", "|---|---|---|---|---|---|"]
    for r in ratios:
        goal = "" if r.goal is None else f"{r.goal:g}"
        note = "; ".join(filter(None, [verdict(None if r.goal is None else r.ratio <= r.goal), r.note]))
        lines.append(f"| {r.what} | {r.ours * 1e3:.1f} | {r.peer * 1e3:.1f} | {r.ratio:.2f} | {goal} | {note} |")
    return "\n".join(lines)


def verdict(met: bool | None) -> str:
    """A table's word on a goal; nothing where there is none."""
    return "" if met is None else "met" if met else "**missed**"


def processor() -> str:
    """The processor's name as the system gives it."""
    return _model_names()[0]


def machine() -> str:
    """Processor, cores, Python and the versions of what was measured."""
    models = _model_names()
    names = ("tilefw-core", "tilefw-nvidia", "triton", "torch", "numpy", "xdsl")
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in names)
    return f"{len(models)} cores of {models[0]}; Python {platform.python_version()}; {versions}."


def _model_names() -> list[str]:
    with open("/proc/cpuinfo") as info:
        return [line.partition(":")[2].strip() for line in info if line.startswith("model name")]
