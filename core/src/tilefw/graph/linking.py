"""Successive launches of a plan handed to a backend that makes one artifact of them."""

from __future__ import annotations

from collections.abc import Sequence

from tilefw.api.backend import CompileOptions
from tilefw.api.errors import InternalError
from tilefw.api.linking import ChainLaunch, LinkedArtifact
from tilefw.graph import link_cache
from tilefw.graph.link_cache import StepSource
from tilefw.graph.plan import ModelPlan, PlanLink
from tilefw.runtime.bug_guard import guarded
from tilefw.runtime.compilation.compiler import Compilation
from tilefw.runtime.plugins.loader import Target

LONGEST = 64
"""Launches of one link: what compiling takes grows faster than their number."""


def linked(plan: ModelPlan, sources: Sequence[StepSource], target: Target) -> tuple[PlanLink, ...]:
    """The links of a plan's steps, as many of them in each as the backend takes; none for a backend that does not link."""
    if not target.backend.links or len(plan.steps) < 2:
        return ()
    offered = _OfferedChain(sources, _needed(plan), target)
    found: list[PlanLink] = []
    first = 0
    while first < len(plan.steps) - 1:
        end, why = _end(sources, first)
        made = offered.linked(first, end) if end - first > 1 else None
        if made is not None:
            found.append(_link(plan, first, end, made, why))
        first += 1 if made is None else made.count
    return tuple(found)


def _end(sources: Sequence[StepSource], first: int) -> tuple[int, str]:
    """Where a link ends at the latest that begins with a step, and why: all of its launches are compiled by the same options."""
    own = sources[first].request
    for number in range(first + 1, len(sources)):
        other = sources[number].request
        if (other.extra, other.verify) != (own.extra, own.verify):
            return number, "it has other options of the target"
        if number - first == LONGEST:
            return number, f"a program is of {LONGEST} launches at most"
    return len(sources), ""


class _OfferedChain:
    """A plan's launches as a backend is offered them; each is built once, where no link of it is kept."""

    def __init__(self, sources: Sequence[StepSource], needed: Sequence[frozenset[int]], target: Target) -> None:
        self._sources, self._needed, self._target = sources, needed, target
        self._built: dict[int, ChainLaunch] = {}

    def linked(self, first: int, end: int) -> LinkedArtifact | None:
        """What is kept of the launches from `first` to before `end`, or else what the backend makes of them now."""
        key = link_cache.key_of(self._sources[first:end], self._needed[first:end], self._target)
        kept = link_cache.find(key)
        if kept is not None:
            return kept.linked
        self._built = {number: one for number, one in self._built.items() if number >= first}
        made = self._made([self._launch(number) for number in range(first, end)], self._sources[first].request)
        link_cache.keep(key, made)
        return made

    def _made(self, chain: Sequence[ChainLaunch], request: CompileOptions) -> LinkedArtifact | None:
        """What the backend makes of a chain. What it raises that is not a KernelError is a bug, with the modules as its
        reproducer."""
        target = self._target
        with guarded(f"linking for {target.name}", dict(target.facts), lambda: "\n".join(str(one.module) for one in chain)):
            return target.backend.link(chain, request)

    def _launch(self, number: int) -> ChainLaunch:
        if number not in self._built:
            self._built[number] = _launch(self._target, self._sources[number], self._needed[number])
        return self._built[number]


def _link(plan: ModelPlan, first: int, end: int, made: LinkedArtifact, why: str) -> PlanLink:
    """The link of steps from `first` on, of which those before `end` were offered; `why` no others."""
    if not 2 <= made.count <= end - first:
        raise InternalError(f"a backend linked {made.count} launches of {end - first}")
    ended = why if first + made.count == end else made.ended
    return PlanLink(first, made.count, made.artifact, made.storages, made.observed, made.observed_storages, ended)


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
