"""Sorting the elements of a tile along one axis."""

from __future__ import annotations

from tilefw.language.markers import builtin
from tilefw.language.tensor import tensor


@builtin
def sort(x: tensor, dim: int | None = None, descending: bool = False) -> tensor:
    """The elements along axis `dim`, by default the last, in ascending or descending order.

    Triton takes the last axis only. As there, a row with a NaN is not sorted, since nothing is above or below it: NaN and numbers
    beside it may stand twice. Zeros of both signs are equal, and either may stand twice.
    """
    ...


@builtin
def topk(x: tensor, k: int, dim: int | None = None, descending: bool = True) -> tensor:
    """The `k` largest elements along axis `dim`, by default the last, the largest first; the smallest, the smallest first,
    with `descending=False`. `k` is a power of two.

    Where `k` is less than the axis, floats below 32 bits give float32 and integers below 32 bits int32, as `tl.max` does.
    """
    ...


@builtin
def bitonic_merge(x: tensor, dim: int | None = None, descending: bool = False) -> tensor:
    """The sorted elements along axis `dim`, by default the last, which rise first and fall then, or fall first and rise then."""
    ...
