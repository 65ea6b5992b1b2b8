"""out += a @ b, the terms of each sum dealt to several programs that add their parts to out in memory."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.integers import ceil_div
from tilefw.kernels import formats, inputs, operands
from tilefw.kernels.spec import KernelSpec, Launch, Parameters


@tilefw.jit
def split_k_matmul(
    a_ptr, b_ptr, out_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_om, stride_on,
    INPUT_PRECISION: tl.constexpr, ORDER: tl.constexpr, SPLITS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    # Program i of the third axis takes every SPLITS-th block of terms, from block i on.
    k = tl.program_id(2) * BLOCK_K + tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K * SPLITS):
        term = start + k
        a_inside = (m[:, None] < M) & (term[None, :] < K)
        b_inside = (term[:, None] < K) & (n[None, :] < N)
        a = tl.load(a_ptr + m[:, None] * stride_am + term[None, :] * stride_ak, mask=a_inside, other=0.0)
        b = tl.load(b_ptr + term[:, None] * stride_bk + n[None, :] * stride_bn, mask=b_inside, other=0.0)
        acc = tl.dot(a, b, acc, input_precision=INPUT_PRECISION)
    out_ptrs = out_ptr + m[:, None] * stride_om + n[None, :] * stride_on
    tl.atomic_add(out_ptrs, acc, mask=(m[:, None] < M) & (n[None, :] < N), sem=ORDER)


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    m, n, k, name = p["m"], p["n"], p["k"], p["dtype"]
    a = operands.matrix(rng, p["inputs"], (m, k), name, p["a_layout"])
    b = operands.matrix(rng, p["inputs"], (k, n), name, p["b_layout"])
    out = inputs.draw(rng, p["inputs"], (m, n), p["result"])
    arguments = {"a_ptr": a, "b_ptr": b, "out_ptr": out, "M": m, "N": n, "K": k}
    for buffer, letters in ((a, ("am", "ak")), (b, ("bk", "bn")), (out, ("om", "on"))):
        arguments |= {f"stride_{word}": step for word, step in zip(letters, operands.strides(buffer), strict=True)}
    constexprs = {
        "INPUT_PRECISION": p["input_precision"] if name == "fp32" else "ieee", "ORDER": p["order"], "SPLITS": p["splits"],
        "BLOCK_M": p["block_m"], "BLOCK_N": p["block_n"], "BLOCK_K": p["block_k"],
    }
    grid = (ceil_div(m, p["block_m"]), ceil_div(n, p["block_n"]), p["splits"])
    return Launch(arguments, constexprs, grid, ("out_ptr",), {"num_warps": p["num_warps"], "num_stages": p["num_stages"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    a, b = (formats.decode(launch.buffer(name).array, p["dtype"]) for name in ("a_ptr", "b_ptr"))
    total = formats.decode(launch.buffer("out_ptr").array, p["result"])
    taker = np.arange(p["k"]) // p["block_k"] % p["splits"]
    for program in range(p["splits"]):  # each part is rounded to the elements of out before it is added
        part = a[:, taker == program] @ b[taker == program]
        total = total + formats.decode(formats.encode(part, p["result"]), p["result"])
    return {"out_ptr": total}


SPEC = KernelSpec("split_k_matmul", split_k_matmul, _prepare, _expected)
