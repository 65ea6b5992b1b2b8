"""Findings of one launch: one per site, other site and kind, counted, with everything that leads back to the user's line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from tilefw.api.device import Finding
from tilefw.sim.floats import Array
from tilefw.sim.program import Instruction

# A kernel wrong in every line still gives a report of readable length.
MAXIMUM_FINDINGS = 200


class LaunchStopped(Exception):
    """The launch cannot go on; the finding that says why is already reported."""


class Reporter:
    """Collects findings. `locate` turns indices of lanes in the running frame into workgroup coordinates."""

    def __init__(self) -> None:
        self._sites: dict[tuple[Any, ...], Finding] = {}
        self.dropped = 0

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(self._sites.values())

    def add(
        self, check: str, code: str, message: str, instruction: Instruction | None, *, count: int = 1,
        where: tuple[tuple[int, int, int], int, int] | None = None, address: int | None = None, note: str | None = None,
        other: str | None = None, other_site: int | None = None, severity: Literal["error", "warning"] = "error",
    ) -> None:
        """Report `count` events at an instruction; `where` is (workgroup, wave, lane) of the first. `other` tells of the other side
        of a race, at the instruction `other_site`."""
        key = (check, code, -1 if instruction is None else instruction.index, other_site)
        known = self._sites.get(key)
        if known is not None:
            self._sites[key] = replace(known, count=known.count + count)
            return
        if len(self._sites) >= MAXIMUM_FINDINGS:
            self.dropped += 1
            return
        workgroup, wave, lane = where if where is not None else (None, None, None)
        self._sites[key] = Finding(
            check=check, code=code, message=message, instruction="" if instruction is None else instruction.text,
            code_place=None if instruction is None else instruction.code,
            source=None if instruction is None else instruction.source,
            workgroup=workgroup, wave=wave, lane=lane, address=address, count=count, note=note, other=other, severity=severity,
        )


def first_true(mask: Array) -> tuple[int, int, int]:
    """Index of the first true lane of a [a, b, lanes] mask."""
    a, b, lane = np.unravel_index(int(np.argmax(mask)), mask.shape)
    return int(a), int(b), int(lane)
