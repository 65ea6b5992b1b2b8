"""Library kernels on a chip that is a description and nothing more: lowered to lanes, executed there, judged by the reference.

It shows that the SIMT kit serves a chip by its description alone, and finds a wrong layout before any instruction is chosen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from tilefw.kernels.instance import instance
from tilefw.kernels.reference import Reference
from tilefw.kernels.spec import Buffer, KernelSpec
from tilefw.passes.manager import PassManager
from tilefw.passes.pipeline import default_passes
from tilefw.simt.description import LaneMachine
from tilefw.simt.passes import lane_passes
from tilefw.testing.lane_interpreter import run
from tilefw.tile.reference.accuracy import Comparison

BUDGET = 1_000_000_000


def lower(module: ModuleOp, machine: LaneMachine, num_stages: int = 1) -> FuncOp:
    """The module's one kernel as lane IR, its shared memory placed and its barriers in; `module` is changed."""
    PassManager([*default_passes(), *lane_passes(machine, num_stages)], machine.chip.name).run(module)
    (function,) = (op for op in module.body.block.ops if isinstance(op, FuncOp))
    return function


def operations(function: FuncOp) -> set[str]:
    """The names of the ops in a lowered kernel."""
    return {op.name for op in function.walk() if isinstance(op, Operation)}


def verify(
    spec: KernelSpec, parameters: Mapping[str, Any], machine: LaneMachine, num_stages: int = 1, seed: int = 0
) -> dict[str, Comparison]:
    """Run a library kernel's lane IR, and compare each output with the reference; raises LaneFault for what no lowering may do."""
    given = spec.resolve(parameters)
    launch = spec.prepare(given, np.random.default_rng(seed))
    made = instance(spec, launch)
    reference = Reference(made.source.build(), launch.grid, made.passed, fusion=False, budget=BUDGET)
    arguments = [_argument(launch.arguments[name], value) for name, value in made.passed.items()]
    run(lower(made.source.build(), machine, num_stages), arguments, launch.grid, machine)
    return {name: reference.compare(name) for name in launch.outputs}


def _argument(given: Buffer | int | float | None, value: Any) -> Any:
    return given.array if isinstance(given, Buffer) else value
