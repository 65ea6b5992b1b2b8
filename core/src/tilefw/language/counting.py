"""Counting the elements of a tile by their value."""

from __future__ import annotations

from typing import Any

from tilefw.language.markers import builtin
from tilefw.language.tensor import tensor


@builtin
def histogram(input: tensor, num_bins: int, mask: Any = None) -> tensor:
    """How often each of 0, 1, … `num_bins` - 1 occurs in a tile of one axis: an int32 tile of `num_bins`, a power of two.

    `input` is int32 or uint32. Elements where `mask` (int1) is false, and those that are no bin, are not counted (Triton leaves
    the latter undefined).
    """
    ...
