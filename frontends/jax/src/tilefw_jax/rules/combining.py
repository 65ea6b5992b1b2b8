"""Reductions with bodies of any kind, reductions of windows, and the scattering of windows' winners."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np

from tilefw.api.errors import UnsupportedError
from tilefw.graph.builder import GraphValue, shape_of
from tilefw.graph.index_maps import linear_map
from tilefw.graph.prefixes import prefixes
from tilefw_jax.element_types import is_float, kind_of, static_shape, stored_elements
from tilefw_jax.known_values import KnownValueBuilder
from tilefw_jax.rules.attributes import integers, pairs
from tilefw_jax.rules.bodies import Functions, applied, only_operator, scalar_body
from tilefw_jax.rules.moves import spread
from tilefw_jax.rules.pointwise import POINTWISE_ROWS, row_for

Values = Sequence[GraphValue]
Combine = Callable[..., Sequence[GraphValue]]
_LONGEST = 16384  # elements that one kernel combines


@dataclass(frozen=True, slots=True)
class Combination:
    """A body on scalars and on tensors, and what it may begin with."""

    scalars: Combine
    tensors: Callable[[Values, Values], Values]
    initial: Values  # tensors of one element
    fillers: Values  # what changes nothing: of one operator its own number, of other bodies what they begin with
    operator: bool  # whether the body is one operator whose number is known
    neutral: bool  # whether what it begins with changes nothing


def combination(b: KnownValueBuilder, block: Any, initial: Values, kinds: Sequence[str], functions: Functions) -> Combination:
    """The body of a reduction."""

    def tensors(held: Values, more: Values) -> Values:
        return applied(b.map, partial(constant, b), block, [*held, *more], functions)

    number = neutral_number(only_operator(block), kinds[0]) if len(initial) == 1 else None
    fillers = initial if number is None else [b.full(number, initial[0])]
    neutral = number is not None and _is(b.known(initial[0]), number)
    return Combination(scalar_body(block, functions), tensors, initial, fillers, number is not None, neutral)


def constant(b: KnownValueBuilder, op: Any) -> GraphValue:
    """A constant of the module; where all elements are one, that one, broadcast."""
    kind, shape = kind_of(op.results[0].type), static_shape(op.results[0].type)
    attribute = op.attributes["value"]
    if shape and prod(shape) and attribute.is_splat:
        return b.broadcast(b.constant(stored_elements(attribute, kind, shape).reshape(-1)[:1].reshape(()), kind), shape)
    return b.constant(stored_elements(attribute, kind, shape), kind)


def _is(known: np.ndarray[Any, Any] | None, number: float) -> bool:
    return known is not None and bool(known.reshape(-1)[0] == number)


def neutral_number(operator: str | None, kind: str) -> float | None:
    """What an operator combines with any number to that number; None where that is not known."""
    return _NEUTRAL[operator](kind) if operator is not None and operator in _NEUTRAL else None


def _extreme(sign: int, kind: str) -> float | None:
    if is_float(kind):
        return sign * float("inf")
    if kind.startswith("u") or kind == "int1":
        return 0 if sign < 0 else 1 if kind == "int1" else -1
    bits = int(kind.removeprefix("int"))
    return -(1 << (bits - 1)) if sign < 0 else (1 << (bits - 1)) - 1


_NEUTRAL: Mapping[str, Callable[[str], float | None]] = {
    "stablehlo.add": lambda _: 0, "stablehlo.multiply": lambda _: 1, "stablehlo.or": lambda _: 0, "stablehlo.xor": lambda _: 0,
    "stablehlo.and": lambda kind: 1 if kind == "int1" else -1, "stablehlo.maximum": partial(_extreme, -1),
    "stablehlo.minimum": partial(_extreme, 1),
}


def combined(b: KnownValueBuilder, how: Combination, inputs: Values, axes: Sequence[int]) -> list[GraphValue]:
    """The elements along the axes combined, and what the body begins with."""
    shape = shape_of(inputs[0])
    kept = [extent for dim, extent in enumerate(shape) if dim not in axes]
    if not all(shape[axis] for axis in axes) or not prod(kept):
        return [b.broadcast(b.reshape(one, ()), kept) for one in how.initial]
    found = _reduced(b, how, inputs, axes)
    return found if how.neutral else list(how.tensors([b.broadcast(b.reshape(one, ()), kept) for one in how.initial], found))


def _reduced(b: KnownValueBuilder, how: Combination, inputs: Values, axes: Sequence[int]) -> list[GraphValue]:
    """In several launches where a row is longer than a kernel's."""
    shape, rest = shape_of(inputs[0]), sorted(axes)
    if not rest:
        return list(inputs)
    now = [rest[-1]]
    while len(now) < len(rest) and shape[rest[-len(now) - 1]] * prod(shape[axis] for axis in now) <= _LONGEST:
        now.insert(0, rest[-len(now) - 1])
    length = prod(shape[axis] for axis in now)
    if length > _LONGEST:
        return _reduced(b, how, [_in_parts(b, one, filler, now[0]) for one, filler in zip(inputs, how.fillers, strict=True)],
                        [*rest, now[0] + 1])
    given = inputs
    if not how.operator:
        given = [_to_power_of_two(b, one, filler, now) for one, filler in zip(inputs, how.fillers, strict=True)]
    found = b.reduce_by(how.scalars, given, now)
    return _reduced(b, how, found, rest[: len(rest) - len(now)])


