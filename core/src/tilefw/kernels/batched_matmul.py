"""out[i] = a[i] @ b[i] for every i of a batch; an operand without a batch of its own (stride 0) is used for all."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.integers import ceil_div
from tilefw.kernels import formats, inputs, operands
from tilefw.kernels.spec import Buffer, KernelSpec, Launch, Parameters


@tilefw.jit
def batched_matmul(
    a_ptr, b_ptr, out_ptr, M, N, K, stride_ai, stride_am, stride_ak, stride_bi, stride_bk, stride_bn, stride_oi, stride_om,
    ACCUMULATOR: tl.constexpr, INPUT_PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    blocks_n = tl.cdiv(N, BLOCK_N)
    m = tl.program_id(0) // blocks_n * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(0) % blocks_n * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    item = tl.program_id(1)
    a_ptrs = a_ptr + item * stride_ai + m[:, None] * stride_am + k[None, :] * stride_ak
    b_ptrs = b_ptr + item * stride_bi + k[:, None] * stride_bk + n[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACCUMULATOR)
    for start in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=(m[:, None] < M) & (k[None, :] < K - start), other=0.0)
        b = tl.load(b_ptrs, mask=(k[:, None] < K - start) & (n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision=INPUT_PRECISION, out_dtype=ACCUMULATOR)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    out_ptrs = out_ptr + item * stride_oi + m[:, None] * stride_om + n[None, :]
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


def _operand(p: Parameters, rng: np.random.Generator, rows: int, columns: int, order: str, shared: bool) -> Buffer:
    if not shared:
        return operands.matrix(rng, p["inputs"], (p["batch"], rows, columns), p["dtype"], order)
    one = operands.matrix(rng, p["inputs"], (rows, columns), p["dtype"], order)
    return Buffer(np.broadcast_to(one.array, (p["batch"], rows, columns)), p["dtype"])


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    m, n, k, name = p["m"], p["n"], p["k"], p["dtype"]
    a = _operand(p, rng, m, k, p["a_layout"], shared=False)
    b = _operand(p, rng, k, n, p["b_layout"], p["shared_b"])
    out = inputs.empty((p["batch"], m, n), name if p["result"] == "same" else p["result"])
    arguments = {"a_ptr": a, "b_ptr": b, "out_ptr": out, "M": m, "N": n, "K": k}
    for buffer, letters in ((a, ("ai", "am", "ak")), (b, ("bi", "bk", "bn")), (out, ("oi", "om"))):
        arguments |= {f"stride_{word}": step for word, step in zip(letters, operands.strides(buffer), strict=False)}
    constexprs = {
        "ACCUMULATOR": tl.float64 if name == "fp64" else tl.float32,
        "INPUT_PRECISION": p["input_precision"] if name == "fp32" else "ieee",
        "BLOCK_M": p["block_m"], "BLOCK_N": p["block_n"], "BLOCK_K": p["block_k"],
    }
    grid = (ceil_div(m, p["block_m"]) * ceil_div(n, p["block_n"]), p["batch"], 1)
    return Launch(arguments, constexprs, grid, ("out_ptr",), {"num_warps": p["num_warps"], "num_stages": p["num_stages"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    a, b = (formats.decode(launch.buffer(name).array, p["dtype"]) for name in ("a_ptr", "b_ptr"))
    return {"out_ptr": np.einsum("imk,ikn->imn", a, b).astype(operands.real(p["dtype"])).astype(np.float64)}


SPEC = KernelSpec("batched_matmul", batched_matmul, _prepare, _expected)
