"""sum, max, min, argmax, argmin, xor_sum, reduce_or, reduce, softmax."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import tilefw.language as tl
from tilefw.api.errors import CompileError
from tilefw.frontend import arithmetic
from tilefw.frontend.builder import Builder
from tilefw.frontend.builtins import math
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.casts import cast
from tilefw.frontend.combine import (
    REDUCE,
    Combination,
    Combine,
    assertions_stop,
    combinable,
    combinables,
    combine_block,
    user_combine,
)
from tilefw.frontend.semantics import checked_axis, checked_flag
from tilefw.frontend.values import RuntimeValue

meaning = Meanings()


@meaning("reduce")
def reduce(b: Builder, input: Any, axis: Any, combine_fn: Any, keep_dims: Any) -> Any:
    inputs = input if isinstance(input, tuple) else (input,)
    results = reduced(b, "reduce", inputs, axis, user_combine("reduce", inputs, combine_fn, REDUCE), keep_dims)
    return results if isinstance(input, tuple) else results[0]


def reduced(
    b: Builder, function: str, inputs: Sequence[Any], axis: Any, combine: Combine, keep_dims: Any
) -> tuple[RuntimeValue, ...]:
    """The tiles, which have one shape, reduced together along `axis`, or along all axes when it is None."""
    tiles = combinables(function, inputs)
    shape = tiles[0].shape
    keeps = checked_flag(keep_dims, "keep_dims")
    along = None if axis is None else checked_axis(axis, len(shape))
    if along is None and len(shape) > 1:
        tiles = [b.reshape(tile, (tile.numel,)) for tile in tiles]
    found = combined(b, function, tiles, combine, lambda all, made: b.reduce(all, along or 0, made.block, made.results))
    if keeps:
        kept = tuple(1 if along in (None, i) else extent for i, extent in enumerate(shape))
        found = [_kept(b, value, kept, along) for value in found]
    return tuple(found)


def any_of(b: Builder, function: str, condition: RuntimeValue) -> RuntimeValue:
    """Whether any element of a condition is true, as one int1."""
    return reduced(b, function, [condition], None, _either, False)[0] if condition.is_tile else condition


def combined(
    b: Builder, function: str, tiles: Sequence[RuntimeValue], combine: Combine,
    run: Callable[[Sequence[RuntimeValue], Combination], list[RuntimeValue]],
) -> list[RuntimeValue]:
    """What `run` makes of the tiles with a combine function, and a stop where what that asserts failed for any pair."""
    made = combine_block(b, [tile.dtype for tile in tiles], combine)
    nothing = [b.constant(0, tl.int1, tiles[0].shape) for _ in made.assertions]
    found = run([*tiles, *nothing], made)
    failed = [any_of(b, function, fails) for fails in found[len(tiles) :]]
    assertions_stop(b, made.assertions, failed)
    return found[: len(tiles)]


def _either(b: Builder, pair: Sequence[RuntimeValue]) -> RuntimeValue:
    return arithmetic.BINARY["|"](b, *pair)


def _kept(b: Builder, value: RuntimeValue, shape: tuple[int, ...], axis: int | None) -> RuntimeValue:
    """A reduction's result with the reduced axes back, of extent 1."""
    if not value.is_tile:
        return b.splat(value, shape)
    assert axis is not None
    return b.expand_dims(value, axis)


def _add(b: Builder, pair: Sequence[RuntimeValue]) -> RuntimeValue:
    return arithmetic.add(b, *pair)


def _xor(b: Builder, pair: Sequence[RuntimeValue]) -> RuntimeValue:
    return arithmetic.BINARY["^"](b, *pair)


def _or(b: Builder, pair: Sequence[RuntimeValue]) -> RuntimeValue:
    return arithmetic.BINARY["|"](b, *pair)


@meaning("sum")
def total(b: Builder, input: Any, axis: Any, keep_dims: Any, dtype: Any) -> RuntimeValue:
    tile = combinable("sum", input)
    element = sum_type(tile.dtype) if dtype is None else dtype
    return reduced(b, "sum", [cast(b, tile, element)], axis, _add, keep_dims)[0]


def sum_type(element: tl.dtype) -> tl.dtype:
    """In which type elements are added: integers below 32 bits in 32, so that a sum of some of them does not overflow."""
    if element.is_int() and element.int_bitwidth < 32:
        return tl.int32 if element.is_int_signed() else tl.uint32
    return element


