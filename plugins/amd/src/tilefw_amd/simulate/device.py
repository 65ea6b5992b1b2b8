"""The simulator as a device: code objects of any compiler, executed from their bytes by the simulator kit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from tilefw.api import Artifact, TargetInfo
from tilefw.api.device import Argument, LaunchOptions
from tilefw.api.sim import Decoders, LoadedProgram, SimulatedChip, SimulatorDevice
from tilefw_amd import abi, code_object
from tilefw_amd.assembler.assemble import assemble
from tilefw_amd.chips import Chip, chip_of
from tilefw_amd.isa.meaning.operand_values import APERTURE_BYTES, APERTURES
from tilefw_amd.isa.set import instruction_set
from tilefw_amd.simulate import arguments
from tilefw_amd.simulate.decode import KernelProgram, program


def simulated(chip: Chip) -> SimulatedChip:
    """What the simulator kit must know of the chip."""
    limits = chip.limits
    return SimulatedChip(
        name=chip.target, wave_size=limits["lanes"], pc_per_lane=False, max_threads=limits["threads_per_workgroup"],
        max_grid=chip.max_grid, max_threads_along=abi.GRID_THREADS, shared_bytes=limits["shared_bytes"],
        local_bytes=limits["scratch_bytes_per_thread"], shared_banks=limits["shared_banks"],
        windows={space: (base, APERTURE_BYTES) for space, base in APERTURES.items()},
    )


class Simulator(SimulatorDevice):
    """`tilefw.api.Device` for code objects."""

    format: ClassVar = "hsaco"
    assembled = True

    def __init__(self, target: TargetInfo) -> None:
        self.isa = instruction_set(chip_of(target))
        super().__init__(simulated(self.isa.chip))

    def decoders(self, artifact: Artifact, name: str) -> Decoders:
        binary = artifact.binary or assemble(self.isa, artifact.text, name)
        found = code_object.read(binary, name, self.isa.chip)
        return {kernel.name: partial(program, self.isa, found, kernel) for kernel in found.kernels}

    def argument_block(
        self, loaded: LoadedProgram, args: Sequence[Argument], grid: Sequence[int], block: tuple[int, int, int],
        options: LaunchOptions,
    ) -> bytes:
        """The kernel arguments with the hidden ones, and the dispatch packet."""
        given = super().argument_block(loaded, args, grid, block, options)
        assert isinstance(loaded.program, KernelProgram)
        return arguments.block(loaded.program.kernel, given, grid, block, options.dynamic_shared or 0)
