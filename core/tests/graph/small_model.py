"""A small feed-forward block of library kernels: x + W2 · gelu(W1 · rmsnorm(x) + b), then softmax; five launches."""

from __future__ import annotations

from functools import cache

import numpy as np

import tilefw.language as tl
from tilefw.graph.compile_graph import compile_graph
from tilefw.graph.kernel_graph import GraphBuilder, KernelGraph, ModelTensor
from tilefw.graph.plan import ModelPlan
from tilefw.kernels.matmul import matmul
from tilefw.kernels.rmsnorm import rmsnorm
from tilefw.kernels.softmax import softmax
from tilefw.kernels.vector_add import vector_add

ROWS, WIDTH, HIDDEN = 8, 32, 64


def weights(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)


def x(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((ROWS, WIDTH)).astype(np.float32)


W1, W2, BIAS, SCALE = weights((WIDTH, HIDDEN), 1), weights((HIDDEN, WIDTH), 2), weights((HIDDEN,), 3), weights((WIDTH,), 4)


def graph() -> KernelGraph:
    made = GraphBuilder()
    given = made.input("x", "fp32", (ROWS, WIDTH))
    w1, w2, bias, scale = (
        made.constant(name, array, "fp32") for name, array in (("w1", W1), ("w2", W2), ("bias", BIAS), ("scale", SCALE))
    )
    normed, rstd = made.temporary("normed", "fp32", (ROWS, WIDTH)), made.temporary("rstd", "fp32", (ROWS,))
    hidden, out = made.temporary("hidden", "fp32", (ROWS, HIDDEN)), made.temporary("out", "fp32", (ROWS, WIDTH))
    added, soft = made.temporary("added", "fp32", (ROWS, WIDTH)), made.temporary("soft", "fp32", (ROWS, WIDTH))
    made.call(
        "norm", rmsnorm,
        {"x_ptr": given, "weight_ptr": scale, "out_ptr": normed, "rstd_ptr": rstd, "stride": WIDTH, "columns": WIDTH, "eps": 1e-5},
        (ROWS, 1, 1), {"COMPUTE": tl.float32, "ONE_TILE": True, "BLOCK": WIDTH}, {"num_warps": 1},
    )
    _product(made, "up", normed, w1, bias, hidden, "gelu")
    _product(made, "down", hidden, w2, None, out, "none")
    count = ROWS * WIDTH
    made.call("add", vector_add, {"x_ptr": given, "y_ptr": out, "out_ptr": added, "n": count}, (count // 128, 1, 1), {"BLOCK": 128})
    made.call(
        "softmax", softmax,
        {"x_ptr": added, "out_ptr": soft, "rows": ROWS, "columns": WIDTH, "x_stride": WIDTH, "out_stride": WIDTH}, (ROWS, 1, 1),
        {"COMPUTE": tl.float32, "ONE_TILE": True, "BLOCK": WIDTH}, {"num_warps": 1},
    )
    made.output("probabilities", soft)
    made.output("flat", added.reshaped((count,)))
    return made.graph()


def _product(
    made: GraphBuilder, label: str, a: ModelTensor, b: ModelTensor, bias: ModelTensor | None, out: ModelTensor, activation: str
) -> None:
    (m, k), n = a.shape, b.shape[1]
    made.call(
        label, matmul,
        {"a_ptr": a, "b_ptr": b, "bias_ptr": bias, "out_ptr": out, "M": m, "N": n, "K": k, "stride_am": k, "stride_ak": 1,
         "stride_bk": n, "stride_bn": 1, "stride_om": n, "stride_on": 1},
        (-(-m // 16) * (n // 32), 1, 1),
        {"ACTIVATION": activation, "ACCUMULATOR": tl.float32, "COMPUTE": tl.float32, "INPUT_PRECISION": "ieee", "EVEN_K": True,
         "BLOCK_M": 16, "BLOCK_N": 32, "BLOCK_K": 16, "GROUP_M": 1},
    )


@cache
def plan(target: str) -> ModelPlan:
    return compile_graph(graph(), target)


def expected(given: np.ndarray) -> np.ndarray:
    """The probabilities, in float64."""
    from math import erf

    given = given.astype(np.float64)
    normed = given / np.sqrt((given**2).mean(axis=1, keepdims=True) + 1e-5) * SCALE
    up = normed @ W1.astype(np.float64) + BIAS
    gelu = 0.5 * up * (1 + np.vectorize(erf)(up / np.sqrt(2)))
    powers = np.exp(given + gelu @ W2.astype(np.float64))
    return powers / powers.sum(axis=1, keepdims=True)
