"""Successive launches of a plan handed to a backend that makes one artifact of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilefw.api.backend import CompileOptions
from tilefw.api.errors import InternalError
from tilefw.api.linking import ChainLaunch, LinkedArtifact
from tilefw.graph.plan import ModelPlan, PlanLink
from tilefw.runtime.bug_guard import guarded
from tilefw.runtime.compilation.compiler import Compilation
from tilefw.runtime.compilation.kernel_source import ModuleSource
from tilefw.runtime.plugins.loader import Target


@dataclass(frozen=True, slots=True)
class StepSource:
    """What a step's artifact was made of."""

    source: ModuleSource
    request: CompileOptions


def linked(plan: ModelPlan, sources: Sequence[StepSource], target: Target) -> tuple[PlanLink, ...]:
    """The links of a plan's steps, as many of them in each as the backend takes; none for a backend that does not link."""
    if not target.backend.links or len(plan.steps) < 2:
        return ()
    needed = _needed(plan)
    found: list[PlanLink] = []
    first = 0
    while first < len(plan.steps) - 1:
        # A chain's modules are made anew for each link: a backend may use them up.
        chain = [_launch(target, one, later) for one, later in zip(sources[first:], needed[first:], strict=True)]
        made = _made(target, chain, sources[first].request)
        if made is not None:
            found.append(_link(plan, first, made))
        first += 1 if made is None else made.count
    return tuple(found)


def _made(target: Target, chain: Sequence[ChainLaunch], request: CompileOptions) -> LinkedArtifact | None:
    """What the backend makes of a chain. What it raises that is not a KernelError is a bug, with the modules as its reproducer."""
    with guarded(f"linking for {target.name}", dict(target.facts), lambda: "\n".join(str(one.module) for one in chain)):
        return target.backend.link(chain, request)


def _link(plan: ModelPlan, first: int, made: LinkedArtifact) -> PlanLink:
    if not 2 <= made.count <= len(plan.steps) - first:
        raise InternalError(f"a backend linked {made.count} launches of {len(plan.steps) - first}")
    return PlanLink(
        first, made.count, made.artifact, made.storages, made.observed, made.observed_storages, made.ended
    )


def _launch(target: Target, one: StepSource, needed: frozenset[int]) -> ChainLaunch:
    work = Compilation(one.source, target)
    module = work.simplify(work.build(), one.request)
    if one.request.launch is None:
        raise InternalError(f"{target.name} links launches, and does not ask which they are")
    return ChainLaunch(module, one.request.launch, one.request.enable_fp_fusion, needed)


def _needed(plan: ModelPlan) -> list[frozenset[int]]:
    """For each step the buffers that a later step or the caller uses."""
    later = frozenset(tensor.buffer for tensor in plan.outputs.values())
    found: list[frozenset[int]] = []
    for step in reversed(plan.steps):
        found.append(later)
        later |= {tensor.buffer for tensor in step.tensors()}
    return found[::-1]
