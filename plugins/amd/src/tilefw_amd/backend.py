"""The AMD backend: tile IR through the SIMT kit to code objects, which are read, written, simulated and run on cards as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from tilefw.api import Artifact, CompileOptions, Device, Requirement, Resources
from tilefw.api.simt import LaneChip, SimtBackend
from tilefw_amd.chips.cost_rates import COST_RATES

if TYPE_CHECKING:
    from tilefw.api.ir import ModuleOp, ModulePass
    from tilefw.api.machine import Function
    from tilefw.api.timing import ChipFigures, ChipTiming
    from tilefw_amd.isa.set import InstructionSet


class AmdBackend(SimtBackend):
    """One chip, that of the target."""

    format = "hsaco"
    cost_rates = COST_RATES
    binary_suffix: ClassVar[str] = ".hsaco"

    @property
    def isa(self) -> InstructionSet:
        """The instruction set of the target's chip."""
        from tilefw_amd.chips import chip_of
        from tilefw_amd.isa.set import instruction_set

        return instruction_set(chip_of(self.target))

    def chip(self, options: CompileOptions) -> LaneChip:
        from tilefw_amd.options import chosen
        from tilefw_amd.select.lanes import AmdLanes

        own = chosen(options)
        disjoint = "disjoint" in options.facts
        return AmdLanes(self.isa, options.enable_fp_fusion, disjoint, own["xcd_chunk"], own["matrix_instr_nonkdim"])

    def machine_passes(self, options: CompileOptions) -> Sequence[ModulePass]:
        from tilefw_amd.pipeline import machine_passes

        return machine_passes(self.isa.chip, options)

    def emit(self, module: ModuleOp, options: CompileOptions) -> Artifact:
        artifact = super().emit(module, options)
        if not artifact.resources.scratch_bytes:
            return artifact
        from tilefw_amd.resources import spilling

        return replace(artifact, remarks=(*artifact.remarks, spilling(artifact.resources)))

    def emit_functions(self, functions: Sequence[Function], options: CompileOptions) -> str:
        from tilefw_amd.emit import emit

        return emit(functions, self.isa)

    def timing(self, figures: ChipFigures | None = None) -> ChipTiming:
        from tilefw.api.timing import packaged_figures
        from tilefw_amd.timing.model import chip_timing

        return chip_timing(self.isa, figures or packaged_figures("tilefw_amd.timing", self.isa.chip.name, self.target.name))

    def resources(self, functions: Sequence[Function]) -> Resources:
        from tilefw_amd.resources import resources

        return resources(self.isa, functions)

    def assemble(self, artifact: Artifact, options: CompileOptions) -> Artifact:
        from tilefw_amd.assembler.assemble import assemble

        return replace(artifact, binary=assemble(self.isa, artifact.text, f"{artifact.target}.s"))

    def parse(self, data: str | bytes, name: str) -> Artifact:
        from tilefw_amd.load import artifact

        return artifact(self.isa, data, name)

    def to_binary(self, text: str, name: str) -> bytes:
        from tilefw_amd.assembler.assemble import assemble

        return assemble(self.isa, text, name)

    def to_text(self, data: bytes, name: str) -> str:
        from tilefw_amd.assembler.disassemble import disassemble

        return disassemble(self.isa, data, name)

    def simulator(self) -> Device:
        from tilefw_amd.simulate.device import Simulator

        return Simulator(self.target)

    def device(self, number: int | None = None) -> Device:
        from tilefw_amd.device.card import card

        return card(self.target, number)

    def device_requirements(self) -> Sequence[Requirement]:
        from tilefw_amd.device.card import HipSearch

        return tuple(HipSearch(self.target).requirements())
