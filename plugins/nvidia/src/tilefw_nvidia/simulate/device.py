"""The PTX simulator as a device: PTX text of any compiler, parsed and decoded here, run by the simulator kit."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from tilefw.api import Artifact
from tilefw.api.sim import Decoders, SimulatedChip, SimulatorDevice
from tilefw_nvidia import isa
from tilefw_nvidia.chips import Chip

# Where generic addresses mean another space than global memory.
_WINDOWS = {"shared": (1 << 56, 1 << 32), "local": (2 << 56, 1 << 32), "param": (3 << 56, 1 << 32)}


def simulated(chip: Chip) -> SimulatedChip:
    """What the simulator kit must know of a chip."""
    return SimulatedChip(
        name=chip.target, wave_size=chip.lanes, pc_per_lane=True, max_threads=chip.threads_per_workgroup, max_grid=chip.max_grid,
        shared_bytes=chip.shared_bytes, local_bytes=chip.local_bytes, shared_banks=chip.banks,
        max_cluster=chip.workgroups_per_cluster, windows=_WINDOWS,
    )


class Simulator(SimulatorDevice):
    """`tilefw.api.Device` for PTX artifacts of one compute capability."""

    format: ClassVar = "ptx"

    def __init__(self, chip: Chip) -> None:
        super().__init__(simulated(chip))
        self.instructions = isa.instruction_set(chip)

    def decoders(self, artifact: Artifact, name: str) -> Decoders:
        module = isa.parse(artifact.text, name)
        isa.check_target(module, self.instructions)
        return {entry: partial(isa.program, module, entry, self.instructions) for entry in module.entries}
