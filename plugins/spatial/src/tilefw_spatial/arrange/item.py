"""Values with their axes divided into lanes and time: what a consumer asks for decides the layout of its operands.

`Items.item(value, lanes)` asks for a value along given lanes and, through it, for its operands: those of elementwise ops along the
same lanes, a reduction's with what it reduces in time, a product's weights along the result's lanes and its activations along the
contracted axes. A value that two consumers want along different lanes is made twice; the cost of that is weighed by `choose`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from math import prod

import numpy as np

from tilefw_spatial.arrange.lanes import Everywhere, LaneOrder, LaneProduct, Renamed
from tilefw_spatial.arrange.normal import Fetch, Reindex, Relayout, operands, reached
from tilefw_spatial.arrange.reindexing import AxisIndex
from tilefw_spatial.graph import Axis, Constant, Dot, Reduce, Value
from tilefw_spatial.machine import Machine
from tilefw_spatial.postorder import postorder

# Items for each value that one target may need: a scan along lanes asks for its operands along ever new ones.
_MOST = 3
_ROOM = 20


class UnfitError(Exception):
    """A value that is impossible along the lanes that were asked for."""


@dataclass(slots=True, eq=False)
class Item:
    """A value along lanes. `operands` are the op's; a dot's are weights and activations, `swapped` if the weights are its `a`.

    `across_lanes`: a reduction whose axis lies along lanes; its operand has all of the lanes' axes, the last of them is combined,
    and every position of that axis has the result. Or a relayout, which the switch makes as well."""

    value: Value
    lanes: LaneOrder
    operands: tuple[Item, ...] = ()
    swapped: bool = False
    across_lanes: bool = False
    time: tuple[Axis, ...] = field(init=False)  # the axes that are not along lanes
    points: int = field(init=False)  # vectors that it takes to go through all elements once

    def __post_init__(self) -> None:
        self.time = tuple(axis for axis in self.value.axes if axis not in self.lanes.axes)
        self.points = self.lanes.chunks * prod(axis.extent for axis in self.time)

    @property
    def inputs(self) -> bool:
        """Whether it is in memory from the beginning."""
        return isinstance(self.value.op, Fetch | Constant)


Want = tuple[Value, LaneOrder]


@dataclass(frozen=True, slots=True)
class MappingChoice:
    """A candidate mapping of a value: what it needs, and the item's `swapped` and `across_lanes`."""

    wants: tuple[Want, ...]
    swapped: bool = False
    across_lanes: bool = False


class Items:
    """All items asked for so far on one machine, by value and lanes; None for what is impossible. Reductions over one of the axes
    `lane_axes` are made across lanes where these allow it; relayouts of `still` move nothing."""

    def __init__(
        self, machine: Machine, lane_axes: frozenset[Axis] = frozenset(), most: int = _MOST, still: frozenset[Value] = frozenset()
    ) -> None:
        self.machine = machine
        self.still = still
        self._most = most
        self._made: dict[Hashable, Item | None] = {}
        self.lane_axes = lane_axes
        self._counts: dict[Value, int] = {}

    def item(self, value: Value, lanes: LaneOrder) -> Item:
        """The value along as much of `lanes` as it has axes of; raises UnfitError where that is impossible, or takes too many
        items."""
        first = (value, lanes.restricted(value.axes))
        pending = [first]
        most = len(self._made) + self._most * (_ROOM + self._reached(value))
        while pending:
            want = pending[-1]
            missing = [] if _key(want) in self._made else self._missing(want)
            if not missing:
                pending.pop()
            pending += missing
            if len(self._made) > most:
                self._made[_key(first)] = None
                break
        found = self._made[_key(first)]
        if found is None:
            raise UnfitError(value.place)
        return found

    def _reached(self, value: Value) -> int:
        if value not in self._counts:
            self._counts[value] = len(reached(value))
        return self._counts[value]

    def _missing(self, want: Want) -> list[Want]:
        """What must be made before the value; nothing where it now is made, by its first possible mapping."""
        value, lanes = want
        for choice in self._choices(value, lanes):
            wants = [(part, along.restricted(part.axes)) for part, along in choice.wants]
            if missing := [w for w in wants if _key(w) not in self._made]:
                return missing
            parts = [item for item in (self._made[_key(w)] for w in wants) if item is not None]
            if len(parts) == len(wants):
                moves = not isinstance(value.op, Relayout) or parts[0].lanes.key != lanes.key
                made = Item(value, lanes, tuple(parts), choice.swapped, choice.across_lanes) if moves else parts[0]
                self._made[_key(want)] = made
                return []
        self._made[_key(want)] = None
        return []

    def _choices(self, value: Value, lanes: LaneOrder) -> list[MappingChoice]:
        match value.op:
            case Relayout(operand=operand):
                sources = [lanes] if value in self.still else relayout_sources(value, lanes)
                return [MappingChoice(((operand, source),), across_lanes=True) for source in sources]
            case Dot() as dot:
                sides = ((dot.b, dot.a, False), (dot.a, dot.b, True))
                along = LaneProduct(dot.contracted, lanes.width)
                return [
                    MappingChoice(((weights, lanes), (activations, along)), swapped) for weights, activations, swapped in sides
                    if not lanes.axes & frozenset(activations.axes) and lanes.axes <= frozenset(weights.axes)
                ]
            case Reindex(operand=operand, reindexing=reindexing):
                found = renamed(lanes, operand, reindexing)
                return [] if found is None else [MappingChoice(((operand, found),))]
            case Reduce(operand=operand, axes=(axis,)) if axis in self.lane_axes and (whole := lanes.with_last(axis)) is not None:
                return [MappingChoice(((operand, whole),), across_lanes=True), MappingChoice(((operand, lanes),))]
        return [MappingChoice(tuple((part, lanes) for part in operands(value.op)))]


def relayout_sources(value: Value, lanes: LaneOrder) -> list[LaneOrder]:
    """The lanes from which the switch can bring a value along `lanes`, as each vector that is wanted is of one vector that is
    there; at last the wanted lanes themselves."""
    free = [axis for axis in value.axes if axis not in lanes.axes]  # may be in time on both sides
    found: list[LaneOrder] = []
    for size in range(len(free) + 1):
        for apart in combinations(free, size):
            along = tuple(axis for axis in value.axes if axis not in apart)
            if along:
                found.append(LaneProduct(along, lanes.width))
    return [*found, lanes]


def _key(want: Want) -> Hashable:
    return want[0], want[1].key


def renamed(lanes: LaneOrder, operand: Value, reindexing: Mapping[Axis, AxisIndex]) -> LaneOrder | None:
    """The lanes of a rename's operand, None where an old axis would lie partly along lanes and partly in time."""
    along: dict[Axis, AxisIndex] = {}
    for axis in operand.axes:
        axis_index = reindexing.get(axis)
        new = frozenset(axis_index.axes if axis_index else (axis,))
        if new & lanes.axes:
            if not new <= lanes.axes:
                return None
            along[axis] = axis_index or _same(axis)
    if not along:
        return Everywhere(lanes.width)
    if all(axis not in reindexing for axis in along):
        return lanes.restricted(tuple(along))
    return Renamed(lanes, along)


def _same(axis: Axis) -> AxisIndex:
    return AxisIndex((axis,), np.arange(axis.extent))


def reachable(roots: Iterable[Item]) -> list[Item]:
    """Every item that the roots need, operands before their users."""
    return postorder(roots, lambda item: reversed(item.operands))
