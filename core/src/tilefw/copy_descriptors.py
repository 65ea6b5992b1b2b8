"""CopyDescriptor: what a copy engine is told of an array, as a recipe over a kernel's arguments that the launch fills in.

The recipe travels in `Parameter.hidden`; each launch makes numbers of it, and its device the bytes that its engine reads.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from tilefw.api.device import Argument, DescribedArray, Scalar
from tilefw.api.errors import CodeError, LaunchError

PREFIX = "copy_descriptor "  # of `Parameter.hidden`
_MOST = (1 << 32) - 1  # elements of a dim that engines count; no block of those that begin at signed numbers of 32 bits gets there


@dataclass(frozen=True, slots=True)
class CopyDescriptor:
    """A recipe. `base` is the number of the pointer argument. Sizes, and strides in elements, are each a number or, as a string of
    digits, the number of the argument that holds it. The arguments of `divisors` are not negative, or blocks began before the
    array."""

    base: int
    sizes: tuple[int | str, ...]
    strides: tuple[int | str, ...]
    extents: tuple[int, ...]
    element: str
    element_bytes: int
    row_bytes: int
    alignment: int
    divisors: tuple[int, ...] = ()

    def __str__(self) -> str:
        """The words of `Parameter.hidden`."""
        return PREFIX + json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def of(cls, hidden: str | None) -> CopyDescriptor | None:
        """The recipe in the words of a hidden parameter; None where they are about something else. Raises CodeError (TFW0780) for
        words that `str` did not give."""
        return _read(hidden) if hidden is not None and hidden.startswith(PREFIX) else None

    def described(self, address: int, args: Sequence[Argument], kernel: str) -> DescribedArray:
        """The array of a launch with these arguments, whose base is at `address`. Raises LaunchError (TFW0357)."""
        below = [number for divisor in self.divisors if (number := _number(str(divisor), args)) < 0]
        if below:
            raise LaunchError(
                f"an array of {kernel} has blocks before its beginning, which its copy engine does not read", code="TFW0357",
                note=f"an argument that tells where blocks begin, a size or a divisor, is {below[0]}",
            )
        sizes = tuple(min(_number(size, args), _MOST) for size in self.sizes)
        strides = tuple(_number(stride, args) * self.element_bytes for stride in self.strides)
        if min(sizes) < 1:  # all blocks are beyond an empty array, whose strides may be anything: those of one that engines take
            sizes, strides = (1,) * len(sizes), (self.alignment,) * len(strides)
        wrong = [stride for stride in strides if stride < 0 or stride % self.alignment]
        if wrong or address % self.alignment:
            what = f"rows {wrong[0]} bytes apart" if wrong else f"its first element at {address:#x}"
            raise LaunchError(
                f"an array of {kernel} has {what}, which its copy engine does not take", code="TFW0357",
                note=f"rows follow one another, and begin at multiples of {self.alignment} bytes",
            )
        return DescribedArray(address, sizes, strides, self.extents, self.element, self.row_bytes)


@lru_cache(maxsize=1024)  # each launch asks, twice for each descriptor
def _read(words: str) -> CopyDescriptor:
    try:
        raw = json.loads(words.removeprefix(PREFIX))
        found: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in raw.items()}
        return CopyDescriptor(**found)
    except (AttributeError, TypeError, ValueError) as error:
        raise CodeError(f"what a parameter tells of its descriptor cannot be read: {error}", "TFW0780") from None


def _number(measure: int | str, args: Sequence[Argument]) -> int:
    if isinstance(measure, int):
        return measure
    argument = args[int(measure)]
    assert isinstance(argument, Scalar), "a measure is a scalar argument"
    return int(argument.value)