@meaning("xor_sum")
def xor_sum(b: Builder, input: Any, axis: Any, keep_dims: Any) -> RuntimeValue:
    return _bitwise(b, "xor_sum", input, axis, _xor, keep_dims)


@meaning("reduce_or")
def reduce_or(b: Builder, input: Any, axis: Any, keep_dims: Any) -> RuntimeValue:
    return _bitwise(b, "reduce_or", input, axis, _or, keep_dims)


def _bitwise(b: Builder, function: str, input: Any, axis: Any, combine: Combine, keep_dims: Any) -> RuntimeValue:
    tile = combinable(function, input)
    if not tile.dtype.is_int():
        raise CompileError(f"tl.{function} takes integers, not {tile.dtype}", "TFW0209")
    return reduced(b, function, [tile], axis, combine, keep_dims)[0]


def _extremum(name: str, elementwise: str, beats: str) -> None:
    """`max` and `min` and their arg forms; `beats` compares the better element with the other."""

    def best(b: Builder, pair: Sequence[RuntimeValue]) -> RuntimeValue:
        return math.meaning.of[elementwise](b, *pair, tl.PropagateNan.NONE)

    @meaning(name)
    def compute(b: Builder, input: Any, axis: Any, return_indices: Any, return_indices_tie_break_left: Any, keep_dims: Any) -> Any:
        if checked_flag(return_indices, "return_indices"):
            return _with_index(b, name, beats, input, axis, return_indices_tie_break_left, keep_dims)
        tile = combinable(name, input)
        if tile.dtype.primitive_bitwidth < 32:
            tile = cast(b, tile, tl.float32 if tile.dtype.is_floating() else tl.int32)
        return reduced(b, name, [tile], axis, best, keep_dims)[0]

    @meaning(f"arg{name}")
    def compute_index(b: Builder, input: Any, axis: Any, tie_break_left: Any, keep_dims: Any) -> RuntimeValue:
        return _with_index(b, f"arg{name}", beats, input, axis, tie_break_left, keep_dims)[1]


_extremum("max", "maximum", ">")
_extremum("min", "minimum", "<")


def _with_index(
    b: Builder, function: str, beats: str, input: Any, axis: Any, tie_break_left: Any, keep_dims: Any
) -> tuple[RuntimeValue, ...]:
    """The pair (element, its index along `axis`) that wins."""
    tile = combinable(function, input)
    if axis is None:
        raise CompileError(
            f"tl.{function} needs an axis to count indices along", "TFW0212", help="flatten first: `tl.ravel(x)`, then axis 0"
        )
    along, left = checked_axis(axis, len(tile.shape)), checked_flag(tie_break_left, "tie_break_left")
    index = b.iota(0, tile.shape[along])
    for place in range(len(tile.shape)):
        if place != along:
            index = b.expand_dims(index, place)
    index = arithmetic.stretched(b, index, tile.shape)

    def better(inner: Builder, arguments: Sequence[RuntimeValue]) -> tuple[RuntimeValue, RuntimeValue]:
        value, place, other, other_place = arguments
        wins = arithmetic.compare(inner, beats, value, other)
        if left:
            equal, first = arithmetic.compare(inner, "==", value, other), arithmetic.compare(inner, "<", place, other_place)
            wins = arithmetic.logical(inner, "or", wins, arithmetic.logical(inner, "and", equal, first))
        return math.where(inner, wins, value, other), math.where(inner, wins, place, other_place)

    return reduced(b, function, [tile, index], along, better, keep_dims)


@meaning("softmax")
def softmax(b: Builder, x: Any, dim: Any, keep_dims: Any, ieee_rounding: Any) -> RuntimeValue:
    tile, axis = combinable("softmax", x), 0 if dim is None else dim
    if not tile.dtype.is_floating():
        raise CompileError(f"tl.softmax takes floats, not {tile.dtype}", "TFW0209", help="cast first: `x.to(tl.float32)`")
    if keep_dims is not None:
        warnings.warn("tl.softmax ignores keep_dims: its result has the shape of its input", DeprecationWarning, stacklevel=2)
    largest = meaning.of["max"](b, tile, axis, False, True, True)
    powers = math.meaning.of["exp"](b, arithmetic.subtract(b, tile, largest))
    return math.fdiv(b, powers, total(b, powers, axis, True, None), checked_flag(ieee_rounding, "ieee_rounding"), False)
