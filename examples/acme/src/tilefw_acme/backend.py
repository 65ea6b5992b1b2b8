"""The ACME backend: the SIMT kit to machine code, physical registers, machine text as the artifact, the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilefw.api import CompileOptions, Device
from tilefw.api.simt import SimtBackend, assign_registers

if TYPE_CHECKING:
    from tilefw.api.ir import ModulePass
    from tilefw.api.simt import LaneChip


class AcmeBackend(SimtBackend):
    """The X1 has no file format of its own: text of machine functions with physical registers is what it loads."""

    def chip(self, options: CompileOptions) -> LaneChip:
        from tilefw_acme.lower import X1Lanes

        return X1Lanes()

    def machine_passes(self, options: CompileOptions) -> Sequence[ModulePass]:
        from tilefw_acme.isa import TABLE

        return (assign_registers(TABLE),)

    def simulator(self) -> Device:
        from tilefw_acme.simulate import Simulator

        return Simulator(self.target)
