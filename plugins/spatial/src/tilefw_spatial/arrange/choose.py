"""Which axes of what is stored lie along lanes: all ways are tried, the cheapest is taken.

Everything else follows from that (`item`). A way's cost is the cycles that its sweeps would take one after the other, roughly: a
point of a region costs one, shared by the ALUs that work on it; a product its rows for each set of weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

from tilefw_spatial.arrange.item import Item, Items, UnfitError, reachable
from tilefw_spatial.arrange.lanes import Everywhere, Lanes, Product
from tilefw_spatial.arrange.matrix import DEPTHS, shape_of
from tilefw_spatial.arrange.normal import Target
from tilefw_spatial.graph import Axis, Dot, Elementwise, Reduce

ALUS = 16
SIDES = 2
# Beyond so many axes only small sets of them, and all but a few, are tried.
_ALL_SETS = 6
_WEIGHTS_EXPOSED = 40  # cycles of loading and installing weights (LW 20 + IW 20) that products do not hide, at worst
# A vector in memory takes no cycle, but memory is small: between ways of one speed the smaller is taken.
_VECTOR = 1e-3


def chosen(targets: list[Target]) -> list[Item]:
    """The item of each target. Targets that share work are tried along common axes first, then each by itself."""
    items = Items({})
    best, least = _together(targets, items)
    for number, target in enumerate(targets):
        for lanes in ways(target.value.axes):
            item = _item(items, target, lanes)
            if item is None or item is best[number]:
                continue
            trial = [*best[:number], item, *best[number + 1 :]]
            if (found := cost(trial)) < least:
                best, least = trial, found
    return best


def _together(targets: list[Target], items: Items) -> tuple[list[Item], float]:
    """The best way that takes for every target those of one set of axes that it has."""
    best: list[Item] | None = None
    least = 0.0
    for axes in _sets(tuple(dict.fromkeys(axis for target in targets for axis in target.value.axes))):
        trial = [_item(items, target, _along(axes, target.value.axes)) for target in targets]
        whole = [item for item in trial if item is not None]
        if len(whole) == len(trial) and (best is None or cost(whole) < least):
            best, least = whole, cost(whole)
    assert best is not None, "with no axis along lanes every value can be had"
    return best, least


def _item(items: Items, target: Target, lanes: Lanes) -> Item | None:
    try:
        return items.item(target.value, lanes)
    except UnfitError:
        return None


def ways(axes: tuple[Axis, ...]) -> Iterator[Lanes]:
    """Every choice of lanes that is tried for a value over `axes`."""
    for chosen_axes in _sets(axes):
        yield _along(chosen_axes, axes)


def _along(chosen_axes: Iterable[Axis], axes: tuple[Axis, ...]) -> Lanes:
    own = tuple(axis for axis in axes if axis in chosen_axes)
    return Product(own) if own else Everywhere()


def _sets(axes: tuple[Axis, ...]) -> Iterator[tuple[Axis, ...]]:
    sizes = range(len(axes), -1, -1)
    if len(axes) > _ALL_SETS:
        sizes = (len(axes), len(axes) - 1, 2, 1, 0)
    for size in sizes:
        yield from combinations(axes, size)


def cost(roots: Iterable[Item]) -> float:
    """About how many cycles it takes to make the roots."""
    return sum(_own_cost(item) for item in reachable(roots)) + sum(item.points for item in roots)


def _own_cost(item: Item) -> float:
    match item.value.op:
        case Elementwise():
            return item.points / ALUS
        case Reduce(axes=axes):
            points = item.points
            for axis in axes:
                points *= axis.extent
            return points
        case Dot():
            return _product_cost(item)
    return item.points * _VECTOR


def _product_cost(item: Item) -> float:
    shape = shape_of(item)
    dtype = item.operands[0].value.dtype
    parts = -(-shape.k // DEPTHS[dtype])
    rows = 1
    for axis in shape.rows:
        rows *= axis.extent
    sets = parts * item.points // rows
    return (sets * max(rows, 20) + _WEIGHTS_EXPOSED) / SIDES
