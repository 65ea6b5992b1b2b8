"""What is wrong in a cycle: one finding an instruction and kind, with slice, stream and cycle; how often is counted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tilefw.api import Finding, Place
from tilefw_spatial.tick.point import Point

# The code of each kind of finding with the check that it belongs to; the codes' explanations have more.
CHECKS = {
    "TFW0830": "hazards", "TFW0831": "hazards", "TFW0832": "hazards", "TFW0833": "initialisation", "TFW0834": "hazards",
    "TFW0835": "bounds", "TFW0836": "hazards", "TFW0839": "hazards", "TFW0840": "hazards", "TFW0801": "bounds",
}
OPERAND, PRODUCERS, BANK, UNINITIALISED, QUEUE, ROW, WEIGHTS, CYCLES, LINK, HOST = CHECKS


@dataclass(slots=True)
class TickFindings:
    """Collects findings; the same kind at the same instruction is one of them, counted by cycles."""

    _sites: dict[tuple[object, ...], Finding] = field(default_factory=dict)
    _seen: set[tuple[object, ...]] = field(default_factory=set)

    @property
    def all(self) -> tuple[Finding, ...]:
        return tuple(self._sites.values())

    def add(self, code: str, message: str, point: Point, cycle: int) -> None:
        """Report what happens to a point in a cycle (of superlane 0); every superlane sees it, one is enough."""
        self._note(code, f"{message} at cycle {cycle}", (code, point.chip, point.queue.name, point.inst_index), point)

    def whole(self, code: str, message: str) -> None:
        """Report what concerns the host's arrays or the whole program, and no instruction."""
        self._note(code, message, (code, message), None)

    def _note(self, code: str, message: str, site: tuple[object, ...], point: Point | None) -> None:
        event = (*site, point.time if point else 0)
        if event in self._seen:
            return
        self._seen.add(event)
        earlier = self._sites.get(site)
        if earlier is not None:
            self._sites[site] = replace(earlier, count=earlier.count + 1)
            return
        place = None
        if point is not None:
            place = Place(point.queue.name + (f" of chip {point.chip}" if point.chip else ""), point.inst_index + 1)
        self._sites[site] = Finding(CHECKS[code], code, message, instruction=point.inst.op if point else "", code_place=place)
