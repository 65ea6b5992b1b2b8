"""Launches of kernels that read and write blocks of arrays, and NumPy's word on what a padded block is."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilefw


def block_of(x: np.ndarray, offsets: tuple[int, ...], block: tuple[int, ...], fill: float) -> np.ndarray:
    """The block, element by element: `fill` out of bounds."""
    found = np.full(block, fill, x.dtype)
    for index in np.ndindex(*block):
        at = tuple(o + i for o, i in zip(offsets, index, strict=True))
        if all(0 <= a < n for a, n in zip(at, x.shape, strict=True)):
            found[index] = x[at]
    return found


def launched(kernel: Any, *args: Any, grid: tuple[int, ...] = (1,), **constexprs: Any) -> None:
    with tilefw.target("reference", checks="all"):
        kernel[grid](*args, **constexprs)
