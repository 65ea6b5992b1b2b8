"""Where elements lie: views of arrays as (extent, stride) pairs, and the text that turns an element's number into its offset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

Shape = Sequence[int]


@dataclass(frozen=True, slots=True)
class View:
    """Elements of one array in some order: `dims` holds (extent, stride in elements), outermost first, from element `start` on.

    A stride of 0 repeats an element, a negative one goes backwards.
    """

    dims: tuple[tuple[int, int], ...]
    start: int = 0

    @property
    def size(self) -> int:
        return prod(extent for extent, _ in self.dims)

    def broadcast(self, shape: Shape) -> View:
        """Repeated to `shape` by NumPy's rule: dims are matched from the last one on, extents of 1 repeat."""
        missing = len(shape) - len(self.dims)
        own = ((1, 0),) * missing + self.dims
        return View(tuple((n, 0 if extent == 1 else stride) for n, (extent, stride) in zip(shape, own, strict=True)), self.start)

    def take(self, dims: Sequence[int]) -> View:
        """The dims named, in that order: a transposition, or a part whose other coordinates are 0."""
        return View(tuple(self.dims[dim] for dim in dims), self.start)

    def moved(self, elements: int) -> View:
        return View(self.dims, self.start + elements)

    def offset(self, index: str) -> str:
        """The offset of the element whose number, in row-major order of the view, is the text `index`."""
        terms = [str(self.start)] if self.start else []
        divisor, whole = 1, prod(extent for extent, _ in self.dims)
        for extent, stride in reversed(_merged(self.dims)):
            if stride:
                terms.append(_term(index, divisor, extent, stride, divisor * extent == whole))
            divisor *= extent
        return " + ".join(reversed(terms)) or "0"


def contiguous(shape: Shape) -> View:
    """All elements of an array, in the order in which they lie."""
    return View(tuple((extent, prod(shape[dim + 1 :])) for dim, extent in enumerate(shape)))


def _merged(dims: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Fewer dims with the same elements in the same order: those of extent 1 go, those that continue each other are one."""
    merged: list[tuple[int, int]] = []
    for extent, stride in dims:
        if extent == 1:
            continue
        if merged and merged[-1][1] == extent * stride:
            extent *= merged.pop()[0]
        merged.append((extent, stride))
    return merged


def _term(index: str, divisor: int, extent: int, stride: int, outermost: bool) -> str:
    """One dim's part of an offset. Element numbers are 0 or more, so `//` and `%` are those of whole numbers."""
    text = index if divisor == 1 else f"{index} // {divisor}"
    if not outermost:
        text = f"{text} % {extent}"
    if stride == 1:
        return text
    return f"{text} * {stride}" if text == index else f"({text}) * {stride}"


def next_power_of_2(n: int) -> int:
    """The least power of two that is at least `n` and at least 1: no tile is empty (Triton's is 0 for 0)."""
    return 1 << max(0, n - 1).bit_length()


def axis_of(axis: int, rank: int) -> int:
    """An axis counted from the front; ONNX counts negative ones from the back."""
    return axis + rank if axis < 0 else axis
