"""A kernel for launches on a stand-in's card."""

from __future__ import annotations

import tilefw
import tilefw.language as tl

TARGET = "nvidia-sm80"
SIGNATURE = {"x_ptr": "*fp32", "out_ptr": "*fp32", "factor": "fp32", "n": "i32"}


@tilefw.jit
def scale(x_ptr, out_ptr, factor, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, inside) * factor, inside)
