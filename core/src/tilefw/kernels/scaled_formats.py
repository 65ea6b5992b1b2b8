"""Arrays in formats with scales: elements, two of e2m1 in a byte, and the scales of groups of them; drawn and read with NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tilefw.kernels import formats, inputs
from tilefw.kernels.spec import Buffer

ELEMENTS = {
    "e2m1": "fp4e2m1", "e2m3": "fp6e2m3", "e3m2": "fp6e3m2", "e4m3": "fp8e4nv", "e5m2": "fp8e5", "bf16": "bf16", "fp16": "fp16",
}
"""The element type of each format of `tl.dot_scaled`."""

_NAN = 0xFF
_BIAS = 127


def packed(format: str) -> int:
    """How many elements a byte of an array of the format holds."""
    return 2 if format == "e2m1" else 1


def draw(rng: np.random.Generator, kind: str, shape: tuple[int, ...], format: str, axis: int) -> Buffer:
    """An array of elements; those of e2m1 are packed along `axis`, the first in the low bits."""
    found = inputs.draw(rng, kind, shape, ELEMENTS[format])
    if format != "e2m1":
        return found
    return Buffer(pack(found.array.view(np.uint8), axis), "uint8")


def pack(codes: np.ndarray, axis: int) -> np.ndarray:
    """Codes of four bits, two neighbours along `axis` in a byte."""
    last = np.moveaxis(codes, axis, -1)
    return np.ascontiguousarray(np.moveaxis(last[..., 0::2] | last[..., 1::2] << 4, -1, axis))


def decode(buffer: Buffer, format: str, axis: int) -> np.ndarray:
    """The elements in float64, without their scales."""
    if format != "e2m1":
        return formats.decode(buffer.array, buffer.dtype)
    last = np.moveaxis(buffer.array, axis, -1)
    codes = np.stack([last & 15, last >> 4], axis=-1).reshape(*last.shape[:-1], 2 * last.shape[-1])
    return np.moveaxis(codes.view(ml_dtypes.float4_e2m1fn).astype(np.float64), -1, axis)


def scales(rng: np.random.Generator, kind: str, shape: tuple[int, ...], high: np.ndarray | None) -> Buffer:
    """Scales of one of `index.SCALES`.

    Those at the ends of the range are near the largest in the groups that `high` tells, and near the least in others, so that the
    other operand's can be at the other end; None stands for an operand whose scales are alone.
    """
    if kind == "e4m3":
        found = np.abs(formats.decode(inputs.draw(rng, "edges", shape, "fp8e4nv").array, "fp8e4nv"))
        return Buffer(formats.store(found, "fp8e4nv"), "fp8e4nv")
    if kind == "near":
        codes = rng.integers(_BIAS - 6, _BIAS + 7, shape)
    elif high is None:
        codes = rng.integers(0, 2 * _BIAS - 15, shape)
    else:
        codes = np.where(high, rng.integers(2 * _BIAS - 15, 2 * _BIAS + 1, shape), rng.integers(0, 16, shape))
    if kind == "nan":
        codes = np.where(rng.random(shape) < 0.1, _NAN, codes)
    return Buffer(codes.astype(np.uint8), "uint8")


def factors(buffer: Buffer) -> np.ndarray:
    """The numbers that scales stand for, in float64."""
    if buffer.dtype != "uint8":
        return formats.decode(buffer.array, buffer.dtype)
    codes = buffer.array.astype(np.int64)
    return np.where(codes == _NAN, np.nan, np.ldexp(1.0, codes - _BIAS))
