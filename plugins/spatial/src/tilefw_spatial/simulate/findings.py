"""What the simulator finds wrong: one finding a site and kind, counted, with slice, stream, cycle and instruction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from tilefw.api import Finding, Place
from tilefw_spatial.machine import Machine
from tilefw_spatial.simulate.burst import Burst
from tilefw_spatial.text.parser import Listing
from tilefw_spatial.text.statement import statement

# A program wrong in every line still gives a report of readable length.
MAXIMUM = 200


@dataclass(frozen=True, slots=True)
class FaultKind:
    """A kind of finding: the check that it belongs to and its code."""

    check: str
    code: str


class Faults(Enum):
    """Every kind of finding of the machine."""

    OPERAND = FaultKind("hazards", "TFW0830")
    PRODUCERS = FaultKind("hazards", "TFW0831")
    BANK = FaultKind("hazards", "TFW0832")
    UNINITIALISED = FaultKind("initialisation", "TFW0833")
    QUEUE = FaultKind("hazards", "TFW0834")
    ROW = FaultKind("bounds", "TFW0835")
    WEIGHTS = FaultKind("hazards", "TFW0836")
    CYCLES = FaultKind("hazards", "TFW0839")
    LINK = FaultKind("hazards", "TFW0840")
    HOST = FaultKind("bounds", "TFW0801")


class Findings:
    """Collects findings of the checks that are on; `listing` has the lines of a program that was read from text."""

    def __init__(self, checks: frozenset[str], machine: Machine, listing: Listing | None = None) -> None:
        self._checks, self._machine, self._listing = checks, machine, listing
        self._sites: dict[tuple[object, ...], Finding] = {}
        self.dropped = 0

    @property
    def all(self) -> tuple[Finding, ...]:
        return tuple(self._sites.values())

    def add(
        self, fault: Faults, message: str, burst: Burst | None, cycle: int | None = None, *, other: Burst | None = None
    ) -> None:
        """Report an event of a burst; a further one of the same kind at the same instruction is counted."""
        kind = fault.value
        if kind.check not in self._checks:
            return
        site = (kind.code, burst.chip, burst.queue.name, burst.index) if burst else (kind.code, message)
        earlier = self._sites.get(site)
        if earlier is not None:
            self._sites[site] = replace(earlier, count=earlier.count + 1)
            return
        if len(self._sites) >= MAXIMUM:
            self.dropped += 1
            return
        when = "" if cycle is None else f" at cycle {cycle}"
        self._sites[site] = Finding(
            kind.check, kind.code, message + when, instruction="" if burst is None else self._text(burst),
            code_place=None if burst is None else location(burst), source=None if burst is None else self._line(burst),
            other=None if other is None else f"{location(other)}: {self._text(other)}",
        )

    def include(self, found: Iterable[Finding]) -> None:
        """Report what the program itself has checked."""
        for finding in found:
            if finding.check in self._checks:
                self._sites[finding.code, finding.message, finding.source] = finding

    def _line(self, burst: Burst) -> Place | None:
        """The line of the text that the program was read from."""
        return None if self._listing is None else self._listing.place(burst.chip, burst.queue.name, burst.index)

    def _text(self, burst: Burst) -> str:
        return statement(self._machine, burst.inst)


def location(burst: Burst) -> Place:
    """The location of an instruction: its queue, and its number there from 1 on."""
    return Place(f"{burst.queue.name}" + (f" of chip {burst.chip}" if burst.chip else ""), burst.index + 1)
