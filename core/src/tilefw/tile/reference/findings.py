"""What the reference interpreter reports: one finding a check and op, with a count and the first element it saw."""

from __future__ import annotations

from dataclasses import replace

from xdsl.ir import Operation

from tilefw.api.checks import PROGRAM_CHECKS
from tilefw.api.device import Finding
from tilefw.tile.text.source_location import place_of

CODES = {
    "bounds": "TFW0441", "alignment": "TFW0442", "initialisation": "TFW0443", "races": "TFW0444", "overflow": "TFW0445",
    "budget": "TFW0446", "readonly": "TFW0447", "undecided": "TFW0448", "loop": "TFW0449",
    "pending": "TFW0450", "phase": "TFW0451", "division_by_zero": "TFW0452", "same_address_stores": "TFW0453",
    "undefined_elements": "TFW0454", "nonfinite": "TFW0455", "trap": "TFW0812", "deadlock": "TFW0870",
}


_OF_DEVICES = frozenset({"bounds", "alignment", "initialisation", "races"})


class FindingCollector:
    """Collects findings; `checks` are those that the caller wants (bounds of the language itself are always reported), None all but
    those of programs."""

    def __init__(self, checks: frozenset[str] | None = None) -> None:
        self._off = PROGRAM_CHECKS if checks is None else (PROGRAM_CHECKS | _OF_DEVICES) - checks
        self._found: dict[tuple[str, int, int | None], Finding] = {}

    def wants(self, check: str) -> bool:
        """Whether a check is on."""
        return check not in self._off

    def add(
        self, check: str, op: Operation, message: str, *, count: int = 1, address: int | None = None, note: str | None = None,
        program: tuple[int, int, int] | None = None, other: str | None = None, warning: bool = False,
    ) -> None:
        """Report `count` elements at which `op` fails a check."""
        if check in self._off:
            return
        key = (check, id(op), address if check == "deadlock" else None)
        known = self._found.get(key)
        if known is not None:
            self._found[key] = replace(known, count=known.count + count)
            return
        place = place_of(op)
        self._found[key] = Finding(
            check, CODES[check], message, instruction=op.name, source=place, workgroup=program, address=address, count=count,
            note=note, other=other, severity="warning" if warning else "error",
        )

    @property
    def found(self) -> tuple[Finding, ...]:
        """All of them, in the order in which they were first seen."""
        return tuple(self._found.values())
