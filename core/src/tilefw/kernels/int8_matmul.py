"""out = (a @ b) · row_scale · column_scale for quantised int8 operands: exact 32-bit sums, scaled once at the end."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.integers import ceil_div
from tilefw.kernels import operands
from tilefw.kernels.spec import Buffer, KernelSpec, Launch, Parameters


@tilefw.jit
def int8_matmul(
    a_ptr, b_ptr, row_scale_ptr, column_scale_ptr, out_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_om,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + m[:, None] * stride_am + k[None, :] * stride_ak
    b_ptrs = b_ptr + k[:, None] * stride_bk + n[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.int32)
    for start in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=(m[:, None] < M) & (k[None, :] < K - start), other=0)
        b = tl.load(b_ptrs, mask=(k[:, None] < K - start) & (n[None, :] < N), other=0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    row_scale = tl.load(row_scale_ptr + m, mask=m < M, other=0.0)
    column_scale = tl.load(column_scale_ptr + n, mask=n < N, other=0.0)
    result = acc.to(tl.float32) * row_scale[:, None] * column_scale[None, :]
    out_ptrs = out_ptr + m[:, None] * stride_om + n[None, :]
    tl.store(out_ptrs, result.to(out_ptr.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    m, n, k = p["m"], p["n"], p["k"]
    a = operands.matrix(rng, p["inputs"], (m, k), "int8", p["a_layout"])
    b = operands.matrix(rng, p["inputs"], (k, n), "int8", p["b_layout"])
    # Scales of quantised unit values: sums of k products of up to 127² come back to order √k.
    row_scale, column_scale = (rng.uniform(0.5, 2.0, size).astype(np.float32) / np.float32(127) for size in (m, n))
    arguments = {
        "a_ptr": a, "b_ptr": b,
        "row_scale_ptr": Buffer(row_scale, "fp32"), "column_scale_ptr": Buffer(column_scale, "fp32"),
        "out_ptr": operands.empty((m, n), p["result"], "rows"),
        "M": m, "N": n, "K": k,
    }
    for buffer, letters in ((a, ("am", "ak")), (b, ("bk", "bn"))):
        arguments |= {f"stride_{word}": step for word, step in zip(letters, operands.strides(buffer), strict=True)}
    arguments["stride_om"] = n
    constexprs = {"BLOCK_M": p["block_m"], "BLOCK_N": p["block_n"], "BLOCK_K": p["block_k"]}
    grid = (ceil_div(m, p["block_m"]), ceil_div(n, p["block_n"]), 1)
    return Launch(arguments, constexprs, grid, ("out_ptr",), {"num_warps": p["num_warps"], "num_stages": p["num_stages"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    a, b = (launch.buffer(name).array.astype(np.int64) for name in ("a_ptr", "b_ptr"))
    rows, columns = (launch.buffer(name).array for name in ("row_scale_ptr", "column_scale_ptr"))
    # Exact until here; conversion and both products are correctly rounded, in this order.
    return {"out_ptr": ((a @ b).astype(np.float32) * rows[:, None] * columns).astype(np.float64)}


SPEC = KernelSpec("int8_matmul", int8_matmul, _prepare, _expected)
