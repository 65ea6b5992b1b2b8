"""Where small results meet larger values, such as a row's sum its row: there they may change lanes, so that each side has lanes of
its own choice."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tilefw_spatial.arrange.choose import chosen, cost
from tilefw_spatial.arrange.normal import NormalTarget, Relayout, operands, reached, with_operands
from tilefw_spatial.graph import Axis, Dot, Elementwise, Reduce, Value
from tilefw_spatial.machine import Machine
from tilefw_spatial.postorder import postorder


def with_relayouts(targets: list[NormalTarget], lanes: int) -> list[NormalTarget]:
    """The targets with a relayout at each such place; `lanes` are those of a vector."""
    placer = _RelayoutPlacer(lanes)
    return [replace(target, value=placer.made(target.value)) for target in targets]


def lane_axes(targets: list[NormalTarget], lanes: int) -> frozenset[Axis]:
    """The axes that may be reduced across lanes: those of one reduction each that fill a vector by halves."""
    found = (value.op.axes for value in _values(targets) if isinstance(value.op, Reduce) and value.op.ordered is None)
    return frozenset(
        axes[0] for axes in found if len(axes) == 1 and 1 < axes[0].extent <= lanes and axes[0].extent & (axes[0].extent - 1) == 0
    )


def still(targets: list[NormalTarget], across: frozenset[Axis], machine: Machine) -> frozenset[Value]:
    """The relayouts without which less is to be done: each in turn is tried with those before it."""
    def estimate(chosen_still: frozenset[Value]) -> float:
        return cost(chosen(targets, machine, (), across, chosen_still)[1], machine)

    found: frozenset[Value] = frozenset()
    least = estimate(found)
    for value in _values(targets):
        if isinstance(value.op, Relayout) and (trial := estimate(found | {value})) < least:
            found, least = found | {value}, trial
    return found


def relayouts_of_products(targets: list[NormalTarget]) -> frozenset[Value]:
    """The relayouts of what products are behind: of inputs alone anything can be made along other lanes at little cost."""
    return frozenset(
        value for value in _values(targets)
        if isinstance(value.op, Relayout) and any(isinstance(below.op, Dot) for below in reached(value))
    )


def _values(targets: list[NormalTarget]) -> list[Value]:
    return postorder((target.value for target in targets), lambda value: operands(value.op))


class _RelayoutPlacer:
    """Rewrites values once each, operands first."""

    def __init__(self, lanes: int) -> None:
        self._lanes = lanes
        self._done: dict[Value, Value] = {}
        self._relayouts: dict[Value, Value] = {}
        self._reduced: set[Value] = set()  # elementwise functions of a reduction's results

    def made(self, value: Value) -> Value:
        for current in postorder([value], lambda user: operands(user.op), self._done):
            self._done[current] = self._value(current)
        return self._done[value]

    def _value(self, value: Value) -> Value:
        op = value.op
        if isinstance(op, Elementwise):
            parts = tuple(self._operand(part, value) for part in op.operands)
            made = self._changed(value, parts)
            if any(part in self._reduced and len(part.axes) == len(value.axes) for part in parts):
                self._reduced.add(made)
            return made
        made = self._changed(value, tuple(self._done[part] for part in operands(op)))
        if isinstance(op, Reduce):
            self._reduced.add(made)
        return made

    def _operand(self, part: Value, user: Value) -> Value:
        made = self._done[part]
        grows = len(user.axes) > len(made.axes)
        if made not in self._reduced or not grows or not 1 < prod(axis.extent for axis in made.axes) <= self._lanes:
            return made
        if made not in self._relayouts:
            self._relayouts[made] = Value(Relayout(made), made.axes, made.dtype, made.place)
        return self._relayouts[made]

    def _changed(self, value: Value, parts: tuple[Value, ...]) -> Value:
        """The value with other operands; itself where they are as they were."""
        if parts == operands(value.op):
            return value
        return Value(with_operands(value.op, parts), value.axes, value.dtype, value.place)
