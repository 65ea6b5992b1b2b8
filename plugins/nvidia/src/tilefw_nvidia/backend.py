"""The NVIDIA backend: tile IR through the SIMT kit to PTX, ptxas where there is one, the PTX simulator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilefw.api import Artifact, CompileOptions, Device
from tilefw.api.simt import LaneChip, SimtBackend

if TYPE_CHECKING:
    from tilefw.api.machine import Function


class NvidiaBackend(SimtBackend):
    """One compute capability."""

    format = "ptx"

    def chip(self, options: CompileOptions) -> LaneChip:
        from tilefw_nvidia.chip import PtxChip

        return PtxChip(options.enable_fp_fusion)

    def emit_functions(self, functions: Sequence[Function], options: CompileOptions) -> str:
        from tilefw_nvidia.emit import emit

        return emit(functions, self.target.chip, options.maxnreg)

    def assemble(self, artifact: Artifact, options: CompileOptions) -> Artifact:
        from tilefw_nvidia.assemble import assemble

        return assemble(artifact, self.target, ours=True)

    def parse(self, data: str | bytes, name: str) -> Artifact:
        from tilefw_nvidia.foreign import artifact

        return artifact(data, name, self.target.name)

    def simulator(self) -> Device:
        from tilefw_nvidia.simulate import Simulator

        return Simulator(self.target)

    toolchain_variables = ("PATH", "TILEFW_PTXAS", "CUDA_HOME", "CUDA_PATH")

    def toolchain_digest(self) -> str:
        from tilefw_nvidia.assemble import version

        return f"ptxas {version() or 'absent'}"
