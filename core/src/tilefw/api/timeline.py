"""Where the cycles and the room of a launch went: utilisation by resource, and what stood in each queue of the machine when.

Plain data, which any executor may give in its `LaunchReport`; core draws it without knowing the machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Utilisation:
    """`used` of the `available` amount of one resource, both in `unit`: `cycles` summed over the units that make the resource up,
    `bytes`, … `resource` is the chip's own word for it."""

    resource: str
    used: int
    available: int
    unit: str = "cycles"

    @property
    def share(self) -> float:
        """`used` over `available`, 0 to 1; 0 where nothing is available."""
        return self.used / self.available if self.available else 0.0


@dataclass(frozen=True, slots=True)
class Span:
    """One piece of work in a row: it begins in cycle `begin` and ends `length` (at least 1) cycles later.

    `busy` of these cycles the row's unit is at work: less than `length` for work that comes at intervals. `kind` is what spans
    of one colour share (`read`, `multiply`); `facts` are for whoever looks closely, by name."""

    name: str
    begin: int
    length: int
    busy: int
    kind: str = ""
    facts: Mapping[str, int | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Track:
    """One queue of the machine and what stood in it: spans by `begin`, none of which begins before the one before it has ended.

    Rows of one `group` (a unit, a chip) are shown together, in the order of the timeline."""

    name: str
    group: str
    spans: tuple[Span, ...]
    facts: Mapping[str, int | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Timeline:
    """A launch from cycle 0 to its end: `cycles` in all, rows that had something to do, and facts about the whole by name.

    `kinds` are all that spans of this target can have, in an order that is always the same: each has its colour by its place."""

    cycles: int
    rows: tuple[Track, ...]
    kinds: tuple[str, ...] = ()
    facts: Mapping[str, int | str] = field(default_factory=dict)
