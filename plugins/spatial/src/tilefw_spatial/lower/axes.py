"""Which dims of tiles are one axis: corresponding dims of an operation's operands become one, unless some value has both."""

from __future__ import annotations

from collections.abc import Iterable

from tilefw_spatial.graph import Axis


class Axes:
    """Axes and what was found of them. Two axes that no value has together may be taken for one: they are bound variables."""

    def __init__(self) -> None:
        self._parent: dict[Axis, Axis] = {}
        self._beside: dict[Axis, set[Axis]] = {}

    def __getitem__(self, axis: Axis) -> Axis:
        """The axis that this one has become."""
        while (parent := self._parent.get(axis)) is not None:
            axis = parent
        return axis

    def all(self, axes: Iterable[Axis]) -> tuple[Axis, ...]:
        """Each as it has become, once."""
        return tuple(dict.fromkeys(self[axis] for axis in axes))

    def keep_apart(self, axes: Iterable[Axis]) -> None:
        """Some value, or access, has all of these: they stay apart."""
        roots = set(self.all(axes))
        for root in roots:
            self._beside.setdefault(root, set()).update(roots - {root})

    def unite(self, a: Axis, b: Axis) -> bool:
        """Make two axes one; False where something has both."""
        a, b = self[a], self[b]
        if a is b:
            return True
        assert a.extent == b.extent
        beside = {self[axis] for axis in self._beside.get(a, ())}
        if b in beside:
            return False
        self._parent[b] = a
        for axis in (others := {self[axis] for axis in self._beside.pop(b, ())}):
            self._beside.setdefault(axis, set()).add(a)
        self._beside[a] = beside | others
        return True
