"""Small models of library kernels in fp16. For tests alone."""

from __future__ import annotations

import numpy as np

import tilefw.language as tl
from tilefw.graph.kernel_graph import GraphBuilder, ModelTensor
from tilefw.kernels.matmul import matmul
from tilefw.kernels.rmsnorm import rmsnorm
from tilefw.kernels.vector_add import vector_add

ROWS = 16


def given(width: int) -> np.ndarray:
    """An input."""
    return np.random.default_rng(0).standard_normal((ROWS, width)).astype(np.float16)


class LinkedModel:
    """Library kernels in fp16 over rows of `width` elements."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.made = GraphBuilder()
        self.x = self.made.input("x", "fp16", (ROWS, width))

    def rows(self, name: str) -> ModelTensor:
        return self.made.temporary(name, "fp16", (ROWS, self.width))

    def constant(self, name: str) -> ModelTensor:
        """Rows that nothing writes."""
        return self.made.constant(name, np.ones((ROWS, self.width), np.float16), "fp16")

    def product(self, label: str, a: ModelTensor, activation: str, out: ModelTensor) -> ModelTensor:
        weights = np.random.default_rng(len(label)).standard_normal((self.width, self.width)) / np.sqrt(self.width)
        b = self.made.constant(f"{label} weights", weights.astype(np.float16), "fp16")
        self.made.call(
            label, matmul,
            {"a_ptr": a, "b_ptr": b, "bias_ptr": None, "out_ptr": out, "M": ROWS, "N": self.width, "K": self.width,
             "stride_am": self.width, "stride_ak": 1, "stride_bk": self.width, "stride_bn": 1,
             "stride_om": self.width, "stride_on": 1},
            (self.width // 32, 1, 1),
            {"ACTIVATION": activation, "ACCUMULATOR": tl.float32, "COMPUTE": tl.float32, "INPUT_PRECISION": "ieee", "EVEN_K": True,
             "BLOCK_M": ROWS, "BLOCK_N": 32, "BLOCK_K": 32, "GROUP_M": 1},
        )
        return out

    def added(self, label: str, a: ModelTensor, b: ModelTensor, out: ModelTensor) -> ModelTensor:
        arguments = {"x_ptr": a, "y_ptr": b, "out_ptr": out, "n": ROWS * self.width}
        self.made.call(label, vector_add, arguments, (ROWS * self.width // 128, 1, 1), {"BLOCK": 128})
        return out

    def normed(self, label: str, x: ModelTensor, out: ModelTensor) -> ModelTensor:
        scale = self.made.constant(f"{label} scale", np.linspace(0.5, 1.5, self.width, dtype=np.float16), "fp16")
        self.made.call(
            label, rmsnorm,
            {"x_ptr": x, "weight_ptr": scale, "out_ptr": out, "rstd_ptr": self.made.temporary(f"{label} rstd", "fp32", (ROWS,)),
             "stride": self.width, "columns": self.width, "eps": 1e-5},
            (ROWS, 1, 1), {"COMPUTE": tl.float32, "ONE_TILE": True, "BLOCK": self.width}, {"num_warps": 1},
        )
        return out
