"""out = a @ b through block pointers, which the loop advances; every edge is checked by the accesses themselves."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.integers import ceil_div
from tilefw.kernels import formats, operands
from tilefw.kernels.spec import KernelSpec, Launch, Parameters


@tilefw.jit
def block_pointer_matmul(
    a_ptr, b_ptr, out_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_om, stride_on,
    ACCUMULATOR: tl.constexpr, INPUT_PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    m = tl.program_id(0) * BLOCK_M
    n = tl.program_id(1) * BLOCK_N
    a_block = tl.make_block_ptr(a_ptr, (M, K), (stride_am, stride_ak), (m, 0), (BLOCK_M, BLOCK_K), (1, 0))
    b_block = tl.make_block_ptr(b_ptr, (K, N), (stride_bk, stride_bn), (0, n), (BLOCK_K, BLOCK_N), (1, 0))
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACCUMULATOR)
    for _ in range(0, tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_block, boundary_check=(0, 1), padding_option="zero")
        b = tl.load(b_block, boundary_check=(0, 1), padding_option="zero")
        acc = tl.dot(a, b, acc, input_precision=INPUT_PRECISION, out_dtype=ACCUMULATOR)
        a_block = tl.advance(a_block, (0, BLOCK_K))
        b_block = tl.advance(b_block, (BLOCK_K, 0))
    out_block = tl.make_block_ptr(out_ptr, (M, N), (stride_om, stride_on), (m, n), (BLOCK_M, BLOCK_N), (1, 0))
    tl.store(out_block, acc.to(out_block.dtype.element_ty), boundary_check=(0, 1))


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    m, n, k, name = p["m"], p["n"], p["k"], p["dtype"]
    a = operands.matrix(rng, p["inputs"], (m, k), name, p["a_layout"])
    b = operands.matrix(rng, p["inputs"], (k, n), name, p["b_layout"])
    out = operands.empty((m, n), name if p["result"] == "same" else p["result"], p["out_layout"])
    arguments = {"a_ptr": a, "b_ptr": b, "out_ptr": out, "M": m, "N": n, "K": k}
    for buffer, letters in ((a, ("am", "ak")), (b, ("bk", "bn")), (out, ("om", "on"))):
        arguments |= {f"stride_{word}": step for word, step in zip(letters, operands.strides(buffer), strict=True)}
    constexprs = {
        "ACCUMULATOR": tl.float64 if name == "fp64" else tl.float32,
        "INPUT_PRECISION": p["input_precision"] if name == "fp32" else "ieee",
        "BLOCK_M": p["block_m"], "BLOCK_N": p["block_n"], "BLOCK_K": p["block_k"],
    }
    grid = (ceil_div(m, p["block_m"]), ceil_div(n, p["block_n"]), 1)
    return Launch(arguments, constexprs, grid, ("out_ptr",), {"num_warps": p["num_warps"], "num_stages": p["num_stages"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    a, b = (formats.decode(launch.buffer(name).array, p["dtype"]) for name in ("a_ptr", "b_ptr"))
    return {"out_ptr": (a @ b).astype(operands.real(p["dtype"])).astype(np.float64)}


SPEC = KernelSpec("block_pointer_matmul", block_pointer_matmul, _prepare, _expected)
