"""The Rook backend: the SIMT kit to machine code, then schedules, registers and spills, and masks; machine text is the artifact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilefw.api import CompileOptions, Device
from tilefw.api.simt import SimtBackend

if TYPE_CHECKING:
    from tilefw.api.ir import ModulePass
    from tilefw.api.simt import LaneChip


class RookBackend(SimtBackend):
    """The R1 has no file format of its own: text of machine functions on physical registers is what it loads."""

    def chip(self, options: CompileOptions) -> LaneChip:
        from tilefw_rook.lower import RookLanes

        return RookLanes(options.num_warps)

    def machine_passes(self, options: CompileOptions) -> Sequence[ModulePass]:
        from tilefw.api.machine import ScheduleInstructions, assign_registers
        from tilefw_rook.isa import CLASSES, table
        from tilefw_rook.masks import MaskPredicates
        from tilefw_rook.spill import MODEL

        steps = {cls.name: (cls.count or 0,) for cls in CLASSES}
        return (
            ScheduleInstructions(table(), steps, "disjoint" in options.facts, options.verify),
            assign_registers(table(), spills=MODEL, verify=options.verify),
            MaskPredicates(),
        )

    def simulator(self) -> Device:
        from tilefw_rook.simulate import Simulator

        return Simulator()
