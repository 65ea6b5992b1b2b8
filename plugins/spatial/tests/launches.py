"""Launches of library kernels as graphs, evaluated and judged by the reference interpreter. For tests alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from graph_evaluator import Array, GraphEvaluator

from tilefw.api import DEFAULT_BUDGET, BufferPlacement, LaunchArguments
from tilefw.api.ir import ModuleOp, context
from tilefw.kernels.instance import Instance, instance
from tilefw.kernels.reference import Reference
from tilefw.kernels.spec import KernelSpec, load
from tilefw.passes.pipeline import default_passes
from tilefw.runtime.arguments.arrays import host_array, is_array, storages
from tilefw.runtime.arguments.bound_launch import launch_of
from tilefw_spatial.graph import Graph
from tilefw_spatial.lower import lower
from tilefw_spatial.target import SDM1


@dataclass(frozen=True, slots=True)
class LibraryLaunch:
    """A launch of a library kernel: the kernel's instance, its launch, and the outputs that are compared."""

    instance: Instance
    launch: LaunchArguments
    outputs: tuple[str, ...]

    @property
    def passed(self) -> dict[str, Any]:
        """The arguments that are not constants of the code."""
        return {name: value for name, value in self.instance.passed.items() if value is not None}

    @property
    def buffers(self) -> dict[int, BufferPlacement]:
        """Where pointers point, by the number of the parameter."""
        return {list(self.passed).index(name): buffer for name, buffer in self.launch.buffers.items()}

    def reference(self, budget: int = DEFAULT_BUDGET) -> Reference:
        """What the reference interpreter makes of the arguments as they are now."""
        return Reference(self.instance.source.build(), self.launch.grid, self.passed, budget=budget)

    def module(self) -> ModuleOp:
        """Tile IR as a backend of this launch gets it."""
        module = self.instance.source.build()
        for step in default_passes(self.launch):
            step.apply(context(), module)
        return module


def bound(kernel: str, parameters: Mapping[str, Any], seed: int = 0) -> LibraryLaunch:
    """The launch that parameters ask for."""
    spec: KernelSpec = load(kernel)
    launch = spec.prepare(spec.resolve(parameters), np.random.default_rng(seed))
    made = instance(spec, launch)
    values = {name: value for name, value in made.passed.items() if value is not None}
    told = launch_of(SDM1, values, (*launch.grid, 1, 1)[:3])
    assert told is not None
    return LibraryLaunch(made, told, launch.outputs)


def memory(values: Mapping[str, Any]) -> list[Array]:
    """The storages of a launch's arguments, as bytes that are theirs."""
    arrays = [(name, host_array(value)) for name, value in values.items() if is_array(value)]
    return [np.asarray(store.view()).reshape(-1).view(np.uint8) for store in storages(arrays)]


def judged(kernel: str, parameters: Mapping[str, Any], seed: int = 0, budget: int = DEFAULT_BUDGET) -> tuple[Graph, dict[str, Any]]:
    """The graph of a launch, and how its results compare with the reference interpreter's, by output."""
    found = bound(kernel, parameters, seed)
    graph = lower(found.module(), found.launch)
    reference = found.reference(budget)
    GraphEvaluator(memory(found.passed), found.buffers).run(graph)
    return graph, {name: reference.compare(name) for name in found.outputs}
