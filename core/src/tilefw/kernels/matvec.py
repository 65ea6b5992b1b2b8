"""out = a @ x for a matrix and a vector: rows of a tile by tile, products summed along the row once at the end."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.integers import ceil_div
from tilefw.kernels import inputs, operands
from tilefw.kernels.spec import KernelSpec, Launch, Parameters


@tilefw.jit
def matvec(
    a_ptr, x_ptr, out_ptr, M, K, stride_am, stride_ak, COMPUTE: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr,
):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    total = tl.zeros((BLOCK_M, BLOCK_K), dtype=COMPUTE)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        inside = (m[:, None] < M) & (k[None, :] < K)
        a = tl.load(a_ptr + m[:, None] * stride_am + k[None, :] * stride_ak, mask=inside, other=0.0).to(COMPUTE)
        x = tl.load(x_ptr + k, mask=k < K, other=0.0).to(COMPUTE)
        total += a * x[None, :]
    tl.store(out_ptr + m, tl.sum(total, axis=1).to(out_ptr.dtype.element_ty), mask=m < M)


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    name = p["dtype"]
    a = operands.matrix(rng, p["inputs"], (p["m"], p["k"]), name, p["a_layout"])
    stride_am, stride_ak = operands.strides(a)
    arguments = {
        "a_ptr": a,
        "x_ptr": inputs.draw(rng, p["inputs"], (p["k"],), name),
        "out_ptr": inputs.empty((p["m"],), name),
        "M": p["m"], "K": p["k"], "stride_am": stride_am, "stride_ak": stride_ak,
    }
    constexprs = {
        "COMPUTE": tl.float64 if name == "fp64" else tl.float32, "BLOCK_M": p["block_m"], "BLOCK_K": p["block_k"],
    }
    grid = (ceil_div(p["m"], p["block_m"]), 1, 1)
    return Launch(arguments, constexprs, grid, ("out_ptr",), {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    a, x = (operands.values(launch.buffer(name)) for name in ("a_ptr", "x_ptr"))
    return {"out_ptr": operands.lanewise_sum(a * x, p["block_k"])}


SPEC = KernelSpec("matvec", matvec, _prepare, _expected)
