"""Axes that only ever come together made one: a block's number and the index in the block are a row of the array.

It is done where an access depends on two axes jointly (the last block ends with the array), and where they are one dense run in
every access. What was a mask over two axes is then one over one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tilefw_spatial.graph import Axis, Constant, Dot, Gather, Join, Reduce, Rename, Value
from tilefw_spatial.index_tables import check_size
from tilefw_spatial.lower.constant_tile import Array, ConstantTerm, Key
from tilefw_spatial.lower.programs import extent

LONGEST = 1 << 20  # indices of an axis that is fused without need


@dataclass(frozen=True, slots=True)
class FusedSums:
    """An access over axes: the terms of its offset, and those of its mask, a conjunction."""

    offsets: tuple[ConstantTerm, ...]
    masks: tuple[ConstantTerm, ...]

    @property
    def terms(self) -> tuple[ConstantTerm, ...]:
        return (*self.offsets, *self.masks)


@dataclass(frozen=True, slots=True)
class SumFusion:
    """For each axis that was fused, the new one and all that it is made of, the outermost first."""

    groups: Mapping[Axis, tuple[Axis, tuple[Axis, ...]]]

    def axes(self, axes: Iterable[Axis]) -> tuple[Axis, ...]:
        """Axes with groups of them replaced."""
        return tuple(dict.fromkeys(self.groups[axis][0] if axis in self.groups else axis for axis in axes))

    def parts(self, axis: Axis) -> tuple[Axis, ...]:
        """What an axis is made of."""
        return next((parts for fused, parts in self.groups.values() if fused is axis), (axis,))

    def term(self, term: ConstantTerm) -> ConstantTerm:
        """A term over the new axes; it comes to depend on all of a group that it depends on."""
        new = self.axes(axis for axis in term.keys if isinstance(axis, Axis))
        keys: list[Key] = [part for axis in new for part in self.parts(axis)]
        check_size(extent(axis for axis in keys if isinstance(axis, Axis)))
        data = np.broadcast_to(term.over(keys), [key.extent for key in keys if isinstance(key, Axis)])
        return ConstantTerm(data.reshape([axis.extent for axis in new]), new)


def found(values: Sequence[Value], stored: Sequence[Sequence[Axis]], accesses: Sequence[FusedSums]) -> SumFusion:
    """The fusion that the accesses ask for; `stored` are the axes of each store, `values` operands before users."""
    marks = _marks(values, stored)
    parent: dict[Axis, Axis] = {}

    def root(axis: Axis) -> Axis:
        while axis in parent:
            axis = parent[axis]
        return axis

    def unite(a: Axis, b: Axis) -> None:
        if root(a) is not root(b):
            parent[root(b)] = root(a)

    for access in accesses:
        for term in access.terms:
            for pair in _pairs(term.keys):
                if marks.get(pair[0]) is not None and marks.get(pair[0]) == marks.get(pair[1]):
                    unite(*pair)
    for pair in _dense(marks, accesses):
        unite(*pair)
    members: dict[Axis, list[Axis]] = {}
    for axis in marks:
        members.setdefault(root(axis), []).append(axis)
    groups: dict[Axis, tuple[Axis, tuple[Axis, ...]]] = {}
    for axes in members.values():
        if len(axes) > 1:
            parts = _ordered(axes, accesses)
            fused = Axis("·".join(axis.name for axis in parts), extent(parts))
            groups.update({axis: (fused, parts) for axis in parts})
    return SumFusion(groups)


def _pairs(keys: Sequence[Key]) -> list[tuple[Axis, Axis]]:
    axes = [key for key in keys if isinstance(key, Axis)]
    return [(a, b) for i, a in enumerate(axes) for b in axes[i + 1 :]]


def _marks(values: Sequence[Value], stored: Sequence[Sequence[Axis]]) -> dict[Axis, frozenset[int] | None]:
    """The occurrences of each axis; axes with the same occurrences may be fused. None: it must stay as it is."""
    occurrences: dict[Axis, set[int]] = {}
    pinned: set[Axis] = set()
    number = 0
    for value in values:
        bound: Sequence[Sequence[Axis]] = ()
        match value.op:
            case Constant():
                continue
            case Reduce(axes=axes, ordered=ordered):
                bound = (axes,)
                pinned.update(() if ordered is None else (ordered,))
            case Dot(contracted=contracted):
                bound = (contracted,)
            case Rename(old=old, new=new):
                pinned.update((*old, *new))
            case Gather(axis=axis):
                pinned.add(axis)
            case Join(axis=axis, parts=parts):
                pinned.update((axis, *parts))
        for axes in (value.axes, *bound):
            number += 1
            for axis in axes:
                occurrences.setdefault(axis, set()).add(number)
    for axes in stored:
        number += 1
        for axis in axes:
            occurrences.setdefault(axis, set()).add(number)
    return {axis: None if axis in pinned else frozenset(at) for axis, at in occurrences.items()}


def _dense(marks: Mapping[Axis, frozenset[int] | None], accesses: Sequence[FusedSums]) -> list[tuple[Axis, Axis]]:
    """Pairs of axes, outer and inner, of which every access makes one run."""
    together: dict[frozenset[int], list[Axis]] = {}
    for axis, at in marks.items():
        if at is not None:
            together.setdefault(at, []).append(axis)
    strides = [_strides(access) for access in accesses]
    found = []
    for axes in together.values():
        for outer in axes:
            for inner in axes:
                if outer is not inner and outer.extent * inner.extent <= LONGEST and _is_run(outer, inner, strides):
                    found.append((outer, inner))
    return found


def _strides(access: FusedSums) -> dict[Axis, int | None]:
    """For each axis of an access, how far apart its indices are; None where that is no one number, or not all are valid."""
    strides: dict[Axis, int | None] = {}
    for term in access.offsets:
        step = _stride(term.data) if len(term.keys) == 1 else None
        for key in term.keys:
            if isinstance(key, Axis):
                strides[key] = None if key in strides else step
    for term in access.masks:
        strides.update({key: None for key in term.keys if isinstance(key, Axis)})
    return strides


def _stride(data: Array) -> int | None:
    steps = np.diff(data)
    return int(steps[0]) if (steps == steps[0]).all() else None


def _is_run(outer: Axis, inner: Axis, strides: Sequence[Mapping[Axis, int | None]]) -> bool:
    seen = False
    for access in strides:
        if outer not in access and inner not in access:
            continue
        far, near = access.get(outer), access.get(inner)
        if far is None or near is None or far != near * inner.extent:
            return False
        seen = True
    return seen


def _ordered(axes: Sequence[Axis], accesses: Sequence[FusedSums]) -> tuple[Axis, ...]:
    """The axes with that first which moves the farthest, in the first access that has them all."""

    def reach(axis: Axis) -> float:
        for access in accesses:
            for term in access.offsets:
                if axis in term.keys:
                    position = term.keys.index(axis)
                    return float(np.median(np.abs(np.diff(term.data, axis=position))))  # rows may wrap around at the end
        return 0.0

    return tuple(sorted(axes, key=lambda axis: -reach(axis)))
