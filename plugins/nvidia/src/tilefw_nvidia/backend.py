"""The NVIDIA backend: tile IR through the SIMT kit to PTX, ptxas where there is one, the PTX simulator, and cards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilefw.api import Artifact, CompileOptions, Device, Requirement, TargetInfo
from tilefw.api.simt import LaneChip, SimtBackend
from tilefw_nvidia.chips import chip_of
from tilefw_nvidia.chips.cost_rates import COST_RATES

if TYPE_CHECKING:
    from tilefw.api.ir import ModulePass
    from tilefw.api.machine import Function
    from tilefw.api.timing import ChipFigures, ChipTiming


class NvidiaBackend(SimtBackend):
    """One chip's compiler and simulator."""

    format = "ptx"
    cost_rates = COST_RATES

    def __init__(self, target: TargetInfo) -> None:
        super().__init__(target)
        self.described = chip_of(target)

    def chip(self, options: CompileOptions) -> LaneChip:
        from tilefw_nvidia.select.lanes import PtxChip

        return PtxChip(self.described, options.enable_fp_fusion, deals=options.maxnreg is None)

    def machine_passes(self, options: CompileOptions) -> Sequence[ModulePass]:
        from tilefw_nvidia.select.registers_needed import rematerialise
        from tilefw_nvidia.select.warp_reductions import ReduceWarps

        return (ReduceWarps(self.described), rematerialise(self.described, options.maxnreg))

    def emit_functions(self, functions: Sequence[Function], options: CompileOptions) -> str:
        from tilefw_nvidia.emit import emit

        return emit(functions, self.described, options.maxnreg)

    def assemble(self, artifact: Artifact, options: CompileOptions) -> Artifact:
        from tilefw_nvidia.ptxas import assemble

        return assemble(artifact, self.described, ours=True)

    def parse(self, data: str | bytes, name: str) -> Artifact:
        from tilefw_nvidia.load import artifact

        return artifact(data, name, self.described)

    def simulator(self) -> Device:
        from tilefw_nvidia.simulate.device import Simulator

        return Simulator(self.described)

    def device(self, number: int | None = None) -> Device:
        from tilefw_nvidia.device.card import card

        return card(self.target, number)

    def device_requirements(self) -> Sequence[Requirement]:
        from tilefw_nvidia.device.card import CudaSearch

        return tuple(CudaSearch(self.target).requirements())

    def timing(self, figures: ChipFigures | None = None) -> ChipTiming:
        from tilefw.api.timing import packaged_figures
        from tilefw_nvidia.timing.model import chip_timing

        chip = self.described
        return chip_timing(chip, figures or packaged_figures("tilefw_nvidia.timing", chip.name, self.target.name))

    toolchain_variables = ("PATH", "TILEFW_PTXAS", "CUDA_HOME", "CUDA_PATH")

    def toolchain_digest(self) -> str:
        from tilefw_nvidia.ptxas import version

        return f"ptxas {version() or 'absent'}"
