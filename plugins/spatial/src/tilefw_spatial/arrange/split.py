"""An axis as two, of which the inner one fits the lanes: what is reduced over a long axis can then be shared among lanes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tilefw.api import InternalError
from tilefw_spatial.arrange.normal import Fetch, NormalTarget, Reindex, Relayout, constant, elementwise, operands
from tilefw_spatial.arrange.reindexing import AxisIndex, lean
from tilefw_spatial.graph import Axis, Constant, Dot, Elementwise, Reduce, Value
from tilefw_spatial.postorder import postorder


@dataclass(frozen=True, slots=True)
class SplitParts:
    """Targets in which the axis is `outer` (if it was longer than the lanes' part) and `lane`."""

    targets: list[NormalTarget]
    lane: Axis


def shared_lanes(lanes: int) -> int:
    """How many of a vector's lanes share one reduction: the largest power of two that divides their number."""
    return lanes & -lanes


def split(targets: list[NormalTarget], axis: Axis, width: int) -> SplitParts | None:
    """The targets with `axis` split; None where its extent is no multiple of `width`, or its order is the kernel's own."""
    if axis.extent % width:
        return None
    lane = Axis(f"{axis.name}.lane", width)
    outer = Axis(f"{axis.name}.outer", axis.extent // width)
    splitter = _Splitter(axis, (outer, lane) if outer.extent > 1 else (lane,))
    made = [splitter.target(target) for target in targets]
    return None if splitter.ordered else SplitParts(made, lane)


def divided(targets: list[NormalTarget], axis: Axis, parts: tuple[Axis, ...]) -> list[NormalTarget] | None:
    """The targets with an axis as `parts`, outermost first, everywhere; None where its order is the kernel's own."""
    splitter = _Divider(axis, parts)
    made = [splitter.target(target) for target in targets]
    return None if splitter.ordered else made


class _Splitter:
    def __init__(self, axis: Axis, parts: tuple[Axis, ...]) -> None:
        self._axis, self._parts = axis, parts
        table = np.arange(axis.extent, dtype=np.int64).reshape([part.extent for part in parts])
        self._whole = {axis: AxisIndex(parts, table)}
        self._done: dict[Value, Value] = {}
        self.ordered = False

    def target(self, target: NormalTarget) -> NormalTarget:
        access = target.access.renamed(self._whole)
        return replace(target, value=self._made(target.value), access=access)

    def _made(self, value: Value) -> Value:
        for current in postorder([value], lambda user: operands(user.op), self._done):
            self._done[current] = self._value(current)
        return self._done[value]

    def _value(self, value: Value) -> Value:
        axes = self._axes(value.axes)
        match value.op:
            case Fetch(access=access, fill=fill):
                split_access = access.renamed(self._whole)
                return Value(Fetch(split_access, fill), axes, value.dtype, value.place)
            case Constant(data=data):
                return constant(data.reshape([axis.extent for axis in axes]), axes, value.dtype)
            case Elementwise() as op:
                op = replace(op, operands=tuple(self._done[part] for part in op.operands))
            case Dot() as op:
                op = replace(op, a=self._done[op.a], b=self._done[op.b], contracted=self._axes(op.contracted))
            case Reindex(operand=operand, reindexing=reindexing):
                op = Reindex(self._done[operand], self._reindexing(reindexing))
            case Relayout(operand=operand):
                op = Relayout(self._done[operand])
            case Reduce() as op:
                return self._reduce(op, value, axes)
            case op:
                raise InternalError(f"a normal value that is made by {type(op).__name__}")
        return Value(op, axes, value.dtype, value.place)

    def _axes(self, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
        return tuple(part for axis in axes for part in (self._parts if axis is self._axis else (axis,)))

    def _reindexing(self, reindexing: Mapping[Axis, AxisIndex]) -> dict[Axis, AxisIndex]:
        found: dict[Axis, AxisIndex] = {}
        for old, axis_index in reindexing.items():
            axes = self._axes(axis_index.axes)
            table = axis_index.table.reshape([axis.extent for axis in axes])
            if old is not self._axis:
                found[old] = AxisIndex(axes, table)
                continue
            inner = 1
            for part in reversed(self._parts):
                found[part] = AxisIndex(axes, table // inner % part.extent)
                inner *= part.extent
        return found

    def _reduce(self, op: Reduce, value: Value, axes: tuple[Axis, ...]) -> Value:
        """In time over all but the lanes' part, then over that."""
        operand = self._done[op.operand]
        initial = None if op.initial is None else self._done[op.initial]
        if self._axis not in op.axes:
            return Value(replace(op, operand=operand, initial=initial), axes, value.dtype, value.place)
        self.ordered = self.ordered or op.ordered is not None
        lane = self._parts[-1]
        rest = tuple(axis for axis in self._axes(op.axes) if axis is not lane)
        if rest:
            operand = Value(Reduce(op.kind, operand, rest), (*axes, lane), value.dtype, value.place)
        result = Value(Reduce(op.kind, operand, (lane,)), axes, value.dtype, value.place)
        return result if initial is None else elementwise(op.kind.value, value.dtype, initial, result, place=value.place)


class _Divider(_Splitter):
    """Reductions go on as they were, over all parts together; a table that comes to depend on one part alone is over that part."""

    def _reindexing(self, reindexing: Mapping[Axis, AxisIndex]) -> dict[Axis, AxisIndex]:
        return {old: lean(index.axes, index.table) for old, index in super()._reindexing(reindexing).items()}

    def _reduce(self, op: Reduce, value: Value, axes: tuple[Axis, ...]) -> Value:
        initial = None if op.initial is None else self._done[op.initial]
        self.ordered = self.ordered or op.ordered is self._axis
        made = replace(op, operand=self._done[op.operand], axes=self._axes(op.axes), initial=initial)
        return Value(made, axes, value.dtype, value.place)
