"""join, split, interleave, cat, flip, gather."""

from __future__ import annotations

from typing import Any

import tilefw.language as tl
from tilefw.api.errors import CompileError
from tilefw.frontend.builder import Builder
from tilefw.frontend.builtins import shape
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.casts import cast, to_value
from tilefw.frontend.semantics import checked_axis, checked_flag
from tilefw.frontend.values import RuntimeValue, named

meaning = Meanings()


@meaning("join")
def join(b: Builder, a: Any, other: Any) -> RuntimeValue:
    return _joined(b, "join", a, other)


def _joined(b: Builder, function: str, left: Any, right: Any) -> RuntimeValue:
    x, y = to_value(b, left), to_value(b, right)
    _same_element(function, x, y)
    x, y = shape.broadcast(b, x, y)
    if x.is_tile:
        return b.join(x, y)
    return b.reshape(b.join(b.splat(x, (1,)), b.splat(y, (1,))), (2,))


def _same_element(function: str, x: RuntimeValue, y: RuntimeValue) -> None:
    if x.dtype != y.dtype:
        raise CompileError(
            f"tl.{function} puts values of one type together, not {x.dtype} and {y.dtype}",
            "TFW0201",
            help="cast one to the other's type with `.to(…)`",
        )


@meaning("split")
def split(b: Builder, a: Any) -> tuple[RuntimeValue, RuntimeValue]:
    tile = _tile("split", a)
    if tile.shape[-1] != 2:
        raise CompileError(
            f"tl.split takes a last axis of extent 2, but the shape is {list(tile.shape)}",
            "TFW0202",
            help="reshape first, e.g. `tl.reshape(x, (x.shape[0], x.shape[1] // 2, 2))`" if tile.shape[-1] > 2 else None,
        )
    if len(tile.shape) > 1:
        return b.split(tile)
    first, second = b.split(b.reshape(tile, (1, 2)))
    return b.reshape(first, ()), b.reshape(second, ())


@meaning("interleave")
def interleave(b: Builder, a: Any, other: Any) -> RuntimeValue:
    joined = _joined(b, "interleave", a, other)
    if len(joined.shape) == 1:
        return joined
    return b.reshape(joined, (*joined.shape[:-2], 2 * joined.shape[-2]))


@meaning("cat")
def cat(b: Builder, input: Any, other: Any, can_reorder: Any, dim: Any) -> RuntimeValue:
    first, second = _tile("cat", input), _tile("cat", other)
    rank = len(first.shape)
    _same_element("cat", first, second)
    if first.shape != second.shape:
        raise CompileError(f"tl.cat takes tiles of one shape, not {list(first.shape)} and {list(second.shape)}", "TFW0202")
    if checked_flag(can_reorder, "can_reorder"):
        if rank != 1:
            raise CompileError(
                f"tl.cat with can_reorder takes tiles of one axis, not {list(first.shape)}",
                "TFW0202",
                help="leave can_reorder out: `tl.cat(a, b, dim=…)` keeps the order along any axis",
            )
        dim = 0
    axis = checked_axis(dim, rank)
    order = [*range(axis), rank, *range(axis, rank)]
    joined = b.join(first, second)
    moved = joined if axis == rank else b.transpose(joined, tuple(order))
    return b.reshape(moved, (*first.shape[:axis], 2 * first.shape[axis], *first.shape[axis + 1 :]))


@meaning("flip")
def flip(b: Builder, x: Any, dim: Any) -> RuntimeValue:
    tile = _tile("flip", x)
    return b.flip(tile, checked_axis(-1 if dim is None else dim, len(tile.shape)))


@meaning("gather")
def gather(b: Builder, src: Any, index: Any, axis: Any) -> RuntimeValue:
    source, where = _tile("gather", src), _tile("gather", index)
    if source.dtype.is_ptr():
        raise CompileError("tl.gather takes numbers, not pointers", "TFW0201", help="gather offsets, and add them to the pointer")
    if not where.dtype.is_int() or where.dtype.is_bool():
        raise CompileError(f"the indices of tl.gather are integers, not {where.dtype}", "TFW0209")
    place = checked_axis(axis, len(source.shape))
    others = [tuple(extent for dim, extent in enumerate(tile.shape) if dim != place) for tile in (source, where)]
    if len(source.shape) != len(where.shape) or others[0] != others[1]:
        raise CompileError(
            f"tl.gather takes a source and indices whose shapes differ along axis {place} alone, not {list(source.shape)} "
            f"and {list(where.shape)}",
            "TFW0202",
            help="bring the indices to the source's shape in all other axes with tl.broadcast_to",
        )
    return b.gather(source, cast(b, where, tl.int32), place)


def _tile(function: str, value: Any) -> RuntimeValue:
    if not isinstance(value, RuntimeValue) or not value.is_tile:
        raise CompileError(f"tl.{function} takes a tile, not {named(value)}", "TFW0201")
    return value
