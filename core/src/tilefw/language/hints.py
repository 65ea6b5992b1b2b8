"""What an author knows about values and the compiler may use. A hint that does not hold makes the kernel's result undefined."""

from __future__ import annotations

from typing import Any

from tilefw.language.markers import builtin
from tilefw.language.tensor import tensor


@builtin
def multiple_of(input: tensor, values: Any) -> tensor:
    """`input`, whose first element of every contiguous run along axis d is a multiple of `values[d]`."""
    ...


@builtin
def max_contiguous(input: tensor, values: Any) -> tensor:
    """`input`, which along axis d is made of runs of `values[d]` consecutive integers."""
    ...


@builtin
def max_constancy(input: tensor, values: Any) -> tensor:
    """`input`, which along axis d is made of runs of `values[d]` equal elements."""
    ...


@builtin
def assume(cond: Any) -> None:
    """A condition that always holds here. It is accepted; nothing is derived from it yet."""
    ...


@builtin
def expect_zero(x: tensor, mask: Any) -> tensor:
    """`x`, which is zero wherever `mask` is true; a note for Triton's sanitizers, `x` itself here."""
    ...
