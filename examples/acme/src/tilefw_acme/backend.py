"""The ACME backend: the SIMT kit to machine code, physical registers, machine text as the artifact, the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilefw.api import CompileOptions, Device
from tilefw.api.simt import SimtBackend, assign_registers

if TYPE_CHECKING:
    from tilefw.api.ir import ModulePass
    from tilefw.api.simt import LaneChip
    from tilefw.api.timing import ChipFigures, ChipTiming


class AcmeBackend(SimtBackend):
    """The chips have no file format of their own: text of machine functions with physical registers is what they load."""

    def chip(self, options: CompileOptions) -> LaneChip:
        from tilefw_acme.lower import AcmeLanes

        return AcmeLanes(self.target)

    def machine_passes(self, options: CompileOptions) -> Sequence[ModulePass]:
        from tilefw_acme.isa import table

        return (assign_registers(table(self.target), verify=options.verify),)

    def timing(self, figures: ChipFigures | None = None) -> ChipTiming:
        from tilefw.api.timing import packaged_figures
        from tilefw_acme.timing import chip_timing

        return chip_timing(self.target, figures or packaged_figures("tilefw_acme", "figures", self.target.name))

    def simulator(self) -> Device:
        from tilefw_acme.simulate import Simulator

        return Simulator(self.target)
