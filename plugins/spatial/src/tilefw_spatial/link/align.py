"""Axes of successive launches brought together: where one launch has rows and columns another has runs of elements.

A layout has each axis either along lanes or in time. So an axis that another launch sees as two is divided, and axes of two
launches that are the same index of one array become one axis, along which work of both can go on in one stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tilefw_spatial.arrange.access import AffineAccess
from tilefw_spatial.arrange.normal import Fetch, NormalTarget, Reindex, operands
from tilefw_spatial.arrange.reindexing import AxisIndex
from tilefw_spatial.arrange.split import divided
from tilefw_spatial.graph import Axis, Dot, Elementwise, Reduce, Value
from tilefw_spatial.postorder import postorder

_MOST = 200  # divisions of axes


def aligned(targets: list[NormalTarget]) -> list[NormalTarget]:
    """The targets with axes divided and made one, as far as that goes."""
    fixed: set[Axis] = set()  # whose order is a kernel's own
    for _ in range(_MOST):
        found = next(_divisions(targets, fixed), None)
        if found is None:
            break
        axis, inner = found
        parts = (Axis(f"{axis.name}.outer", axis.extent // inner), Axis(f"{axis.name}.inner", inner))
        made = divided(targets, axis, parts)
        fixed |= {axis} if made is None else set()
        targets = targets if made is None else made
    return _united(targets)


def _values(targets: list[NormalTarget]) -> list[Value]:
    return postorder((target.value for target in targets), lambda value: operands(value.op))


# Axes that are divided -------------------------------------------------------------------------------------------------------


def _divisions(targets: list[NormalTarget], fixed: set[Axis]) -> Iterator[tuple[Axis, int]]:
    """Axes with the extent of the inner part that they are to have."""
    for value in _values(targets):
        if not isinstance(value.op, Reindex):
            continue
        for old, index in value.op.reindexing.items():
            if len(index.axes) > 1 and old not in fixed and (inner := _inner_of_old(old, index)):
                yield old, inner
        for new in dict.fromkeys(axis for index in value.op.reindexing.values() for axis in index.axes):
            if new not in fixed and (inner := _inner_of_new(new, value.op)):
                yield new, inner


def _inner_of_old(old: Axis, index: AxisIndex) -> int:
    """The extent at which an old axis falls into two that depend on different new axes; 0 if there is none."""
    table = index.table.reshape([axis.extent for axis in index.axes])
    steps = sorted({step for n in range(table.ndim) if (step := _step(table, n)) > 1})
    for step in steps:
        if old.extent % step == 0 and not _depends(table // step) & _depends(table % step):
            return step
    return 0


def _inner_of_new(new: Axis, op: Reindex) -> int:
    """The extent at which a new axis falls into two, of which different old axes depend; 0 if there is none."""
    tables = [index.table for index in op.reindexing.values() if index.axes == (new,)]
    if len(tables) < 2:
        return 0
    for table in tables:
        changes = np.flatnonzero(np.diff(table))
        inner = int(changes[0]) + 1 if changes.size else 0
        if 1 < inner < new.extent and new.extent % inner == 0 and all(_by_part(other, inner) for other in tables):
            return inner
    return 0


def _by_part(table: NDArray[np.int64], inner: int) -> bool:
    """Whether a table depends on the outer part alone or on the inner part alone."""
    parts = table.reshape(-1, inner)
    return bool((parts == parts[:, :1]).all() or (parts == parts[:1]).all())


def _step(table: NDArray[np.int64], axis: int) -> int:
    """The first difference along an axis."""
    line = np.moveaxis(table, axis, 0).reshape(table.shape[axis], -1)
    return int(line[1, 0] - line[0, 0]) if len(line) > 1 else 0


def _depends(table: NDArray[np.int64]) -> set[int]:
    """The dims along which a table changes."""
    return {n for n in range(table.ndim) if (table != table.take([0], axis=n)).any()}


# Axes that become one --------------------------------------------------------------------------------------------------------


def _united(targets: list[NormalTarget]) -> list[NormalTarget]:
    values = _values(targets)
    domains = [set(_domain(value)) for value in values]
    named: dict[Axis, Axis] = {}

    def root(axis: Axis) -> Axis:
        while axis in named:
            axis = named[axis]
        return axis

    for value in values:
        if not isinstance(value.op, Reindex):
            continue
        for old, index in value.op.reindexing.items():
            if len(index.axes) != 1 or not _is_identity(old, index):
                continue
            a, b = root(old), root(index.axes[0])
            if a is b or any(a in domain and b in domain for domain in domains):
                continue
            named[b] = a
            domains = [domain - {b} | {a} if b in domain else domain for domain in domains]
    return _Renaming({axis: root(axis) for axis in named}).targets(targets) if named else targets


def _is_identity(old: Axis, index: AxisIndex) -> bool:
    return old.extent == index.axes[0].extent and bool((index.table.reshape(-1) == np.arange(old.extent)).all())


def _domain(value: Value) -> tuple[Axis, ...]:
    """The axes that something is over at one time, which stay apart."""
    if isinstance(value.op, Reindex):
        return value.axes
    bound = value.op.contracted if isinstance(value.op, Dot) else value.op.axes if isinstance(value.op, Reduce) else ()
    return (*value.axes, *bound, *(axis for part in operands(value.op) for axis in part.axes))


class _Renaming:
    """Values under other names of axes."""

    def __init__(self, named: dict[Axis, Axis]) -> None:
        self._named = named
        self._done: dict[Value, Value] = {}

    def targets(self, targets: list[NormalTarget]) -> list[NormalTarget]:
        return [self._target(target) for target in targets]

    def _target(self, target: NormalTarget) -> NormalTarget:
        for value in postorder([target.value], lambda user: operands(user.op), self._done):
            self._done[value] = self._value(value)
        return replace(target, value=self._done[target.value], access=self._access(target.access))

    def _axes(self, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
        return tuple(self._named.get(axis, axis) for axis in axes)

    def _access(self, access: AffineAccess) -> AffineAccess:
        return replace(access, terms=tuple(replace(term, axes=self._axes(term.axes)) for term in access.terms))

    def _value(self, value: Value) -> Value:
        axes, op = self._axes(value.axes), value.op
        match op:
            case Reindex():
                return self._reindexed(op, value)
            case Fetch():
                op = Fetch(self._access(op.access), op.fill)
            case Dot():
                op = replace(op, a=self._done[op.a], b=self._done[op.b], contracted=self._axes(op.contracted))
            case Reduce():
                ordered = None if op.ordered is None else self._named.get(op.ordered, op.ordered)
                initial = None if op.initial is None else self._done[op.initial]
                op = replace(op, operand=self._done[op.operand], axes=self._axes(op.axes), ordered=ordered, initial=initial)
            case Elementwise():
                op = replace(op, operands=tuple(self._done[part] for part in op.operands))
        return Value(op, axes, value.dtype, value.place)

    def _reindexed(self, op: Reindex, value: Value) -> Value:
        operand = self._done[op.operand]
        found: dict[Axis, AxisIndex] = {}
        for old, index in op.reindexing.items():
            own, axes = self._named.get(old, old), self._axes(index.axes)
            if axes != (own,) or not _is_identity(old, index):
                found[own] = AxisIndex(axes, index.table)
        axes = self._axes(value.axes)
        if not found and set(axes) == set(operand.axes):
            return operand
        return Value(Reindex(operand, found), axes, value.dtype, value.place)
