"""What tests of reductions and scans share: whole tiles of every type, loaded and stored, and the types of NumPy and of sums."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

import tilefw
import tilefw.language as tl

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")


@tilefw.jit
def load_tile(ptr, SHAPE: tl.constexpr):
    offsets = tl.zeros(SHAPE, tl.int32)
    stride: tl.constexpr = 1
    for axis in tl.static_range(len(SHAPE) - 1, -1, -1):
        index = tl.arange(0, SHAPE[axis])
        for other in tl.static_range(len(SHAPE)):
            if other != axis:
                index = tl.expand_dims(index, other)
        offsets += index * stride
        stride: tl.constexpr = stride * SHAPE[axis]
    return tl.load(ptr + offsets)


@tilefw.jit
def store_all(ptr, value):
    if len(value.shape) == 0:
        tl.store(ptr, value)
    else:
        tl.store(ptr + tl.arange(0, value.numel), tl.ravel(value))


def numbers(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dtype in INTEGERS:
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        return rng.integers(low, high, shape, dtype, endpoint=True)
    return rng.standard_normal(shape).astype(host_type(dtype))


def host_type(name: str) -> Any:
    """NumPy's type for a type of the language."""
    return ml_dtypes.bfloat16 if name == "bfloat16" else np.dtype(name)


def sum_type(dtype: str) -> str:
    return {"int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}.get(dtype, dtype)
