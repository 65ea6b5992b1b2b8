"""A small kernel, and its compilation for the X1."""

from __future__ import annotations

import pytest

import tilefw
import tilefw.language as tl


@tilefw.jit
def scaled(x_ptr, out_ptr, factor, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=inside) * factor, mask=inside)


@pytest.fixture
def scale():
    return scaled


@pytest.fixture
def compiled():
    def compile(block: int = 256, dtype: str = "fp32"):
        signature = {"x_ptr": f"*{dtype}", "out_ptr": f"*{dtype}", "factor": dtype, "n": "i32"}
        return tilefw.compile(scaled, target="acme-x1", signature=signature, constexprs={"BLOCK": block})

    return compile


@tilefw.jit
def halved_late(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    wide = tl.load(x_ptr + offsets)
    low = tl.zeros((BLOCK,), dtype=tl.int32)
    for _ in range(n):
        before = wide
        wide = wide * 3 + 1
        low = before.to(tl.int32)
    tl.store(out_ptr + offsets, low)


@pytest.fixture
def late():
    return halved_late
