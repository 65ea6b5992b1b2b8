"""Where values come from: the running program's place in the grid, ranges and filled tiles."""

from __future__ import annotations

from typing import Any

from tilefw.language.dtypes import dtype as DType  # noqa: N812  (parameters are named dtype)
from tilefw.language.markers import builtin
from tilefw.language.tensor import tensor


@builtin
def program_id(axis: int) -> tensor:
    """The index of the running program along `axis` (0, 1 or 2) of the grid: an int32 scalar."""
    ...


@builtin
def num_programs(axis: int) -> tensor:
    """The extent of the grid along `axis` (0, 1 or 2): an int32 scalar."""
    ...


@builtin
def arange(start: int, end: int) -> tensor:
    """The integers from `start` to `end`, exclusive: an int32 tile of shape (end - start,).

    Both are compile-time integers that fit 32 bits; their difference is a positive power of two.
    """
    ...


@builtin
def full(shape: Any, value: Any, dtype: DType) -> tensor:
    """A tile of `shape` (compile-time powers of two; () for a scalar) filled with a number or a run-time scalar, as `dtype`."""
    ...


@builtin
def zeros(shape: Any, dtype: DType) -> tensor:
    """A tile of `shape` filled with zeros of `dtype`."""
    ...


@builtin
def zeros_like(input: tensor) -> tensor:
    """Zeros with the shape and dtype of `input`."""
    ...


@builtin
def to_tensor(x: Any) -> tensor:
    """A Python number as a scalar of the running program: bool to int1, int to the first of int32, uint32, int64, uint64
    that holds it, float to float32 (float64 beyond its range). A tensor is returned as it is.
    """
    ...
