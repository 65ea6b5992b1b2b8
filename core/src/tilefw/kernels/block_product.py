"""What kernels share that compute out = a @ b, one block of out a program: their constexprs, their grid, and NumPy's result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import tilefw.language as tl
from tilefw.api.integers import ceil_div
from tilefw.kernels import formats, operands
from tilefw.kernels.spec import Launch, Parameters


def constexprs(p: Parameters) -> dict[str, Any]:
    name = p["dtype"]
    return {
        "ACCUMULATOR": tl.float64 if name == "fp64" else tl.float32,
        "INPUT_PRECISION": p["input_precision"] if name == "fp32" else "ieee",
        "BLOCK_M": p["block_m"], "BLOCK_N": p["block_n"], "BLOCK_K": p["block_k"],
    }


def launch(p: Parameters, arguments: Mapping[str, Any]) -> Launch:
    grid = (ceil_div(p["m"], p["block_m"]), ceil_div(p["n"], p["block_n"]), 1)
    return Launch(arguments, constexprs(p), grid, ("out_ptr",), {"num_warps": p["num_warps"], "num_stages": p["num_stages"]})


def expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    a, b = (formats.decode(launch.buffer(name).array, p["dtype"]) for name in ("a_ptr", "b_ptr"))
    return {"out_ptr": (a @ b).astype(operands.real(p["dtype"])).astype(np.float64)}
