"""Descriptors of engines: one that the launch has written is used only by workgroups that have acquired it since (TFW0818)."""

from __future__ import annotations

from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.checks.check import Check
from tilefw.sim.engine.state import LaunchState
from tilefw.sim.program import Instruction
from tilefw.sim.report import first_true

CODE = "TFW0818"


class Descriptors(Check):
    """Counts how often each was written, and up to which of these each workgroup has acquired it."""

    name = "races"

    def __init__(self, launch: LaunchState) -> None:
        super().__init__(launch)
        self._written: dict[int, tuple[int, Instruction]] = {}
        self._acquired: dict[tuple[int, int], int] = {}

    def descriptor(self, lanes: NumpyLanes, places: set[tuple[int, int]], event: str) -> None:
        if event == "written":
            for address in sorted({address for _, address in places}):
                self._written[address] = self._written.get(address, (0, lanes.instruction))[0] + 1, lanes.instruction
            return
        for slot, address in sorted(places):
            if address not in self._written:
                continue
            times, instruction = self._written[address]
            key = int(lanes.batch.workgroups[slot]), address
            if event == "acquired":
                self._acquired[key] = times
            elif self._acquired.get(key, 0) < times:
                self._report(lanes, address, instruction)

    def _report(self, lanes: NumpyLanes, address: int, written: Instruction) -> None:
        code = f" ({written.code})" if written.code else ""
        self.launch.diagnostics.reporter.add(
            self.name, CODE, "an engine uses a descriptor that was written, and that its workgroup has not acquired since",
            lanes.instruction, where=lanes.locate(*first_true(lanes.acting_lanes())), address=address,
            other=f"`{written.text}`{code}", other_site=written.index,
            note="a fence that acquires the descriptor must be between the two",
        )
