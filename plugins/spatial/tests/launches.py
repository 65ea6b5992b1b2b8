"""Launches of library kernels as graphs, evaluated and judged by the reference interpreter. For tests alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from graph_evaluator import Evaluator

from tilefw.api import DEFAULT_BUDGET, Buffer, Launch
from tilefw.api.ir import ModuleOp, context
from tilefw.kernels.instance import Instance, instance
from tilefw.kernels.reference import Reference
from tilefw.kernels.spec import KernelSpec, load
from tilefw.passes.pipeline import default_passes
from tilefw.runtime.arrays import host_array, is_array, storages
from tilefw_spatial.graph import Graph
from tilefw_spatial.lower import lower


@dataclass(frozen=True, slots=True)
class Bound:
    """A launch of a library kernel: the kernel's instance, its launch, and the outputs that are compared."""

    instance: Instance
    launch: Launch
    outputs: tuple[str, ...]

    def module(self) -> ModuleOp:
        """Tile IR as a backend of this launch gets it."""
        module = self.instance.source.build()
        for step in default_passes(self.launch):
            step.apply(context(), module)
        return module


def bound(kernel: str, parameters: Mapping[str, Any], seed: int = 0) -> Bound:
    """The launch that parameters ask for."""
    spec: KernelSpec = load(kernel)
    launch = spec.prepare(spec.resolve(parameters), np.random.default_rng(seed))
    made = instance(spec, launch)
    values = {name: value for name, value in made.passed.items() if value is not None}
    arrays = [(name, host_array(value)) for name, value in values.items() if is_array(value)]
    stores = storages(arrays)
    buffers = {}
    for name, array in arrays:
        number = next(n for n, store in enumerate(stores) if store.holds(array))
        buffers[name] = Buffer(number, array.address - stores[number].start, stores[number].nbytes)
    scalars = {n: v.item() if hasattr(v, "item") else v for n, v in values.items() if n not in buffers}
    return Bound(made, Launch((*launch.grid, 1, 1)[:3], scalars, buffers), launch.outputs)


def evaluate(found: Bound, graph: Graph) -> None:
    """The graph's stores into the launch's own arrays."""
    values = found.instance.passed
    arrays = [(name, host_array(value)) for name, value in values.items() if value is not None and is_array(value)]
    memory = [np.asarray(store.view()) for store in storages(arrays)]
    names = [name for name, value in values.items() if value is not None]
    buffers = {names.index(name): buffer for name, buffer in found.launch.buffers.items()}
    Evaluator(memory, buffers).run(graph)


def judged(kernel: str, parameters: Mapping[str, Any], seed: int = 0, budget: int = DEFAULT_BUDGET) -> tuple[Graph, dict[str, Any]]:
    """The graph of a launch, and how its results compare with the reference interpreter's, by output."""
    found = bound(kernel, parameters, seed)
    graph = lower(found.module(), found.launch)
    passed = {name: value for name, value in found.instance.passed.items() if value is not None}
    reference = Reference(found.instance.source.build(), found.launch.grid, passed, budget=budget)
    evaluate(found, graph)
    return graph, {name: reference.compare(name) for name in found.outputs}
