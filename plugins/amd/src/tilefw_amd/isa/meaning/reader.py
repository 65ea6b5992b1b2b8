"""What one instruction reads, as it is collected for the simulator kit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilefw_amd.isa.model import MCInst
from tilefw_amd.isa.row import Mode, Row


def elementwise(row: Row) -> bool:
    """Whether the row's function is the meaning for one element of packed operands."""
    types = [o.type for o in row.operands if o.role in ("source", "destination")]
    return bool(types) and all(t is not None and t.packed for t in types)


class SourceCollector:
    """What one instruction reads, as it is collected: `sources` are the kit's, each register once."""

    def __init__(self, inst: MCInst, mode: Mode) -> None:
        self.form, self.row, self.mode = inst.form, inst.form.row, mode
        self.elementwise = elementwise(self.row)
        self.modifiers: Mapping[str, Any] = {**self.form.defaults, **inst.modifiers}
        self.sources: list[Any] = []
        self._places: dict[Any, int] = {}

    def read(self, *wanted: Any) -> tuple[int, ...]:
        """Places among the sources where these are read."""
        found: list[int] = []
        for source in wanted:
            place = self._places.get(source)
            if place is None:
                place = self._places[source] = len(self.sources)
                self.sources.append(source)
            found.append(place)
        return tuple(found)

    def read_apart(self, *wanted: Any) -> tuple[int, ...]:
        """Places of these as sources of their own, whoever else reads them."""
        first = len(self.sources)
        self.sources += wanted
        return tuple(range(first, first + len(wanted)))
