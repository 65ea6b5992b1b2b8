"""out = activation(a @ b + bias) for operands of any strides: blocks of out in groups of rows, one block a program."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.errors import UsageError
from tilefw.api.integers import ceil_div
from tilefw.kernels import formats, inputs, operands
from tilefw.kernels.grouped_blocks import grouped_block
from tilefw.kernels.spec import KernelSpec, Launch, Parameters

SQRT_HALF = tl.constexpr(0.7071067811865476)
_ACCUMULATORS = {"fp16": tl.float16, "fp32": tl.float32, "fp64": tl.float64}


@tilefw.jit
def activate(x, ACTIVATION: tl.constexpr):
    """One of `operands.ACTIVATIONS`."""
    if ACTIVATION == "relu":
        result = tl.maximum(x, 0.0)
    elif ACTIVATION == "gelu":
        result = 0.5 * x * (1.0 + tl.erf(x * SQRT_HALF))
    elif ACTIVATION == "silu":
        result = x * tl.sigmoid(x)
    else:
        result = x
    return result


@tilefw.jit
def matmul(
    a_ptr, b_ptr, bias_ptr, out_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_om, stride_on,
    ACTIVATION: tl.constexpr, ACCUMULATOR: tl.constexpr, COMPUTE: tl.constexpr, INPUT_PRECISION: tl.constexpr,
    EVEN_K: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):
    block_m, block_n = grouped_block(M, N, BLOCK_M, BLOCK_N, GROUP_M)
    # Rows and columns past the end wrap around: they are computed and never stored, and their loads need no mask.
    m = (block_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    n = (block_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (m[:, None] * stride_am + k[None, :] * stride_ak)
    b_ptrs = b_ptr + (k[:, None] * stride_bk + n[None, :] * stride_bn)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACCUMULATOR)
    for step in range(0, tl.cdiv(K, BLOCK_K)):
        if EVEN_K:
            a = tl.load(a_ptrs)
            b = tl.load(b_ptrs)
        else:
            a = tl.load(a_ptrs, mask=k[None, :] < K - step * BLOCK_K, other=0.0)
            b = tl.load(b_ptrs, mask=k[:, None] < K - step * BLOCK_K, other=0.0)
        acc = tl.dot(a, b, acc, input_precision=INPUT_PRECISION, out_dtype=ACCUMULATOR)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk

    m = block_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = block_n * BLOCK_N + tl.arange(0, BLOCK_N)
    result = acc.to(COMPUTE)
    if bias_ptr is not None:
        result += tl.load(bias_ptr + n, mask=n < N, other=0.0).to(COMPUTE)[None, :]
    result = activate(result, ACTIVATION)
    out_ptrs = out_ptr + m[:, None] * stride_om + n[None, :] * stride_on
    tl.store(out_ptrs, result.to(out_ptr.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


def _accumulator(p: Parameters) -> str:
    """The accumulator's type: fp64 for fp64, fp16 on request for fp16, fp32 else."""
    if p["dtype"] == "fp64":
        return "fp64"
    if p["accumulator"] == "fp16" and p["dtype"] != "fp16":
        raise UsageError(
            f"matmul: an fp16 accumulator of {p['dtype']} operands", code="TFW0942", note="only fp16 operands may have one",
        )
    return p["accumulator"]


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    m, n, k, name = p["m"], p["n"], p["k"], p["dtype"]
    a = operands.matrix(rng, p["inputs"], (m, k), name, p["a_layout"])
    b = operands.matrix(rng, p["inputs"], (k, n), name, p["b_layout"])
    out = operands.empty((m, n), name if p["result"] == "same" else p["result"], p["out_layout"])
    arguments = {
        "a_ptr": a, "b_ptr": b, "bias_ptr": inputs.draw(rng, p["inputs"], (n,), name) if p["bias"] else None, "out_ptr": out,
        "M": m, "N": n, "K": k,
    }
    for buffer, letters in ((a, ("am", "ak")), (b, ("bk", "bn")), (out, ("om", "on"))):
        arguments |= {f"stride_{word}": step for word, step in zip(letters, operands.strides(buffer), strict=True)}
    constexprs = {
        "ACTIVATION": p["activation"],
        "ACCUMULATOR": _ACCUMULATORS[_accumulator(p)],
        "COMPUTE": tl.float64 if name == "fp64" else tl.float32,
        "INPUT_PRECISION": p["input_precision"] if name == "fp32" else "ieee",
        "EVEN_K": k % p["block_k"] == 0,
        "BLOCK_M": p["block_m"], "BLOCK_N": p["block_n"], "BLOCK_K": p["block_k"], "GROUP_M": p["group_m"],
    }
    grid = (ceil_div(m, p["block_m"]) * ceil_div(n, p["block_n"]), 1, 1)
    return Launch(arguments, constexprs, grid, ("out_ptr",), {"num_warps": p["num_warps"], "num_stages": p["num_stages"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    a, b = (formats.decode(launch.buffer(name).array, p["dtype"]) for name in ("a_ptr", "b_ptr"))
    result = (a @ b).astype(operands.real(p["dtype"]))
    if p["bias"]:
        result = result + operands.values(launch.buffer("bias_ptr"))
    return {"out_ptr": operands.ACTIVATIONS[p["activation"]](result).astype(np.float64)}


SPEC = KernelSpec("matmul", matmul, _prepare, _expected)
