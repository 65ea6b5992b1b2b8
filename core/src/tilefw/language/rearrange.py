"""Putting tiles together, taking them apart, reversing them, and picking their elements."""

from __future__ import annotations

from typing import Any

from tilefw.language.markers import builtin
from tilefw.language.tensor import tensor


@builtin
def join(a: Any, b: Any) -> tensor:
    """Both values side by side along a new last axis of extent 2, after they are broadcast; two scalars give shape (2,)."""
    ...


@builtin
def split(a: tensor) -> tuple[tensor, tensor]:
    """The two halves along the last axis, whose extent must be 2; the inverse of `join`. Shape (2,) gives two scalars."""
    ...


@builtin
def interleave(a: Any, b: Any) -> tensor:
    """The elements of `a` and `b` by turns along their last axis, which becomes twice as long; two scalars give shape (2,)."""
    ...


@builtin
def cat(input: tensor, other: tensor, can_reorder: bool = False, dim: int = 0) -> tensor:
    """`other` after `input` along axis `dim`; both have one shape and type.

    `can_reorder` is deprecated in Triton: it permits any order of the elements and wants tiles of one axis; the order stays here.
    """
    ...


@builtin
def flip(x: tensor, dim: int | None = None) -> tensor:
    """`x` with its elements along axis `dim`, by default the last, in reverse order."""
    ...


@builtin
def gather(src: tensor, index: tensor, axis: int) -> tensor:
    """The elements of `src` that `index` names along `axis`: `result[i][j] = src[index[i][j]][j]` for axis 0 of two.

    `index` is a tile of integers whose shape is that of `src` but for `axis`; the result has its shape. Indices count modulo the
    extent of the axis (Triton leaves those beyond it undefined).
    """
    ...
