"""histogram: every element compared with every bin where those are few, else the elements sorted and each bin's end searched."""

from __future__ import annotations

from typing import Any

import tilefw.language as tl
from tilefw.api.errors import CompileError
from tilefw.frontend.arithmetic import BINARY, add, compare, logical, subtract
from tilefw.frontend.builder import Builder
from tilefw.frontend.builtins import math, reduction, shape, sorting
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.casts import cast, constant, to_value
from tilefw.frontend.semantics import checked_shape
from tilefw.frontend.values import RuntimeValue, named

meaning = Meanings()

_FEW_PAIRS = 1 << 14


@meaning("histogram")
def histogram(b: Builder, input: Any, num_bins: Any, mask: Any) -> RuntimeValue:
    tile = _counted(input)
    (bins,) = checked_shape((num_bins,))
    counts = compare(b, "<", tile, bins)
    if tile.dtype.is_int_signed():
        counts = logical(b, "and", counts, compare(b, ">=", tile, 0))
    if mask is not None:
        counts = logical(b, "and", counts, _mask(b, mask, tile))
    # What is not counted gets the number behind the last bin.
    number = math.where(b, counts, cast(b, tile, tl.int32), bins)
    return _by_pairs(b, number, bins) if _few(tile.numel, bins) else _by_sorting(b, number, bins)


def _few(elements: int, bins: int) -> bool:
    """Whether a comparison of every element with every bin is no dearer than the steps of a sort; every target has it."""
    bits, pairs = sorting.log2(elements), elements * bins
    return pairs <= _FEW_PAIRS or (bins <= bits * (bits + 1) // 2 and pairs <= tl.TRITON_MAX_TENSOR_NUMEL)


def _counted(input: Any) -> RuntimeValue:
    if not isinstance(input, RuntimeValue) or len(input.shape) != 1:
        raise CompileError(
            f"tl.histogram takes a tile of one axis, not {named(input)}", "TFW0202", help="flatten it first: `tl.ravel(x)`"
        )
    if input.dtype not in (tl.int32, tl.uint32):
        raise CompileError(f"tl.histogram takes int32 or uint32, not {input.dtype}", "TFW0209", help="cast first: `x.to(tl.int32)`")
    return input


def _mask(b: Builder, mask: Any, tile: RuntimeValue) -> RuntimeValue:
    value = to_value(b, mask)
    if not value.dtype.is_bool():
        raise CompileError(f"the mask of tl.histogram is int1, not {value.dtype}", "TFW0209", help="compare: `x != 0`")
    return shape.broadcast_to(b, value, tile.shape)


def _by_pairs(b: Builder, number: RuntimeValue, bins: int) -> RuntimeValue:
    same = compare(b, "==", b.expand_dims(number, 1), b.expand_dims(b.iota(0, bins), 0))
    return reduction.total(b, cast(b, same, tl.int32), 0, False, None)


def _by_sorting(b: Builder, number: RuntimeValue, bins: int) -> RuntimeValue:
    """A bin has as many elements as there are up to it, less those up to the bin before."""
    ordered, bin = sorting.sort(b, number, None, False), b.iota(0, bins)
    up_to = constant(b, 0, tl.int32, bin.shape)
    halves = [1 << bit for bit in reversed(range(sorting.log2(number.numel)))]
    for step in (*halves, 1):
        up_to = _advanced(b, ordered, bin, up_to, step)
    before = b.gather(up_to, subtract(b, bin, 1), 0)
    return subtract(b, up_to, math.where(b, compare(b, "==", bin, 0), 0, before))


def _advanced(b: Builder, ordered: RuntimeValue, bin: RuntimeValue, up_to: RuntimeValue, step: int) -> RuntimeValue:
    """How many elements are known to be up to each bin, after a look at the element `step` further on."""
    last = b.gather(ordered, add(b, up_to, step - 1), 0)
    return add(b, up_to, BINARY["*"](b, cast(b, compare(b, "<=", last, bin), tl.int32), step))
