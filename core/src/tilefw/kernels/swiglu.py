"""out = silu(gate) · up (Shazeer, "GLU Variants Improve Transformer", 2020): one row a program, a run-time loop over its tiles."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.kernels import formats, inputs
from tilefw.kernels.spec import KernelSpec, Launch, Parameters


@tilefw.jit
def swiglu(packed_ptr, out_ptr, columns, packed_stride, out_stride, COMPUTE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    gate_ptr = packed_ptr + row * packed_stride
    up_ptr = gate_ptr + columns
    out_ptr += row * out_stride
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        inside = column < columns
        gate = tl.load(gate_ptr + column, mask=inside, other=0.0).to(COMPUTE)
        up = tl.load(up_ptr + column, mask=inside, other=0.0).to(COMPUTE)
        result = gate * tl.sigmoid(gate) * up
        tl.store(out_ptr + column, result.to(out_ptr.dtype.element_ty), mask=inside)


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    rows, columns, name = p["rows"], p["columns"], p["dtype"]
    arguments = {
        "packed_ptr": inputs.draw(rng, p["inputs"], (rows, 2 * columns), name),
        "out_ptr": inputs.empty((rows, columns), name),
        "columns": columns,
        "packed_stride": 2 * columns,
        "out_stride": columns,
    }
    constexprs = {"COMPUTE": tl.float64 if name == "fp64" else tl.float32, "BLOCK": p["block"]}
    return Launch(arguments, constexprs, (rows, 1, 1), ("out_ptr",), {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    # In the kernel's own precision: its products are correctly rounded, so they leave NumPy no choice.
    real = np.float64 if p["dtype"] == "fp64" else np.float32
    packed = formats.decode(launch.buffer("packed_ptr").array, p["dtype"]).astype(real)
    gate, up = packed[:, : p["columns"]], packed[:, p["columns"] :]
    with np.errstate(all="ignore"):
        return {"out_ptr": (gate * (1 / (1 + np.exp(-gate))) * up).astype(np.float64)}


SPEC = KernelSpec("swiglu", swiglu, _prepare, _expected)
