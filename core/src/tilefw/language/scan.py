"""Running combinations of a tile's elements along an axis: each result combines an element with all before it.

Elements keep their order, but how they are grouped is the compiler's, so a running float sum may round differently on another
target.
"""

from __future__ import annotations

from typing import Any

from tilefw.language.dtypes import dtype as DType  # noqa: N812  (parameters are named dtype)
from tilefw.language.markers import builtin
from tilefw.language.tensor import tensor


@builtin
def cumsum(input: tensor, axis: int = 0, reverse: bool = False, dtype: DType | None = None) -> tensor:
    """The running sum along `axis`, from the end on with `reverse`; of the same shape.

    `input` is cast to `dtype` first; without it, signed integers below 32 bits are added as int32, unsigned ones and int1 as
    uint32, all others as they are. Prefixes of bf16 are added in fp32 and rounded once.
    """
    ...


@builtin
def cumprod(input: tensor, axis: int = 0, reverse: bool = False, dtype: DType | None = None) -> tensor:
    """The running product along `axis`; see `cumsum`."""
    ...


@builtin
def associative_scan(input: Any, axis: int, combine_fn: Any, reverse: bool = False) -> Any:
    """Each element along `axis` combined with all before it by the jit function `combine_fn`; with `reverse`, with all behind it.

    A tuple of tiles of one shape gives a tuple. For n tiles `combine_fn` takes 2n scalars, n of the elements that come first (with
    `reverse`, those of the higher indices) and n of the next, and returns n of the tiles' element types. It should be associative,
    need not be commutative, and may only compute: no memory, no tiles, no loops at run time.
    """
    ...
