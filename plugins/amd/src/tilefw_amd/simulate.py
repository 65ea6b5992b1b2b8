"""The simulator of gfx942 as a device: code objects of any compiler, executed from their bytes by the simulator kit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from tilefw.api import Artifact, TargetInfo
from tilefw.api.device import Argument, LaunchOptions
from tilefw.api.sim import Chip, Decoders, LoadedProgram, SimulatorDevice
from tilefw_amd import code_object, kernel_arguments
from tilefw_amd.assemble import assemble
from tilefw_amd.decode_kernel import KernelProgram, program
from tilefw_amd.isa.operand_values import APERTURE_BYTES, APERTURES

# HIP's device properties of gfx942, `maxGridSize`.
_MAX_GRID = (2**31 - 1, 65536, 65536)


def chip(target: TargetInfo) -> Chip:
    """What the simulator kit must know of the chip."""
    limits = target.limits
    return Chip(
        name=target.name, wave_size=limits["lanes"], pc_per_lane=False, max_threads=limits["threads_per_workgroup"],
        max_grid=_MAX_GRID, shared_bytes=limits["shared_bytes"], local_bytes=limits["scratch_bytes_per_thread"],
        shared_banks=limits["shared_banks"], windows={space: (base, APERTURE_BYTES) for space, base in APERTURES.items()},
    )


class Simulator(SimulatorDevice):
    """`tilefw.api.Device` for code objects."""

    format: ClassVar = "hsaco"
    assembled = True

    def __init__(self, target: TargetInfo) -> None:
        super().__init__(chip(target))
        self.target = target

    def decoders(self, artifact: Artifact, name: str) -> Decoders:
        binary = artifact.binary or assemble(artifact.text, name)
        found = code_object.read(binary, name, self.target.chip)
        return {kernel.name: partial(program, found, kernel) for kernel in found.kernels}

    def argument_block(
        self, loaded: LoadedProgram, args: Sequence[Argument], grid: Sequence[int], block: tuple[int, int, int],
        options: LaunchOptions,
    ) -> bytes:
        """The kernel arguments with the hidden ones, and the dispatch packet."""
        given = super().argument_block(loaded, args, grid, block, options)
        assert isinstance(loaded.program, KernelProgram)
        return kernel_arguments.block(loaded.program.kernel, given, grid, block, options.dynamic_shared or 0)
