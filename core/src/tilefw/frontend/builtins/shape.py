"""broadcast, broadcast_to, expand_dims, reshape, view, ravel, squeeze, unsqueeze, trans, permute, cast."""

from __future__ import annotations

from typing import Any

from tilefw.api.errors import CompileError
from tilefw.frontend import casts
from tilefw.frontend.arithmetic import stretched
from tilefw.frontend.builder import Builder, element_count
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.casts import to_value
from tilefw.frontend.semantics import broadcast_shapes, checked_axis, checked_shape, not_constexpr
from tilefw.frontend.values import RuntimeValue, named

meaning = Meanings()


@meaning("broadcast")
def broadcast(b: Builder, input: Any, other: Any) -> tuple[RuntimeValue, RuntimeValue]:
    x, y = to_value(b, input), to_value(b, other)
    shape = broadcast_shapes(x.shape, y.shape) if x.shape and y.shape else x.shape or y.shape
    return stretched(b, x, shape), stretched(b, y, shape)


@meaning("broadcast_to")
def broadcast_to(b: Builder, input: Any, shape: tuple[Any, ...]) -> RuntimeValue:
    value, target = to_value(b, input), checked_shape(_one_tuple(shape))
    if value.is_tile and len(value.shape) != len(target):
        raise CompileError(
            f"a tile of shape {list(value.shape)} does not broadcast to {list(target)}: the ranks differ",
            "TFW0202",
            help="insert axes first, e.g. `x[None, :]`",
        )
    if value.is_tile and broadcast_shapes(value.shape, target) != target:
        raise CompileError(
            f"a tile of shape {list(value.shape)} does not broadcast to {list(target)}", "TFW0202", note="only extents of 1 stretch"
        )
    return stretched(b, value, target)


@meaning("expand_dims")
def expand_dims(b: Builder, input: Any, axis: Any) -> RuntimeValue:
    value = to_value(b, input)
    axes = axis if isinstance(axis, tuple) else (axis,)
    places = [checked_axis(a, len(value.shape) + len(axes)) for a in axes]
    if len(set(places)) != len(places):
        cause = ValueError(f"duplicate axes, normalized axes = {places}")  # Triton's, which programs read
        raise CompileError(f"expand_dims got one axis twice: {list(axes)}", "TFW0212") from cause
    for place in sorted(places):
        value = inserted_axis(b, value, place)
    return value


def inserted_axis(b: Builder, value: RuntimeValue, axis: int) -> RuntimeValue:
    """The value with an axis of extent 1 at `axis`; a scalar becomes a tile of one element."""
    return b.expand_dims(value, axis) if value.is_tile else b.splat(value, (1,))


@meaning("reshape")
def reshape(b: Builder, input: Any, shape: tuple[Any, ...], can_reorder: Any = False) -> RuntimeValue:
    value, target = to_value(b, input), checked_shape(_one_tuple(shape))
    if value.numel != element_count(target):
        raise CompileError(
            f"reshape keeps the number of elements: {list(value.shape)} has {value.numel}, {list(target)} {element_count(target)}",
            "TFW0202",
        )
    if value.shape == target:
        return value
    return b.reshape(value, target) if value.is_tile else b.splat(value, target)


@meaning("item")
def item(b: Builder, input: Any) -> RuntimeValue:
    return reshape(b, input, ())


@meaning("view")
def view(b: Builder, input: Any, shape: tuple[Any, ...]) -> RuntimeValue:
    return reshape(b, input, shape)


@meaning("ravel")
def ravel(b: Builder, x: Any, can_reorder: Any) -> RuntimeValue:
    return reshape(b, x, (to_value(b, x).numel,))


@meaning("squeeze")
def squeeze(b: Builder, x: Any, dim: Any) -> RuntimeValue:
    value = to_value(b, x)
    axis = checked_axis(dim, len(value.shape))
    if value.shape[axis] != 1:
        raise CompileError(f"squeeze needs extent 1, but axis {axis} of {list(value.shape)} has {value.shape[axis]}", "TFW0202")
    return reshape(b, value, value.shape[:axis] + value.shape[axis + 1 :])


@meaning("unsqueeze")
def unsqueeze(b: Builder, x: Any, dim: Any) -> RuntimeValue:
    return expand_dims(b, x, dim)


@meaning("trans")
def trans(b: Builder, input: Any, dims: tuple[Any, ...]) -> RuntimeValue:
    value, order = to_value(b, input), _one_tuple(dims)
    rank = len(value.shape)
    if not order:
        if rank < 2:
            raise CompileError(f"trans needs two axes to swap, but got {named(value)}", "TFW0202")
        order = (*range(rank - 2), rank - 1, rank - 2)
    return permute(b, value, order)


@meaning("permute")
def permute(b: Builder, input: Any, dims: tuple[Any, ...]) -> RuntimeValue:
    value, order = to_value(b, input), _one_tuple(dims)
    if not value.is_tile:
        raise CompileError(f"there are no axes to permute in {named(value)}", "TFW0202")
    for axis in order:
        if isinstance(axis, RuntimeValue):
            raise not_constexpr("an axis")
    if not all(isinstance(axis, int) for axis in order) or sorted(order) != list(range(len(value.shape))):
        raise CompileError(
            f"{list(order)} is not a permutation of the axes of {named(value)}",
            "TFW0212",
            note=f"expected each of {list(range(len(value.shape)))} once",
        )
    return b.transpose(value, tuple(order))


@meaning("cast")
def cast(b: Builder, input: Any, dtype: Any, fp_downcast_rounding: Any, bitcast: Any) -> RuntimeValue:
    value = to_value(b, input)
    if isinstance(bitcast, RuntimeValue):
        raise not_constexpr("bitcast")
    return casts.bitcast(b, value, dtype) if bitcast else casts.cast(b, value, dtype, fp_downcast_rounding)


def _one_tuple(items: tuple[Any, ...]) -> tuple[Any, ...]:
    """Extents or axes given one by one or as one tuple."""
    return items[0] if len(items) == 1 and isinstance(items[0], tuple) else items
