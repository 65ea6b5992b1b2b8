"""sort, topk, bitonic_merge: bitonic networks of flips and choices, in the order of Triton's, so that NaN go the same ways.

Batcher, "Sorting networks and their applications", AFIPS 1968. One step compares elements whose places differ in one bit: each sees
the other in a reversed axis of extent 2, and the smaller or the larger of both stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tilefw.language as tl
from tilefw.api.errors import CompileError
from tilefw.frontend import arithmetic
from tilefw.frontend.builder import Builder, power_of_two
from tilefw.frontend.builtins import math, reduction
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.casts import cast
from tilefw.frontend.combine import Deed, combinable
from tilefw.frontend.semantics import checked_axis, checked_flag, not_constexpr
from tilefw.frontend.values import RuntimeValue, describe

meaning = Meanings()

_SORT = Deed("sorts", "sorted", "sort")


@meaning("sort")
def sort(b: Builder, x: Any, dim: Any, descending: Any) -> RuntimeValue:
    rows = _rows("sort", x, dim)
    return _largest(b, rows, rows.extent, checked_flag(descending, "descending"))


@meaning("topk")
def topk(b: Builder, x: Any, k: Any, dim: Any, descending: Any) -> RuntimeValue:
    rows = _rows("topk", x, dim)
    if isinstance(k, RuntimeValue):
        raise not_constexpr("k")
    if not isinstance(k, int) or not power_of_two(k) or k > rows.extent:
        raise CompileError(
            f"tl.topk takes a power of two of at most {rows.extent} elements, not {describe(k)}",
            "TFW0212",
            note=f"axis {rows.axis} of the tile has {rows.extent} elements",
        )
    return _largest(b, rows, k, checked_flag(descending, "descending"))


@meaning("bitonic_merge")
def bitonic_merge(b: Builder, x: Any, dim: Any, descending: Any) -> RuntimeValue:
    rows = _rows("bitonic_merge", x, dim)
    merged = _merge(b, rows, rows.tile, rows.bits, checked_flag(descending, "descending"))
    return b.reshape(merged, rows.tile.shape)


@dataclass(frozen=True, slots=True)
class _SortedRows:
    """A tile, each of whose rows along `axis` is sorted; neighbours in a row are 2**`low` places apart in the whole tile."""

    tile: RuntimeValue
    axis: int
    low: int

    @property
    def extent(self) -> int:
        return self.tile.shape[self.axis]

    @property
    def bits(self) -> int:
        return log2(self.extent)


def _rows(function: str, x: Any, dim: Any) -> _SortedRows:
    tile = combinable(function, x, _SORT)
    arithmetic.refuse_narrow(tile.dtype)
    axis = checked_axis(-1 if dim is None else dim, len(tile.shape))
    return _SortedRows(tile, axis, sum(map(log2, tile.shape[axis + 1 :])))


def log2(extent: int) -> int:
    return extent.bit_length() - 1


def _largest(b: Builder, rows: _SortedRows, count: int, descending: bool) -> RuntimeValue:
    """The first `count` of each row, sorted: runs of `count` are sorted, up and down by turns, and pairs of them cut to the better
    halves, which are bitonic again, until one is left (Shanbhag et al., "Efficient top-k query processing", SIGMOD 2018)."""
    tile, bits, kept = rows.tile, rows.bits, log2(count)
    better = reduction.meaning.of["max" if descending else "min"]
    if kept == 0:
        return better(b, tile, rows.axis, False, True, True)
    for stage in range(1, kept + 1):
        tile = _merge(b, rows, tile, stage, descending if stage == bits else None)
    for stage in range(kept + 1, bits + 1):
        halves = b.reshape(tile, (tile.numel >> (kept + rows.low + 1), 2, 1 << (kept + rows.low)))
        tile = better(b, halves, 1, False, True, False)
        tile = _merge(b, rows, tile, kept, descending if stage == bits else None)
    shape = rows.tile.shape
    return b.reshape(tile, (*shape[: rows.axis], count, *shape[rows.axis + 1 :]))


def _merge(b: Builder, rows: _SortedRows, tile: RuntimeValue, stage: int, descending: bool | None) -> RuntimeValue:
    """Bitonic runs of 2**`stage` elements of rows, sorted: all in one direction, or with None rising and falling by turns."""
    for bit in reversed(range(stage)):
        tile = _step(b, tile, stage + rows.low, bit + rows.low, descending)
    return tile


def _step(b: Builder, tile: RuntimeValue, run: int, bit: int, descending: bool | None) -> RuntimeValue:
    """Elements whose places in the tile differ in one bit, exchanged where they stand wrong; runs have 2**`run` places."""
    upper = 2 if descending is None else 1
    folded = b.reshape(tile, (tile.numel // upper >> run, upper, 1 << (run - 1 - bit), 2, 1 << bit))
    partner = b.flip(folded, 3)
    # Which places keep the larger one: the right ones of a rising run, the left ones of a falling run.
    larger = _side(b, 3)
    if descending is None:
        larger = arithmetic.BINARY["^"](b, larger, _side(b, 1))
    elif descending:
        larger = arithmetic.invert(b, larger)
    above = arithmetic.compare(b, ">", folded, partner)
    return math.where(b, arithmetic.BINARY["^"](b, above, larger), partner, folded)


def _side(b: Builder, axis: int) -> RuntimeValue:
    """int1 of five axes: whether an element is the second along `axis`."""
    shape = tuple(2 if place == axis else 1 for place in range(5))
    return b.reshape(cast(b, b.iota(0, 2), tl.int1), shape)
