"""Rows in groups of different sizes, each group times a matrix of its own: the experts of a mixture, in one launch.

Rows of group g are offsets[g] … offsets[g + 1] of a and out. A fixed number of programs walk over all blocks of all groups, so
that small and empty groups leave no program idle.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.kernels import formats, inputs, operands
from tilefw.kernels.spec import Buffer, KernelSpec, Launch, Parameters


@tilefw.jit
def grouped_matmul(
    a_ptr, b_ptr, offsets_ptr, out_ptr, groups, N, K, stride_am, stride_bg, stride_bk, stride_bn, stride_om,
    INPUT_PRECISION: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    block = tl.program_id(0)
    blocks_n = tl.cdiv(N, BLOCK_N)
    before = 0  # blocks of the groups up to this one
    for group in range(groups):
        first = tl.load(offsets_ptr + group)
        end = tl.load(offsets_ptr + group + 1)
        blocks = tl.cdiv(end - first, BLOCK_M) * blocks_n
        while block < before + blocks:
            m = first + (block - before) // blocks_n * BLOCK_M + tl.arange(0, BLOCK_M)
            n = (block - before) % blocks_n * BLOCK_N + tl.arange(0, BLOCK_N)
            k = tl.arange(0, BLOCK_K)
            a_ptrs = a_ptr + m[:, None] * stride_am + k[None, :]
            b_ptrs = b_ptr + group * stride_bg + k[:, None] * stride_bk + n[None, :] * stride_bn
            acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
            for start in range(0, K, BLOCK_K):
                a = tl.load(a_ptrs, mask=(m[:, None] < end) & (k[None, :] < K - start), other=0.0)
                b = tl.load(b_ptrs, mask=(k[:, None] < K - start) & (n[None, :] < N), other=0.0)
                acc = tl.dot(a, b, acc, input_precision=INPUT_PRECISION)
                a_ptrs += BLOCK_K
                b_ptrs += BLOCK_K * stride_bk
            out_ptrs = out_ptr + m[:, None] * stride_om + n[None, :]
            tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=(m[:, None] < end) & (n[None, :] < N))
            block += tl.num_programs(0)
        before += blocks


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    n, k, name, rows = p["n"], p["k"], p["dtype"], p["rows"]
    cuts = np.sort(rng.integers(0, rows, p["groups"] - 1, endpoint=True))
    offsets = np.concatenate([[0], cuts, [rows]]).astype(np.int32)
    a = inputs.draw(rng, p["inputs"], (rows, k), name)
    b = operands.matrix(rng, p["inputs"], (p["groups"], k, n), name, p["b_layout"])
    steps = operands.strides(b)
    arguments = {
        "a_ptr": a, "b_ptr": b, "offsets_ptr": Buffer(offsets, "int32"), "out_ptr": inputs.empty((rows, n), name),
        "groups": p["groups"], "N": n, "K": k,
        "stride_am": k, "stride_bg": steps[0], "stride_bk": steps[1], "stride_bn": steps[2], "stride_om": n,
    }
    constexprs = {
        "INPUT_PRECISION": p["input_precision"] if name == "fp32" else "ieee",
        "BLOCK_M": p["block_m"], "BLOCK_N": p["block_n"], "BLOCK_K": p["block_k"],
    }
    keywords = {"num_warps": p["num_warps"], "num_stages": p["num_stages"]}
    return Launch(arguments, constexprs, (p["programs"], 1, 1), ("out_ptr",), keywords)


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    a, b = (formats.decode(launch.buffer(name).array, p["dtype"]) for name in ("a_ptr", "b_ptr"))
    offsets = launch.buffer("offsets_ptr").array
    parts = [a[first:end] @ matrix for first, end, matrix in zip(offsets, offsets[1:], b, strict=False)]
    return {"out_ptr": np.concatenate(parts).astype(np.float32).astype(np.float64)}


SPEC = KernelSpec("grouped_matmul", grouped_matmul, _prepare, _expected)
