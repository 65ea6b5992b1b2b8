"""Combining the elements of a tile along an axis. The order of combination is the compiler's, so a float sum may round differently
on another target; `axis=None` reduces over all axes.
"""

from __future__ import annotations

from typing import Any

from tilefw.language.dtypes import dtype as DType  # noqa: N812  (parameters are named dtype)
from tilefw.language.markers import builtin
from tilefw.language.tensor import tensor


@builtin
def sum(input: tensor, axis: int | None = None, keep_dims: bool = False, dtype: DType | None = None) -> tensor:
    """The sum along `axis`. `input` is cast to `dtype` first; without it, signed integers below 32 bits are added as int32,
    unsigned ones and int1 as uint32, all others as they are. `keep_dims` leaves the axis with extent 1.
    """
    ...


@builtin
def max(
    input: tensor, axis: int | None = None, return_indices: bool = False, return_indices_tie_break_left: bool = True,
    keep_dims: bool = False,
) -> Any:
    """The largest element along `axis`; floats below 32 bits give float32, integers below 32 bits int32. Of a number and a NaN
    the number.

    With `return_indices` the pair (largest element in its own type, its int32 index along `axis`, which must be given);
    of equal elements the leftmost, or any with `return_indices_tie_break_left=False`.
    """
    ...


@builtin
def min(
    input: tensor, axis: int | None = None, return_indices: bool = False, return_indices_tie_break_left: bool = True,
    keep_dims: bool = False,
) -> Any:
    """The smallest element along `axis`; see `max`."""
    ...


@builtin
def argmax(input: tensor, axis: int, tie_break_left: bool = True, keep_dims: bool = False) -> tensor:
    """The int32 index of the largest element along `axis`; of equal ones the leftmost, or any with `tie_break_left=False`."""
    ...


@builtin
def argmin(input: tensor, axis: int, tie_break_left: bool = True, keep_dims: bool = False) -> tensor:
    """The int32 index of the smallest element along `axis`; see `argmax`."""
    ...


@builtin
def xor_sum(input: tensor, axis: int | None = None, keep_dims: bool = False) -> tensor:
    """The exclusive or of the elements along `axis`; integers, in their own type."""
    ...


@builtin
def reduce_or(input: tensor, axis: int | None, keep_dims: bool = False) -> tensor:
    """The bitwise or of the elements along `axis`; integers, in their own type."""
    ...


@builtin
def reduce(input: Any, axis: int | None, combine_fn: Any, keep_dims: bool = False) -> Any:
    """The elements along `axis`, combined by the jit function `combine_fn`; a tuple of tiles of one shape gives a tuple.

    For n tiles `combine_fn` takes 2n scalars, n of one group and n of the next, and returns n of the tiles' element types. It
    should be associative and commutative, and may only compute: no memory, no tiles, no loops at run time.
    """
    ...


@builtin
def softmax(x: tensor, dim: int | None = None, *, keep_dims: bool | None = None, ieee_rounding: bool = False) -> tensor:
    """exp(x - max) / sum(exp(x - max)) along `dim`, which is 0 by default; float32 for narrower floats, float64 for float64.

    The shape stays; `keep_dims` is deprecated in Triton and ignored. `ieee_rounding` is that of the division.
    """
    ...
