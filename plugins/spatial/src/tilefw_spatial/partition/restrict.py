"""Part of a graph: what is stored at some indices of one axis, and what that needs; or a product's sum over some of its terms.

Restriction goes from the stores down. What lacks the axis stays as it is: a sum over the axis, for one, is made whole on every chip
that needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tilefw_spatial.graph import (
    AccessMap,
    Along,
    Axis,
    Constant,
    Dot,
    Elementwise,
    Gather,
    Graph,
    Join,
    Joint,
    Load,
    Op,
    Reduce,
    Rename,
    Store,
    Value,
    operands_of,
)


@dataclass(frozen=True, slots=True)
class AxisPart:
    """Indices `begin` to `end` of `axis`, which are the axis `part` of their own. Indices beyond the axis' extent are there to make
    parts equally long: nothing is loaded or stored for them."""

    axis: Axis
    begin: int
    end: int
    part: Axis

    @property
    def taken(self) -> NDArray[np.int64]:
        """The index of the axis for each of the part's own indices."""
        return np.minimum(np.arange(self.begin, self.end), self.axis.extent - 1)

    @property
    def there(self) -> NDArray[np.bool_] | None:
        """Which of them are indices of the axis; None for all."""
        return None if self.end <= self.axis.extent else np.arange(self.begin, self.end) < self.axis.extent


def part_of(axis: Axis, begin: int, end: int) -> AxisPart:
    """A part with a new axis."""
    return AxisPart(axis, begin, end, Axis(axis.name, end - begin))


def can_part(value: Value, axis: Axis) -> bool:
    """Whether a value can be restricted along an axis; a join's own axis cannot."""
    stack, seen = [value], set[int]()
    while stack:
        current = stack.pop()
        if axis not in current.axes or id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current.op, Join) and (axis is current.op.axis or axis in current.op.parts):
            return False
        stack += operands_of(current.op)
    return True


@dataclass(slots=True)
class Restriction:
    """Values at a part of one axis; each is made once, so that what shared work still does."""

    part: AxisPart
    _made: dict[int, tuple[Value, Value]] = field(default_factory=dict)

    def store(self, store: Store) -> Store | None:
        """The part of a store, None where that stores nothing."""
        access_map = self._access_map(store.access_map)
        if any(along.valid is not None and not along.valid.any() for along in access_map.along):
            return None
        mask = None if store.mask is None else self.value(store.mask)
        return replace(store, value=self.value(store.value), access_map=access_map, mask=mask)

    def value(self, value: Value) -> Value:
        """The part of a value."""
        if self.part.axis not in value.axes:
            return value
        if id(value) not in self._made:
            self._made[id(value)] = (self._restricted(value), value)
        return self._made[id(value)][0]

    def _restricted(self, value: Value) -> Value:
        axes = tuple(self.part.part if axis is self.part.axis else axis for axis in value.axes)
        match value.op:
            case Load() as load:
                op = replace(load, access_map=self._access_map(load.access_map))
            case Constant(data=data):
                shaped = data.reshape([axis.extent for axis in value.axes])
                op = Constant(shaped.take(self.part.taken, axis=value.axes.index(self.part.axis)))
            case Rename(operand=operand, old=old, new=new, index=index) if self.part.axis in new:
                op = Rename(operand, old, self._axes(new), self._renamed(new, index))
            case Join() as join:
                op = replace(join, operands=tuple(self.value(part) for part in join.operands))
            case other:
                op = _with_operands(other, self.value)
        return Value(op, axes, value.dtype, value.place)

    def _axes(self, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
        return tuple(self.part.part if axis is self.part.axis else axis for axis in axes)

    def _renamed(self, new: tuple[Axis, ...], index: NDArray[np.int64] | None) -> NDArray[np.int64]:
        shape = [axis.extent for axis in new]
        whole = np.arange(int(np.prod(shape, dtype=np.int64))) if index is None else index
        return whole.reshape(shape).take(self.part.taken, axis=new.index(self.part.axis))

    def _access_map(self, access_map: AccessMap) -> AccessMap:
        along = tuple(self._along(part) for part in access_map.along)
        return replace(access_map, along=along, joint=tuple(self._joint(part) for part in access_map.joint))

    def _along(self, along: Along) -> Along:
        if along.axis is not self.part.axis:
            return along
        valid = None if along.valid is None else along.valid[self.part.taken]
        there = self.part.there
        if there is not None:
            valid = there if valid is None else valid & there
        return Along(self.part.part, along.offsets[self.part.taken], valid)

    def _joint(self, joint: Joint) -> Joint:
        if self.part.axis not in joint.axes:
            return joint
        number = joint.axes.index(self.part.axis)
        shape = [axis.extent for axis in joint.axes]
        offsets = joint.offsets.reshape(shape).take(self.part.taken, axis=number)
        valid = None if joint.valid is None else joint.valid.reshape(shape).take(self.part.taken, axis=number)
        return Joint(self._axes(joint.axes), offsets, valid)


def part_sums(graph: Graph, product: Value, part: AxisPart) -> Graph:
    """The graph with one product summed over a part of a contracted axis alone: its value is then a term of what it was."""
    op = product.op
    assert isinstance(op, Dot) and part.axis in op.contracted
    restriction = Restriction(part)
    contracted = tuple(part.part if axis is part.axis else axis for axis in op.contracted)
    dot = replace(op, a=restriction.value(op.a), b=restriction.value(op.b), contracted=contracted, accumulator=None)
    return replaced(graph, {id(product): _accumulated(Value(dot, product.axes, product.dtype, product.place), op, product)})


def _accumulated(dot: Value, op: Dot, like: Value) -> Value:
    """The accumulator is added to the whole sum, once."""
    if op.accumulator is None:
        return dot
    row = "addi" if like.dtype.startswith("int") else "addf"
    return Value(Elementwise(row, (dot, op.accumulator)), like.axes, like.dtype, like.place)


def replaced(graph: Graph, made: Mapping[int, Value]) -> Graph:
    """The graph with some values replaced (by identity)."""
    done = dict(made)
    for value in graph.values():
        if id(value) in done:
            continue
        parts = operands_of(value.op)
        if any(done[id(part)] is not part for part in parts):
            done[id(value)] = Value(_with_operands(value.op, lambda part: done[id(part)]), value.axes, value.dtype, value.place)
        else:
            done[id(value)] = value
    return Graph([
        replace(store, value=done[id(store.value)], mask=None if store.mask is None else done[id(store.mask)])
        for store in graph.stores
    ])


def _with_operands(op: Op, change: Callable[[Value], Value]) -> Op:
    """The op on changed operands."""
    match op:
        case Elementwise() | Join():
            return replace(op, operands=tuple(change(part) for part in op.operands))
        case Reduce():
            return replace(op, operand=change(op.operand), initial=None if op.initial is None else change(op.initial))
        case Dot():
            accumulator = None if op.accumulator is None else change(op.accumulator)
            return replace(op, a=change(op.a), b=change(op.b), accumulator=accumulator)
        case Rename():
            return replace(op, operand=change(op.operand))
        case Gather():
            return replace(op, table=change(op.table), index=change(op.index))
    return op
