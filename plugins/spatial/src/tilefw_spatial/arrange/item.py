"""Values with their axes divided into lanes and time: what is wanted by a consumer decides how its operands lie.

`Items.item(value, lanes)` asks for a value along given lanes and, through it, for its operands: those of elementwise ops along the
same lanes, a reduction's with what it reduces in time, a product's weights along the result's lanes and its activations along the
contracted axes. A value that two consumers want along different lanes is made twice; the cost of that is weighed by `choose`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from tilefw_spatial.arrange.lanes import Everywhere, Lanes, Picked, Product, Renamed
from tilefw_spatial.arrange.normal import Fetch, Pick, operands
from tilefw_spatial.graph import Axis, Constant, Dot, Reduce, Value


class UnfitError(Exception):
    """A value cannot be had along the lanes that were asked for."""


@dataclass(slots=True, eq=False)
class Item:
    """A value along lanes. `operands` are the op's; a dot's are weights and activations, `turned` if the weights are its `a`."""

    value: Value
    lanes: Lanes
    operands: tuple[Item, ...] = ()
    turned: bool = False

    @property
    def time(self) -> tuple[Axis, ...]:
        """The axes that are not along lanes."""
        return tuple(axis for axis in self.value.axes if axis not in self.lanes.axes)

    @property
    def points(self) -> int:
        """Vectors that it takes to go through all elements once."""
        return self.lanes.chunks * prod(axis.extent for axis in self.time)

    @property
    def inputs(self) -> bool:
        """Whether it stands in memory from the beginning."""
        return isinstance(self.value.op, Fetch | Constant)


@dataclass(slots=True)
class Items:
    """All items asked for so far, by value and lanes."""

    made: dict[Hashable, Item]

    def item(self, value: Value, lanes: Lanes) -> Item:
        """The value along as much of `lanes` as it has axes of; raises UnfitError."""
        lanes = lanes.restricted(value.axes)
        key = (id(value), lanes.key)
        if key not in self.made:
            parts, turned = self._operands(value, lanes)
            self.made[key] = Item(value, lanes, parts, turned)
        return self.made[key]

    def _operands(self, value: Value, lanes: Lanes) -> tuple[tuple[Item, ...], bool]:
        match value.op:
            case Dot() as dot:
                return self._product(dot, value, lanes)
            case Pick(operand=operand, picks=picks):
                return (self.item(operand, renamed(lanes, value, operand, picks)),), False
            case Reduce(operand=operand, initial=initial):
                parts = (operand,) if initial is None else (operand, initial)
                return tuple(self.item(part, lanes) for part in parts), False
        return tuple(self.item(part, lanes) for part in operands(value.op)), False

    def _product(self, dot: Dot, value: Value, lanes: Lanes) -> tuple[tuple[Item, ...], bool]:
        for weights, activations, turned in ((dot.b, dot.a, False), (dot.a, dot.b, True)):
            if not lanes.axes & frozenset(activations.axes) and lanes.axes <= frozenset(weights.axes):
                try:
                    along = Product(dot.contracted)
                    return (self.item(weights, lanes), self.item(activations, along)), turned
                except UnfitError:
                    continue
        raise UnfitError(value.place)


def renamed(lanes: Lanes, value: Value, operand: Value, picks: Mapping[Axis, Picked]) -> Lanes:
    """The lanes of a rename's operand; raises UnfitError where an old axis would lie partly along lanes and partly in time."""
    along: dict[Axis, Picked] = {}
    for axis in operand.axes:
        pick = picks.get(axis)
        new = frozenset(pick.axes if pick else (axis,))
        if new & lanes.axes:
            if not new <= lanes.axes:
                raise UnfitError(value.place)
            along[axis] = pick or _same(axis)
    if not along:
        return Everywhere()
    if all(axis not in picks for axis in along):
        return lanes.restricted(tuple(along))
    return Renamed(lanes, id(value), along)


def _same(axis: Axis) -> Picked:
    return Picked((axis,), np.arange(axis.extent))


def reachable(roots: Iterable[Item]) -> list[Item]:
    """Every item that the roots need, operands before their users."""
    done: dict[int, Item] = {}
    stack = [(root, False) for root in reversed(list(roots))]
    while stack:
        item, ready = stack.pop()
        if id(item) in done:
            continue
        if ready:
            done[id(item)] = item
        else:
            stack.append((item, True))
            stack += [(part, False) for part in reversed(item.operands)]
    return list(done.values())
