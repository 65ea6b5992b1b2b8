"""PyTorch's operators that scan, order, find and scatter elements, as ops of the graph dialect; rules as in exported_ops.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import prod

import numpy as np

from tilefw.graph.builder import GraphValue, ModuleBuilder, shape_of
from tilefw.graph.index_maps import linear_map, own_places
from tilefw.graph.ordering import order_key, places_in_order, taken_along
from tilefw.graph.prefixes import prefixes
from tilefw.graph.scattering import scattered
from tilefw.tile import types
from tilefw_torch.exported_moves import counted_from_the_first
from tilefw_torch.exported_ops import as_tensor, cast, chosen_row, filled, is_float, reduced
from tilefw_torch.exported_tensor import ExportedTensor, Rule, element_type, in_float32

_COMBINED = {"sum": ("addf", "addi"), "amax": ("maxf_nan", "maxs"), "amin": ("minf_nan", "mins")}  # by scatter_reduce's names


def _scanned(
    floats: str, integers: str, b: ModuleBuilder, out: ExportedTensor, x: GraphValue, axis: int, dtype: object = None
) -> GraphValue:
    held, row = cast(b, x, out.dtype), chosen_row(floats, integers, out)
    if not out.shape or not prod(out.shape):
        return held
    found = prefixes(
        b, lambda s, left, right: [s(row, left, right)], lambda before, more: [b.map(row, before[0], more[0])], [held],
        axis % len(out.shape),
    )
    return found[0]


# Extremes and order ------------------------------------------------------------------------------------------------------


def _key(b: ModuleBuilder, x: GraphValue, least: bool) -> GraphValue:
    """Whole numbers of which the greatest is that of the extreme: NaN, else the greatest or the least element."""
    key = order_key(b, x, element_type(x), falling=least)
    if not is_float(x):
        return key
    return b.map("select", b.map("isnan", x), (1 << (types.dtype_of(key.type).bits - 1)) - 1, key)


def _place(b: ModuleBuilder, x: GraphValue, axis: int, least: bool) -> GraphValue:
    """The first place of the extreme of each row, int32; the rows have one element."""
    shape = shape_of(x)
    key = _key(b, x, least)
    greatest = b.broadcast(b.reduce("maxs", key, [axis], keep=True), shape)
    return b.reduce("mins", b.map("select", b.map("eqi", key, greatest), b.iota(shape, axis), shape[axis]), [axis], keep=True)


def _place_of_extreme(
    least: bool, b: ModuleBuilder, out: ExportedTensor, x: GraphValue, axis: int | None = None, keep: bool = False
) -> GraphValue:
    held = b.reshape(x, (prod(shape_of(x)),)) if axis is None else _with_dims(b, x)
    place = _place(b, held, 0 if axis is None else axis % len(shape_of(held)), least)
    return b.reshape(cast(b, place, out.dtype), out.shape)


def _extreme_with_place(
    least: bool, b: ModuleBuilder, out: ExportedTensor, x: GraphValue, axis: int, keep: bool = False
) -> list[GraphValue]:
    rows = ("minf_nan", "mins") if least else ("maxf_nan", "maxs")
    whole = ExportedTensor("int64", out.shape)
    return [reduced(*rows, b, out, x, axis, keep), _place_of_extreme(least, b, whole, x, axis, keep)]


def _first_in_order(
    b: ModuleBuilder, out: ExportedTensor, x: GraphValue, count: int | None, axis: int = -1, falling: bool = True, *_: object
) -> list[GraphValue]:
    """The first elements of each row and their places, NaN above all numbers, equal ones in the order in which they stand."""
    if not shape_of(x):
        return [x, as_tensor(b, 0, ExportedTensor("int64", ()))]
    axis %= len(shape_of(x))
    places = places_in_order(b, [order_key(b, x, element_type(x), falling=falling)], axis, count)
    return [taken_along(b, x, places, axis), b.cast(places, "int64")]


def _sorted(b: ModuleBuilder, out: ExportedTensor, x: GraphValue, axis: int = -1, falling: bool = False) -> list[GraphValue]:
    return _first_in_order(b, out, x, None, axis, falling)


def _stably_sorted(
    b: ModuleBuilder, out: ExportedTensor, x: GraphValue, *, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> list[GraphValue]:
    return _first_in_order(b, out, x, None, dim, descending)


# Elements at places ------------------------------------------------------------------------------------------------------


def _with_dims(b: ModuleBuilder, x: GraphValue) -> GraphValue:
    """One number counts as a row of one."""
    return x if shape_of(x) else b.reshape(x, (1,))


def _gathered(b: ModuleBuilder, out: ExportedTensor, x: GraphValue, axis: int, index: GraphValue, **_: object) -> GraphValue:
    if not prod(out.shape):
        return filled(b, 0, out)
    axis %= max(len(out.shape), 1)
    return b.reshape(taken_along(b, _with_dims(b, x), _with_dims(b, index), axis, trusted=True), out.shape)


def _scattered(
    row: tuple[str, str] | None, b: ModuleBuilder, out: ExportedTensor, x: GraphValue, axis: int, index: GraphValue, source: object
) -> GraphValue:
    """Each update goes to its own place in all dims but one."""
    asked, rank = _with_dims(b, index), max(len(out.shape), 1)
    if isinstance(source, GraphValue):
        updates = b.slice(_with_dims(b, source), [0] * rank, shape_of(asked))
    else:
        updates = b.broadcast(as_tensor(b, source, ExportedTensor(out.dtype, ())), shape_of(asked))
    axis %= rank
    combined = None if row is None else chosen_row(*row, out)
    found = scattered(b, _with_dims(b, x), updates, [asked], [axis], own_places(rank, axis), out.dtype, combined, trusted=True)
    return b.reshape(found, out.shape)


def _scatter_reduced(
    b: ModuleBuilder, out: ExportedTensor, x: GraphValue, axis: int, index: GraphValue, source: GraphValue, how: str, *,
    include_self: bool = True,
) -> GraphValue:
    if how not in _COMBINED or not include_self:
        raise NotImplementedError(f"scatter_reduce by {how}{'' if include_self else ' without the elements that are there'}")
    return _scattered(_COMBINED[how], b, out, x, axis, index, source)


def _put(
    b: ModuleBuilder, out: ExportedTensor, x: GraphValue, indices: Sequence[GraphValue | None], values: GraphValue,
    accumulate: bool = False,
) -> GraphValue:
    """Values at places of index tensors along neighbouring axes, whose dims stand in the place of these."""
    axes = [axis for axis, one in enumerate(indices) if one is not None]
    first, count = axes[0], len(axes)
    given = [one for one in indices if one is not None]
    if axes != list(range(first, first + count)):
        raise NotImplementedError("indices along axes that are not neighbours")
    if any(element_type(one) == "int1" for one in given):
        raise NotImplementedError("indices that are truth values")
    own, asked = out.shape, np.broadcast_shapes(*map(shape_of, given))
    shape = (*own[:first], *asked, *own[first + count :])
    rank = len(shape)
    spread = linear_map([[int(d == first + k) for d in range(rank)] for k in range(len(asked))], [0] * len(asked), rank)
    held = [
        b.view(b.broadcast(counted_from_the_first(b, one, own[axis]), asked), spread, shape)
        for one, axis in zip(given, axes, strict=True)
    ]
    place = [k if k < first else k - count + len(asked) for k in range(len(own))]
    rows = [[int(k not in axes and d == place[k]) for d in range(rank)] for k in range(len(own))]
    row = chosen_row("addf", "addi", out) if accumulate else None
    updates = b.broadcast(cast(b, values, out.dtype), shape)
    return scattered(b, x, updates, held, axes, linear_map(rows, [0] * len(own), rank), out.dtype, row, trusted=True)


RULES: Mapping[str, Rule] = {
    **in_float32({
        "cumsum.default": partial(_scanned, "addf", "addi"), "cumprod.default": partial(_scanned, "mulf", "muli"),
    }),
    "argmax.default": partial(_place_of_extreme, False), "argmin.default": partial(_place_of_extreme, True),
    "max.dim": partial(_extreme_with_place, False), "min.dim": partial(_extreme_with_place, True),
    "topk.default": _first_in_order, "sort.default": _sorted, "sort.stable": _stably_sorted,
    "gather.default": _gathered, "scatter.src": partial(_scattered, None), "scatter.value": partial(_scattered, None),
    "scatter_add.default": partial(_scattered, ("addf", "addi")), "scatter_reduce.two": _scatter_reduced,
    "index_put.default": _put, "_unsafe_index_put.default": _put,
}
