"""Operands of matrix kernels in any memory order, and NumPy's word on products and sums: what several expressions share."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tilefw.api.integers import ceil_div
from tilefw.kernels import formats, inputs
from tilefw.kernels.spec import Buffer

_PADDING = 8  # elements between the rows of a padded operand: its rows stay as aligned as they were


def matrix(rng: np.random.Generator, kind: str, shape: tuple[int, ...], name: str, order: str) -> Buffer:
    """An input whose last two dims lie in memory as `order` (`index.MEMORY_ORDERS`) says."""
    return Buffer(_ordered(lambda stored: inputs.draw(rng, kind, stored, name), shape, order), name)


def empty(shape: tuple[int, ...], name: str, order: str) -> Buffer:
    """An output whose last two dims lie in memory as `order` says."""
    return Buffer(_ordered(lambda stored: inputs.empty(stored, name), shape, order), name)


def strides(buffer: Buffer) -> tuple[int, ...]:
    """The strides in elements."""
    return tuple(step // buffer.array.itemsize for step in buffer.array.strides)


def real(name: str) -> type[np.floating]:
    """The type that kernels compute in for elements of type `name`."""
    return np.float64 if name == "fp64" else np.float32


def values(buffer: Buffer) -> np.ndarray:
    """The elements of a float buffer in the type that kernels compute in: exact."""
    return formats.decode(buffer.array, buffer.dtype).astype(real(buffer.dtype))


def lanewise_sum(terms: np.ndarray, block: int, axis: int = -1) -> np.ndarray:
    """The float64 sum along `axis` of tiles of `block` terms that were first added to each other, each add rounded in their type.

    So a kernel adds that keeps a running tile and reduces it once. The adds between tiles are correctly rounded, which leaves
    no choice; the order within the last tile is open, and float64 stands for it.
    """
    moved = np.moveaxis(terms, axis, -1)
    count = ceil_div(moved.shape[-1], block)
    padded = np.zeros((*moved.shape[:-1], count * block), terms.dtype)
    padded[..., : moved.shape[-1]] = moved
    tiles = padded.reshape(*moved.shape[:-1], count, block)
    running = tiles[..., 0, :]
    for index in range(1, count):
        running = running + tiles[..., index, :]
    return running.astype(np.float64).sum(axis=-1)


def gelu(x: np.ndarray) -> np.ndarray:
    """x·Φ(x) (Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016), in the type of `x`."""
    erf = np.asarray(np.frompyfunc(math.erf, 1, 1)(x * x.dtype.type(math.sqrt(0.5)))).astype(x.dtype)
    return x.dtype.type(0.5) * x * (1 + erf)


def silu(x: np.ndarray) -> np.ndarray:
    """x / (1 + exp(-x)) in the type of `x`."""
    with np.errstate(over="ignore"):
        return x / (1 + np.exp(-x))


ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "none": lambda x: x,
    "relu": lambda x: np.fmax(x, 0),  # of NaN it is 0, as of Triton's maximum
    "gelu": gelu,
    "silu": silu,
}


def _ordered(make: Callable[[tuple[int, ...]], Buffer], shape: tuple[int, ...], order: str) -> np.ndarray:
    *batch, rows, columns = shape
    if order == "columns":
        return make((*batch, columns, rows)).array.swapaxes(-1, -2)
    if order == "padded":
        return make((*batch, rows, columns + _PADDING)).array[..., :columns]
    return make(shape).array
