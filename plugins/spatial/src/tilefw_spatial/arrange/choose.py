"""Which axes of what is stored lie along lanes: all candidates are tried, the cheapest is taken.

Everything else follows from that (`item`). A candidate's cost is the cycles that its stream operations would take one after the
other, roughly: a point of a region costs one, shared by the ALUs that work on it; a product its rows for each set of weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from tilefw_spatial.arrange.item import Item, Items, UnfitError, reachable
from tilefw_spatial.arrange.lane_reduction import steps_of
from tilefw_spatial.arrange.lanes import Everywhere, LaneProduct
from tilefw_spatial.arrange.long_reductions import has_long_reduction, split_reductions
from tilefw_spatial.arrange.matrix import parts_of, shape_of
from tilefw_spatial.arrange.normal import NormalTarget, Relayout, reached
from tilefw_spatial.arrange.split import shared_lanes, split
from tilefw_spatial.graph import Axis, Dot, Elementwise, Reduce, Value
from tilefw_spatial.machine import SIDES, Machine

# Beyond so many cycles a reduction across lanes is thought of, over each of the longest axes.
_LONG = 1000
_TRIED = 2
# Items for each value that a target may need, where the usual number leaves it without any mapping.
_PATIENT = 300
# Beyond so many axes only small sets of them, and all but a few, are tried.
_ALL_SETS = 6
# The compiler's own tuning, for any machine; only estimates that weigh candidates against one another, never times of the schedule.
# A stream operation whose results another waits for takes about so many cycles before its first result is back in memory: read,
# half the chip's length there and back, a chain of steps, write.
_STREAM_OP = 60
_LANE_STEP = 150  # the same for one step of a reduction across lanes: to the switch and back, then through the vector unit
# A vector in memory takes no cycle, but memory is small: between candidates of one speed the smaller is taken.
_VECTOR = 1e-3


def chosen(
    targets: Sequence[NormalTarget], machine: Machine, observers: Sequence[NormalTarget] = (),
    lane_axes: frozenset[Axis] = frozenset(), still: frozenset[Value] = frozenset(),
) -> tuple[list[NormalTarget], list[Item]]:
    """The targets, maybe with an axis split, and the item of each; then the same of `observers`: stores of what the targets are
    made of, which are to decide nothing. Targets that share values are tried along common axes first, then each by itself. With
    `lane_axes` no other axes are reduced across lanes; `still` are relayouts that move nothing."""
    every = [*targets, *observers]
    found: dict[int, tuple[NormalTarget, Item]] = {}
    for numbers in _sharing(every):
        numbers = sorted(numbers)
        some = [every[number] for number in numbers]
        count = sum(number < len(targets) for number in numbers) or len(some)
        best = _best(some[:count], Items(machine, lane_axes, still=still))
        some, best, across = (some, best, lane_axes) if lane_axes else _across(some, best, machine)
        if has_long_reduction(reachable(best)):
            some = split_reductions(some)
            best = _best(some[:count], Items(machine, across, still=still))
        best += _observed(some[count:], best, Items(machine, across, still=still))
        found.update(zip(numbers, zip(some, best, strict=True), strict=True))
    pairs = [found[number] for number in range(len(every))]
    return [target for target, _ in pairs], [item for _, item in pairs]


def _observed(targets: Sequence[NormalTarget], best: list[Item], items: Items) -> list[Item]:
    """An item for each target: one that is made anyhow, or else one of its own."""
    made = {item.value: item for item in reversed(reachable(best)) if item.lanes.covers()}
    found: list[Item] = []
    for target in targets:
        item = made.get(target.value) or _best([target], items)[0]
        made = {**{part.value: part for part in reachable([item]) if part.lanes.covers()}, **made}
        found.append(item)
    return found


def _across(
    targets: list[NormalTarget], best: list[Item], machine: Machine,
) -> tuple[list[NormalTarget], list[Item], frozenset[Axis]]:
    """A mapping that reduces long axes across lanes, where that is much faster than in time; with the axes that lie along lanes.
    `best` are the items of the first targets, which alone decide."""
    lane_axes: frozenset[Axis] = frozenset()
    width, count = shared_lanes(machine.lanes), len(best)
    for axis in _reduced(targets[:count])[:_TRIED]:
        least = cost(best, machine)
        parts = split(targets, axis, width) if least > _LONG else None
        if parts is None:
            continue
        trial = _best(parts.targets[:count], Items(machine, lane_axes | {parts.lane}))
        if cost(trial, machine) < least:
            targets, best, lane_axes = parts.targets, trial, lane_axes | {parts.lane}
    return targets, best, lane_axes


def _reduced(targets: list[NormalTarget]) -> list[Axis]:
    """Axes that reductions combine in any order, longest first."""
    axes: dict[Axis, None] = {}
    for target in targets:
        for value in reached(target.value):
            if isinstance(value.op, Reduce):
                axes.update((axis, None) for axis in value.op.axes)
    return sorted(axes, key=lambda axis: -axis.extent)


def _sharing(targets: list[NormalTarget]) -> list[list[int]]:
    """Numbers of the targets in sets that have values in common, whatever the lanes."""
    groups: list[tuple[set[Value], list[int]]] = []
    for number, target in enumerate(targets):
        values, members = set(reached(target.value)), [number]
        apart = []
        for other, others in groups:
            if other & values:
                values |= other
                members = others + members
            else:
                apart.append((other, others))
        groups = [*apart, (values, members)]
    return [members for _, members in groups]


def _best(targets: list[NormalTarget], items: Items) -> list[Item]:
    found = dict.fromkeys(axis for target in targets for axis in target.value.axes)
    axes = tuple(sorted(found, key=lambda axis: axis in items.lane_axes))  # reductions across lanes are over the innermost axis
    together = _together(targets, items, axes)
    if together is None:  # with no axis along lanes every value is possible: it took too many items, as long scans may
        items = Items(items.machine, items.lane_axes, _PATIENT, items.still)
        together = _together(targets, items, axes)
    assert together is not None, "the mapping with no axis along lanes takes more items than anybody waits for"
    best, least = together
    for number, target in enumerate(targets):
        for some in _sets(tuple(axis for axis in axes if axis in target.value.axes)):
            item = _item(items, target, some)
            if item is None or item is best[number]:
                continue
            trial = [*best[:number], item, *best[number + 1 :]]
            if (found := cost(trial, items.machine)) < least:
                best, least = trial, found
    return best


def _together(targets: list[NormalTarget], items: Items, axes: tuple[Axis, ...]) -> tuple[list[Item], float] | None:
    """The best mapping that takes for every target those of one set of axes that it has, in one order; None where the number of
    items allows none."""
    best: list[Item] | None = None
    least = 0.0
    for some in _sets(axes):
        for beside in ((), tuple(axis for axis in some if axis in items.lane_axes)):
            trial = [_item(items, target, some, beside) for target in targets]
            whole = [item for item in trial if item is not None]
            if len(whole) == len(trial) and ((found := cost(whole, items.machine)) < least or best is None):
                best, least = whole, found
            if not items.lane_axes.intersection(some):
                break
    return None if best is None else (best, least)


def _item(items: Items, target: NormalTarget, axes: Iterable[Axis], beside: tuple[Axis, ...] = ()) -> Item | None:
    """The target with those of `axes` along lanes that it has, and those of `beside` although it may lack them (it is the same for
    all their indices, like what is reduced across lanes for targets that have the axis); None where that is impossible."""
    own = tuple(axis for axis in axes if axis in target.value.axes or axis in beside)
    try:
        return items.item(target.value, LaneProduct(own, items.machine.lanes) if own else Everywhere(items.machine.lanes))
    except UnfitError:
        return None


def _sets(axes: tuple[Axis, ...]) -> Iterator[tuple[Axis, ...]]:
    sizes = range(len(axes), -1, -1)
    if len(axes) > _ALL_SETS:
        sizes = (len(axes), len(axes) - 1, 2, 1, 0)
    for size in sizes:
        yield from combinations(axes, size)


def cost(roots: Iterable[Item], machine: Machine) -> float:
    """About how many cycles it takes to make the roots."""
    return sum(_own_cost(item, machine) for item in reachable(roots)) + sum(item.points for item in roots)


def _own_cost(item: Item, machine: Machine) -> float:
    match item.value.op:
        case Elementwise():
            return item.points / machine.alus
        case Relayout():
            return item.points + 2 * _STREAM_OP
        case Reduce() if item.across_lanes:
            return steps_of(item) * (2 * item.operands[0].points + _LANE_STEP)
        case Reduce(axes=axes):
            points = item.points
            for axis in axes:
                points *= axis.extent
            return points + _STREAM_OP
        case Dot():
            return _product_cost(item, machine)
    return item.points * _VECTOR


def _product_cost(item: Item, machine: Machine) -> float:
    shape = shape_of(item)
    parts = parts_of(item, machine)
    rows = 1
    for axis in shape.rows:
        rows *= axis.extent
    tiles = item.points // rows
    return (tiles * parts * max(rows, machine.delays["load_weights"]) + tiles * _STREAM_OP) / len(SIDES)
