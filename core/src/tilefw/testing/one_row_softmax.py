"""Softmax of one row: the tile IR of a kernel with an exponential, reductions and a quotient, and what it computes, in NumPy.

Small enough to be compiled for chips that are no registered targets: tests that change a chip run it before and after.
"""

from __future__ import annotations

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.ir import Context, ModuleOp, context, parse

NAME = "softmax"


@tilefw.jit
def softmax(x_ptr, o_ptr, SIZE: tl.constexpr):
    offsets = tl.arange(0, SIZE)
    x = tl.load(x_ptr + offsets)
    e = tl.exp2(x - tl.max(x, 0))
    tl.store(o_ptr + offsets, e / tl.sum(e, 0))


def tile_module(size: int) -> tuple[ModuleOp, Context]:
    """The kernel for `size` elements of f32, a power of two, after no pass: pointers to x and to the result."""
    tiles = tilefw.compile(softmax, target="reference", signature={"x_ptr": "*fp32", "o_ptr": "*fp32"}, constexprs={"SIZE": size})
    return parse(tiles.text), context()


def operand(size: int) -> np.ndarray:
    """`size` elements of f32, the same in every call."""
    return np.random.default_rng(3).standard_normal(size).astype(np.float32)


def expected(x: np.ndarray) -> np.ndarray:
    """What the kernel stores, in f64."""
    exact = np.exp2(x.astype(np.float64) - x.max())
    return exact / exact.sum()
