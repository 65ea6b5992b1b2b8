"""Changing the shape of a tile without changing its elements."""

from __future__ import annotations

from typing import Any

from tilefw.language.dtypes import dtype as DType  # noqa: N812  (parameters are named dtype)
from tilefw.language.markers import builtin
from tilefw.language.tensor import tensor


@builtin
def broadcast(input: Any, other: Any) -> tuple[tensor, tensor]:
    """Both values, brought to their common shape: missing leading axes are added, extents of 1 are repeated."""
    ...


@builtin
def broadcast_to(input: tensor, *shape: Any) -> tensor:
    """`input` repeated to `shape` of the same rank, along its axes of extent 1; a scalar fills any shape."""
    ...


@builtin
def expand_dims(input: Any, axis: Any) -> tensor:
    """`input` with axes of extent 1 inserted; `axis` (an int or a tuple of ints) counts in the result, from its end if negative."""
    ...


@builtin
def reshape(input: tensor, *shape: Any, can_reorder: bool = False) -> tensor:
    """The same elements in row-major order under another shape of equal size; shape () takes the element of a one-element
    tile. `can_reorder` is a permission that tilefw does not use.
    """
    ...


@builtin
def item(input: tensor) -> tensor:
    """The element of a one-element tile, as a scalar."""
    ...


@builtin
def view(input: tensor, *shape: Any) -> tensor:
    """Deprecated in Triton; the same as `reshape`."""
    ...


@builtin
def ravel(x: tensor, can_reorder: bool = False) -> tensor:
    """The elements of `x` in row-major order as a tile of one axis."""
    ...


@builtin
def squeeze(x: tensor, dim: int) -> tensor:
    """`x` without its axis `dim`, whose extent must be 1."""
    ...


@builtin
def unsqueeze(x: tensor, dim: int) -> tensor:
    """`x` with an axis of extent 1 inserted at `dim`."""
    ...


@builtin
def trans(input: tensor, *dims: Any) -> tensor:
    """`input` with its axes permuted by `dims`; without `dims` its last two axes are swapped."""
    ...


@builtin
def permute(input: tensor, *dims: Any) -> tensor:
    """`input` with its axes permuted: axis i of the result is axis `dims[i]` of `input`."""
    ...


@builtin
def cast(input: Any, dtype: DType, fp_downcast_rounding: str | None = None, bitcast: bool = False) -> tensor:
    """`input` converted to `dtype`, or with `bitcast=True` its bits read as `dtype` of the same width.

    `fp_downcast_rounding` ("rtne", the default, or "rtz") is for float to narrower float only. Float to integer rounds
    towards zero and saturates, NaN gives 0; integers wrap; anything to int1 is `!= 0`. Pointers convert to and from
    int64 and to other pointers.
    """
    ...