def _in_parts(b: KnownValueBuilder, value: GraphValue, filler: GraphValue, axis: int) -> GraphValue:
    """A long dim as two."""
    shape = shape_of(value)
    parts = -(-shape[axis] // _LONGEST)
    size = -(-shape[axis] // parts)
    behind = [parts * size - shape[axis] if dim == axis else 0 for dim in range(len(shape))]
    whole = b.pad(value, [0] * len(shape), behind, b.reshape(filler, ())) if any(behind) else value
    return b.reshape(whole, (*shape[:axis], parts, size, *shape[axis + 1 :]))


def _to_power_of_two(b: KnownValueBuilder, value: GraphValue, filler: GraphValue, axes: Sequence[int]) -> GraphValue:
    """Rows as long as a tile: a body that is not one row of the table has no neutral element but what it begins with."""
    shape = shape_of(value)
    behind = [(1 << (extent - 1).bit_length()) - extent if dim in axes else 0 for dim, extent in enumerate(shape)]
    return b.pad(value, [0] * len(shape), behind, b.reshape(filler, ())) if any(behind) else value


def reduce(b: KnownValueBuilder, op: Any, values: Values, functions: Functions) -> list[GraphValue]:
    """`stablehlo.reduce` of one tensor or several."""
    count = len(values) // 2
    kinds = [kind_of(one.type) for one in list(op.operands)[:count]]
    how = combination(b, op.regions[0].blocks[0], values[count:], kinds, functions)
    return combined(b, how, values[:count], integers(op, "dimensions"))


def reduce_window(b: KnownValueBuilder, op: Any, values: Values, functions: Functions) -> list[GraphValue]:
    """`stablehlo.reduce_window`: a view with the windows' dims behind, and a reduction of these."""
    count = len(values) // 2
    kinds = [kind_of(one.type) for one in list(op.operands)[:count]]
    how = combination(b, op.regions[0].blocks[0], values[count:], kinds, functions)
    shape = static_shape(op.results[0].type)
    rank = len(shape)
    base, steps, dilations = (integers(op, name, 1, rank) for name in ("base_dilations", "window_strides", "window_dilations"))
    window, padding = integers(op, "window_dimensions"), pairs(op, "padding", rank)
    along = _scanned_axis(shape_of(values[0]), window, padding) if {*base, *steps, *dilations} == {1} else None
    if along is not None and prod(shape):
        axis, backwards = along
        found = prefixes(b, how.scalars, how.tensors, values[:count], axis, backwards)
        return found if how.neutral else list(how.tensors([b.broadcast(b.reshape(one, ()), shape) for one in how.initial], found))
    given = [
        windows(b, spread(b, one, base, filler), shape, window, steps, dilations, [low for low, _ in padding], filler)
        for one, filler in zip(values[:count], values[count:], strict=True)
    ]
    return combined(b, how, given, list(range(rank, len(shape_of(given[0])))))


def _scanned_axis(shape: Sequence[int], window: Sequence[int], padding: Sequence[tuple[int, int]]) -> tuple[int, bool] | None:
    """The axis along which each window has all elements so far, and whether they are those from the end; None of other windows."""
    wide = [dim for dim, extent in enumerate(window) if extent > 1]
    if len(wide) != 1 or window[wide[0]] != shape[wide[0]]:
        return None
    if any(padding[dim] != (0, 0) for dim in range(len(shape)) if dim != wide[0]):
        return None
    axis, before = wide[0], window[wide[0]] - 1
    return {(before, 0): (axis, False), (0, before): (axis, True)}.get(padding[axis])


def windows(
    b: KnownValueBuilder, value: GraphValue, shape: Sequence[int], window: Sequence[int], steps: Sequence[int],
    dilations: Sequence[int], low: Sequence[int], filler: GraphValue,
) -> GraphValue:
    """The elements of each window behind its place; dims of one element are none of a window."""
    wide = [dim for dim, extent in enumerate(window) if extent > 1]
    dims = len(shape) + len(wide)
    rows = []
    for dim in range(len(shape)):
        row = [steps[dim] if d == dim else 0 for d in range(dims)]
        if dim in wide:
            row[len(shape) + wide.index(dim)] = dilations[dim]
        rows.append(row)
    map = linear_map(rows, [-before for before in low], dims)
    return b.view(value, map, [*shape, *(window[dim] for dim in wide)], b.reshape(filler, ()))


def select_and_scatter(b: KnownValueBuilder, op: Any, values: Values, functions: Functions) -> list[GraphValue]:
    """The gradient of a pool: each window adds its update to the element that it had chosen."""
    source, updates, initial = values
    kind, direction = kind_of(op.operands[0].type), _selecting(op.regions[0].blocks[0])
    if direction not in ("GE", "GT", "LE", "LT") or only_operator(op.regions[1].blocks[0]) != "stablehlo.add":
        raise UnsupportedError("windows that choose by another function than a comparison, or combine but by sums", code="TFW0992")
    shape = shape_of(source)
    rank, window = len(shape), integers(op, "window_dimensions")
    steps, low = integers(op, "window_strides", 1, rank), [before for before, _ in pairs(op, "padding", rank)]
    filler = b.full(_worst(direction, kind), source)
    seen = windows(b, source, shape_of(updates), window, steps, [1] * rank, low, filler)
    chosen = _chosen(b, seen, updates, direction, kind) if any(extent > 1 for extent in window) else updates
    total = _laid_over(b, chosen, shape, window, steps, low, kind)
    if _is(b.known(initial), 0):
        return [total]
    begin = b.broadcast(b.reshape(initial, ()), shape)
    return applied(b.map, partial(constant, b), op.regions[1].blocks[0], [begin, total], functions)


def _chosen(b: KnownValueBuilder, seen: GraphValue, updates: GraphValue, direction: str, kind: str) -> GraphValue:
    """In each window the update at the element that wins, and zeros: of equals the first, or the last where equals replace."""
    shape, rank = shape_of(seen), len(shape_of(updates))
    axes = list(range(rank, len(shape)))
    order = "stablehlo.maximum" if direction.startswith("G") else "stablehlo.minimum"
    best = b.reduce(row_for(POINTWISE_ROWS[order], kind), seen, axes, keep=True)
    number, count = _numbered(b, shape, rank), prod(shape[rank:])
    first = direction in ("GE", "LE")
    equal = b.map("eqf" if is_float(kind) else "eqi", seen, best)
    winner = b.reduce("mins" if first else "maxs", b.map("select", equal, number, count if first else -1), axes, keep=True)
    wide = b.broadcast(b.reshape(updates, (*shape[:rank], *([1] * len(axes)))), shape)
    return b.map("select", b.map("eqi", number, winner), wide, 0)


def _numbered(b: KnownValueBuilder, shape: Sequence[int], rank: int) -> GraphValue:
    """The number of each element in its window."""
    found, step = None, 1
    for dim in reversed(range(rank, len(shape))):
        part = b.map("muli", b.iota(shape, dim), step) if step > 1 else b.iota(shape, dim)
        found = part if found is None else b.map("addi", found, part)
        step *= shape[dim]
    assert found is not None
    return found


def _laid_over(
    b: KnownValueBuilder, chosen: GraphValue, shape: Sequence[int], window: Sequence[int], steps: Sequence[int], low: Sequence[int],
    kind: str,
) -> GraphValue:
    """Sums of what the windows have for each element that they cover."""
    rank, zero = len(shape), b.full(0, chosen)
    wide = [dim for dim, extent in enumerate(window) if extent > 1]
    apart = spread(b, chosen, [*steps, *([1] * len(wide))], zero)
    rows = []
    for dim in range(rank):
        row = [int(d == dim) for d in range(rank + len(wide))]
        if dim in wide:
            row[rank + wide.index(dim)] = -1
        rows.append(row)
    rows += [[int(d == rank + k) for d in range(rank + len(wide))] for k in range(len(wide))]
    map = linear_map(rows, [*low, *([0] * len(wide))], rank + len(wide))
    covered = b.view(apart, map, [*shape, *(window[dim] for dim in wide)], zero)
    if not wide:
        return covered
    return b.reduce("addf" if is_float(kind) else "addi", covered, list(range(rank, rank + len(wide))))


def _selecting(block: Any) -> str:
    """The comparison of the new element with the held one that a body makes; the empty word for another body."""
    ops = [view.operation for view in block.operations]
    if len(ops) != 2 or ops[0].name != "stablehlo.compare" or list(ops[0].operands) != list(block.arguments):
        return ""
    return str(ops[0].attributes["comparison_direction"]).rstrip(">").rpartition(" ")[2]


def _worst(direction: str, kind: str) -> float:
    """What no window prefers."""
    most = direction.startswith("G")
    if is_float(kind):
        return float("-inf") if most else float("inf")
    if kind.startswith("u"):
        return 0 if most else -1
    bits = int(kind.removeprefix("int"))
    return -(1 << (bits - 1)) if most else (1 << (bits - 1)) - 1


COMBINING = {
    "stablehlo.reduce": reduce, "stablehlo.reduce_window": reduce_window, "stablehlo.select_and_scatter": select_and_scatter,
}
