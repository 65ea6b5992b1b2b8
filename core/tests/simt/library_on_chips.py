"""Library kernels lowered for made-up chips, and run in the lane interpreter: what tests of several features share."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from xdsl.dialects.func import FuncOp

from tilefw.kernels import spec as library
from tilefw.kernels.instance import instance
from tilefw.kernels.reference import Reference
from tilefw.passes.manager import PassManager
from tilefw.passes.pipeline import default_passes
from tilefw.simt.description import ChipDescription, LaneMachine
from tilefw.simt.lower.dot import takes_scaled_dot
from tilefw.simt.passes import lane_passes
from tilefw.testing.lane_interpreter import run

SMALL = {"block_m": 32, "block_n": 32, "block_k": 32}
CASES: list[tuple[str, dict[str, Any]]] = [
    ("softmax", {}),
    ("layernorm", {}),
    ("argmax", {}),
    ("transpose", {}),
    ("matmul", {"m": 40, "n": 48, "k": 96, **SMALL}),
    ("matmul", {"m": 32, "n": 32, "k": 64, "dtype": "fp32", "input_precision": "tf32x3", **SMALL}),
    ("matmul", {"m": 32, "n": 32, "k": 64, "dtype": "fp32", "input_precision": "ieee", **SMALL}),
    ("batched_matmul", {"m": 32, "n": 32, "k": 64, **SMALL}),
    ("int8_matmul", {"m": 32, "n": 32, "k": 64, **SMALL}),
    ("attention", {"queries": 40, "keys": 70, "head_size": 32, "block_m": 32, "block_n": 32, "heads": 1}),
]


def lowered(name: str, parameters: dict[str, Any], chip: ChipDescription, small: bool = False) -> tuple[Any, Any, Any, Any]:
    """The kernel's lane IR, its launch, its run-time values and the module as the front end made it."""
    spec = library.load(name)
    launch = spec.prepare(spec.resolve(parameters), np.random.default_rng(7))
    made = instance(spec, launch)
    module = made.source.build()
    machine = LaneMachine(chip, launch.keywords.get("num_warps", 4), small, disjoint=True)
    stages = launch.keywords.get("num_stages", 3)
    tile_passes = default_passes(takes_scaled_dot=partial(takes_scaled_dot, chip=chip))
    PassManager([*tile_passes, *lane_passes(machine, stages, verify=True)], verify_each=True).run(module)
    (function,) = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    return function, launch, made.passed, (made.source.build(), machine)


def check(name: str, parameters: dict[str, Any], chip: ChipDescription, small: bool = False) -> None:
    """Run a kernel's lane IR, and compare its outputs with the reference's."""
    function, launch, passed, (module, machine) = lowered(name, parameters, chip, small)
    reference = Reference(module, launch.grid, passed, budget=10**9)
    arguments = [getattr(value, "array", value) for value in passed.values()]
    run(function, arguments, launch.grid, machine)
    for output in launch.outputs:
        compared = reference.compare(output)
        assert not compared.wrong, f"{output}: {compared}"
