"""out = a @ b through tensor descriptors: blocks are loaded and stored whole, and the descriptors know where the arrays end."""

from __future__ import annotations

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.errors import UsageError
from tilefw.kernels import block_product, formats, inputs, operands
from tilefw.kernels.spec import KernelSpec, Launch, Parameters

_ALIGNMENT = 16  # bytes, which divide every row


@tilefw.jit
def descriptor_matmul(
    a_ptr, b_ptr, out_ptr, M, N, K, stride_am, stride_bk,
    ACCUMULATOR: tl.constexpr, INPUT_PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    m = tl.program_id(0) * BLOCK_M
    n = tl.program_id(1) * BLOCK_N
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[stride_am, 1], block_shape=[BLOCK_M, BLOCK_K])
    b_desc = tl.make_tensor_descriptor(b_ptr, shape=[K, N], strides=[stride_bk, 1], block_shape=[BLOCK_K, BLOCK_N])
    out_desc = tl.make_tensor_descriptor(out_ptr, shape=[M, N], strides=[N, 1], block_shape=[BLOCK_M, BLOCK_N])
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACCUMULATOR)
    for k in range(0, K, BLOCK_K):
        a = a_desc.load([m, k])
        b = b_desc.load([k, n])
        acc = tl.dot(a, b, acc, input_precision=INPUT_PRECISION, out_dtype=ACCUMULATOR)
    out_desc.store([m, n], acc.to(out_desc.dtype))


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    m, n, k, name = p["m"], p["n"], p["k"], p["dtype"]
    result = name if p["result"] == "same" else p["result"]
    for word, extent, element in (("k", k, name), ("n", n, name), ("n", n, result)):
        if extent * formats.array_dtype(element).itemsize % _ALIGNMENT:
            raise UsageError(
                f"descriptor_matmul: {word}={extent} rows of {element} are not multiples of {_ALIGNMENT} bytes", code="TFW0942",
                note="as the rows of a tensor descriptor are",
            )
    a = operands.matrix(rng, p["inputs"], (m, k), name, p["a_layout"])
    b = operands.matrix(rng, p["inputs"], (k, n), name, p["b_layout"])
    arguments = {
        "a_ptr": a, "b_ptr": b, "out_ptr": inputs.empty((m, n), result), "M": m, "N": n, "K": k,
        "stride_am": operands.strides(a)[0], "stride_bk": operands.strides(b)[0],
    }
    return block_product.launch(p, arguments)


SPEC = KernelSpec("descriptor_matmul", descriptor_matmul, _prepare, block_product.expected)
