"""out = a @ b through block pointers, which the loop advances; every edge is checked by the accesses themselves."""

from __future__ import annotations

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.kernels import block_product, operands
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
    return block_product.launch(p, arguments)


SPEC = KernelSpec("block_pointer_matmul", block_pointer_matmul, _prepare, block_product.expected)
