"""Keys of tables for attributes: xDSL's hash all their parts anew each time, a vector's type in ten calls."""

from __future__ import annotations

from xdsl.ir import Attribute


class AttributeKeys:
    """A number for each attribute, the same for equal ones. Each object is hashed once, and held, so that its id stays its own."""

    __slots__ = ("_first", "_known")

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, Attribute]] = {}
        self._first: dict[Attribute, int] = {}

    def of(self, attribute: Attribute) -> int:
        found = self._known.get(id(attribute))
        if found is None:
            number = self._first.setdefault(attribute, len(self._first))
            found = self._known[id(attribute)] = (number, attribute)
        return found[0]
