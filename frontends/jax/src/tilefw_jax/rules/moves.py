"""Operators that only move elements as views, reshapes, concatenations and gathers."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from tilefw.graph.builder import GraphValue, shape_of
from tilefw.graph.index_maps import linear_map
from tilefw_jax.element_types import kind_of, static_shape
from tilefw_jax.known_values import KnownValueBuilder
from tilefw_jax.rules.attributes import integer, integers

Values = Sequence[GraphValue]


def broadcast_in_dim(b: KnownValueBuilder, op: Any, values: Values) -> GraphValue:
    """Dim `k` of the operand is dim `dims[k]` of the result, repeated where it is 1."""
    source, shape = values[0], static_shape(op.results[0].type)
    own, dims = shape_of(source), integers(op, "broadcast_dimensions")
    if dims == list(range(len(shape) - len(own), len(shape))):
        return b.broadcast(source, shape)
    rows = [[int(d == dims[k] and extent != 1) for d in range(len(shape))] for k, extent in enumerate(own)]
    return b.view(source, linear_map(rows, [0] * len(own), len(shape)), shape)


def reshape(b: KnownValueBuilder, op: Any, values: Values) -> GraphValue:
    """The same elements in another shape."""
    return b.reshape(values[0], static_shape(op.results[0].type))


def transpose(b: KnownValueBuilder, op: Any, values: Values) -> GraphValue:
    """Dims in another order."""
    return b.transpose(values[0], integers(op, "permutation"))


def slice_(b: KnownValueBuilder, op: Any, values: Values) -> GraphValue:
    """Every so many elements from a first to a last."""
    return b.slice(values[0], integers(op, "start_indices"), static_shape(op.results[0].type), integers(op, "strides"))


def reverse(b: KnownValueBuilder, op: Any, values: Values) -> GraphValue:
    """Dims backwards."""
    return flipped(b, values[0], integers(op, "dimensions"))


def flipped(b: KnownValueBuilder, value: GraphValue, dims: Sequence[int]) -> GraphValue:
    """The elements of some dims backwards."""
    shape = shape_of(value)
    if not dims:
        return value
    starts = [extent - 1 if dim in dims else 0 for dim, extent in enumerate(shape)]
    return b.slice(value, starts, shape, [-1 if dim in dims else 1 for dim in range(len(shape))])


def pad(b: KnownValueBuilder, op: Any, values: Values) -> GraphValue:
    """Elements before, behind and between; negative numbers take elements away."""
    low, high, between = (integers(op, f"{word}_padding" if word == "interior" else f"edge_padding_{word}")
                          for word in ("low", "high", "interior"))
    return padded(b, values[0], low, high, between, values[1])


def padded(
    b: KnownValueBuilder, value: GraphValue, low: Sequence[int], high: Sequence[int], between: Sequence[int], filler: GraphValue
) -> GraphValue:
    """`filler`, a tensor of one element, before, behind and between the elements of each dim."""
    value = spread(b, value, [count + 1 for count in between], filler)
    if not any(low) and not any(high):
        return value
    shape = shape_of(value)
    if min(*low, *high) >= 0:
        return b.pad(value, low, high, b.reshape(filler, ()))
    rows = [[int(d == k) for d in range(len(shape))] for k in range(len(shape))]
    wanted = [extent + before + behind for extent, before, behind in zip(shape, low, high, strict=True)]
    return b.view(value, linear_map(rows, [-before for before in low], len(shape)), wanted, b.reshape(filler, ()))


def spread(b: KnownValueBuilder, value: GraphValue, steps: Sequence[int], filler: GraphValue) -> GraphValue:
    """Each element `steps` behind the one before, `filler` between them."""
    for dim, step in enumerate(steps):
        shape = shape_of(value)
        if step == 1 or shape[dim] < 2:
            continue
        apart = b.reshape(value, (*shape[: dim + 1], 1, *shape[dim + 1 :]))
        after = [step - 1 if place == dim + 1 else 0 for place in range(len(shape) + 1)]
        wide = b.pad(apart, [0] * len(after), after, b.reshape(filler, ()))
        joined = b.reshape(wide, (*shape[:dim], shape[dim] * step, *shape[dim + 1 :]))
        sizes = [*shape[:dim], (shape[dim] - 1) * step + 1, *shape[dim + 1 :]]
        value = b.slice(joined, [0] * len(shape), sizes)
    return value


def concatenate(b: KnownValueBuilder, op: Any, values: Values) -> GraphValue:
    """Tensors behind each other; those without elements fall away."""
    axis = integer(op, "dimension")
    filled = [value for value in values if shape_of(value)[axis]]
    return b.concat(filled, axis) if len(filled) > 1 else (filled or values)[0]


def iota(b: KnownValueBuilder, op: Any, values: Values) -> GraphValue:
    """The place along a dim."""
    shape = static_shape(op.results[0].type)
    return b.cast(b.iota(shape, integer(op, "iota_dimension")), kind_of(op.results[0].type))


def dynamic_slice(b: KnownValueBuilder, op: Any, values: Values) -> GraphValue:
    """A window whose place is computed; it is moved inside."""
    source, sizes = values[0], integers(op, "slice_sizes")
    kinds = [kind_of(one.type) for one in list(op.operands)[1:]]
    starts = clamped_starts(b, values[1:], kinds, shape_of(source), sizes)
    known = [b.number(start) for start in starts]
    if all(number is not None for number in known):
        return b.slice(source, [number for number in known if number is not None], sizes)
    axes = [dim for dim, number in enumerate(known) if number is None]
    indices = [b.map("addi", b.broadcast(starts[dim], sizes), b.iota(sizes, dim)) for dim in axes]
    rows = [[int(d == k and k not in axes) for d in range(len(sizes))] for k in range(len(sizes))]
    return b.gather(source, indices, axes, linear_map(rows, [number or 0 for number in known], len(sizes)))


def clamped_starts(
    b: KnownValueBuilder, starts: Values, kinds: Sequence[str], shape: Sequence[int], sizes: Sequence[int]
) -> list[GraphValue]:
    """Places of windows as int32, moved so that the windows are inside."""
    found = []
    for start, kind, extent, size in zip(starts, kinds, shape, sizes, strict=True):
        found.append(clamped(b, start, kind, extent - size))
    return found


def clamped(b: KnownValueBuilder, index: GraphValue, kind: str, most: int) -> GraphValue:
    """Indices within 0 and `most`, as int32."""
    unsigned, bits = kind.startswith("u"), int(kind.removeprefix("u").removeprefix("int"))
    most_told = min(most, (1 << (bits - (0 if unsigned else 1))) - 1)
    held = b.map("minu" if unsigned else "mins", index, _as_signed(most_told, bits))
    held = held if unsigned else b.map("maxs", held, 0)
    return b.cast(held, "int32", kind)


def _as_signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >= 1 << (bits - 1) else value


def dynamic_update_slice(b: KnownValueBuilder, op: Any, values: Values) -> GraphValue:
    """A tensor with a window replaced, whose place is computed; it is moved inside."""
    source, update = values[:2]
    shape, sizes = shape_of(source), shape_of(update)
    kinds = [kind_of(one.type) for one in list(op.operands)[2:]]
    starts = clamped_starts(b, values[2:], kinds, shape, sizes)
    if sizes == shape:
        return update
    if not prod(sizes):
        return source
    dims = [dim for dim, extent in enumerate(shape) if sizes[dim] != extent]
    offsets = {dim: b.map("subi", b.iota(shape, dim), b.broadcast(starts[dim], shape)) for dim in dims}
    within: GraphValue | None = None
    for dim in dims:
        one = b.map("ltu", offsets[dim], sizes[dim])
        within = one if within is None else b.map("andi", within, one)
    known = [b.number(start) if dim in dims else 0 for dim, start in enumerate(starts)]
    placed = b.pad(
        update, [n or 0 for n in known], [e - s - (n or 0) for e, s, n in zip(shape, sizes, known, strict=True)], b.full(0, update)
    ) if all(number is not None for number in known) else _read_at(b, update, offsets, shape)
    assert within is not None
    return b.map("select", within, placed, source)


def _read_at(b: KnownValueBuilder, update: GraphValue, offsets: dict[int, GraphValue], shape: Sequence[int]) -> GraphValue:
    sizes = shape_of(update)
    indices = [b.map("maxs", b.map("mins", offset, sizes[dim] - 1), 0) for dim, offset in offsets.items()]
    rows = [[int(d == k and k not in offsets) for d in range(len(shape))] for k in range(len(shape))]
    return b.gather(update, indices, list(offsets), linear_map(rows, [0] * len(shape), len(shape)))
