"""The passes of a target in order, from tile IR to bytes, as data: what `tilefw passes` shows and `tilefw opt --target` runs.

A pass has the level of the IR text that it reads. One that does not say it has the level of the pass before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from xdsl.passes import ModulePass

from tilefw.api.backend import Backend, CompileOptions
from tilefw.passes.pipeline import default_passes

Level = Literal["tile", "lane", "machine", "program"]


@dataclass(frozen=True, slots=True)
class PipelineStep:
    """One step of a compilation. `made` is the pass, None for a step of `emit` or `assemble`, which IR text does not reach."""

    name: str
    level: str
    summary: str
    made: ModulePass | None = None


def steps(backend: Backend, options: CompileOptions) -> list[PipelineStep]:
    """Every step from the front end's tile IR to bytes, in order."""
    found: list[PipelineStep] = []
    level = "tile"
    takes = partial(backend.takes_scaled_dot, options=options)
    for each in (*default_passes(takes_scaled_dot=takes), *backend.pipeline(options)):
        level = getattr(each, "level", level)
        found.append(PipelineStep(each.name, level, summary_of(type(each)), each))
    found += [PipelineStep(name, "program", summary) for name, summary in backend.program_steps]
    return found


def by_name(listed: Iterable[PipelineStep]) -> dict[str, ModulePass]:
    """The passes among the steps; of one that occurs twice, the first."""
    found: dict[str, ModulePass] = {}
    for step in listed:
        if step.made is not None:
            found.setdefault(step.name, step.made)
    return found


def summary_of(kind: type) -> str:
    """The first sentence of a class's docstring, on one line."""
    text = " ".join((kind.__doc__ or "").split())
    end = text.find(". ")
    return text if end < 0 else text[: end + 1]
