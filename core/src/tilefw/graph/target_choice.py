"""A target's choice between ways to fuse a part of a model: that of the lowest cost by its backend (`Backend.launch_cost`)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import reduce
from math import inf, isnan

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tilefw.api.artifact import Artifact
from tilefw.api.cost import LaunchSequence, LaunchWork
from tilefw.api.errors import CompileError, InternalError
from tilefw.graph.compile_graph import compile_graph
from tilefw.graph.dialect.elements import StoredElements
from tilefw.graph.emit.model import launches_of
from tilefw.graph.fuse.choice import FusionWay
from tilefw.graph.kernel_graph import KernelGraph
from tilefw.graph.meaning import model_function
from tilefw.runtime import config
from tilefw.runtime.bug_guard import guarded
from tilefw.runtime.plugins.loader import find_target


class TargetChoice:
    """The choice of a target, without a name the current one, for its `executor`. Parts that are alike, as those of a model's
    layers, are decided once: ways that are equal do the same."""

    def __init__(self, target: str | None = None, executor: str | None = None) -> None:
        self._target, self._executor = find_target(config.resolve(config.settings(target)).target), executor
        self._decided: dict[Hashable, int] = {}

    def best(self, part: Callable[[], ModuleOp], ways: Sequence[FusionWay]) -> int:
        """The number of the way of the lowest cost; the first of those that cost the same."""
        module = part()
        key = tuple(_structure(module)), tuple(ways)
        if key not in self._decided:
            costs = [self._cost(module.clone(), way) for way in ways]
            self._decided[key] = costs.index(min(costs))
        return self._decided[key]

    def _cost(self, module: ModuleOp, way: FusionWay) -> float:
        """What a way costs; infinitely much where the target cannot go it."""
        backend, name = self._target.backend, self._target.name
        try:
            way(module)
            graph = launches_of(module, {}, {})
            offered = LaunchSequence(reduce(LaunchWork.__add__, (call.work for call in graph.calls)), self._compiled(graph))
            with guarded(f"launch_cost of {name}", dict(self._target.facts), lambda: str(module)):
                cost = float(backend.launch_cost(offered))
        except CompileError:
            return inf
        if isnan(cost):
            raise InternalError(f"launch_cost of {name} is no number")
        return cost

    def _compiled(self, graph: KernelGraph) -> Callable[[], Sequence[Artifact]]:
        def compiled() -> Sequence[Artifact]:
            plan = compile_graph(graph, self._target.name, self._executor)
            return [launch.artifact for launch in plan.launches()]

        return compiled


def _structure(module: ModuleOp) -> Iterator[Hashable]:
    """What a part is but for the elements of its constants."""
    block = model_function(module).body.block
    numbers: dict[SSAValue, int] = {value: place for place, value in enumerate(block.args)}
    yield tuple(map(str, block.arg_types))
    for op in block.ops:
        numbers.update((value, len(numbers)) for value in op.results)
        yield (*_facts(op), tuple(numbers[value] for value in op.operands))


def _facts(op: Operation) -> Iterator[Hashable]:
    yield op.name
    yield tuple(str(type) for type in op.result_types)
    told = {**op.properties, **op.attributes}
    yield tuple((name, "" if _is_long(one) else str(one)) for name, one in sorted(told.items()))
    for region in op.regions:
        yield tuple(str(inner) for block in region.blocks for inner in block.ops)


def _is_long(attribute: object) -> bool:
    return isinstance(attribute, StoredElements) and len(attribute.data) > 8
