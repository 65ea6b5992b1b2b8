"""The PTX simulator as a device: PTX text of any compiler, parsed and decoded here, run by the simulator kit."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from tilefw.api import Artifact, TargetInfo
from tilefw.api.sim import Chip, Decoders, SimulatorDevice
from tilefw_nvidia import isa

# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": grid, local memory per thread, banks.
_MAX_GRID = (2**31 - 1, 65535, 65535)
_LOCAL_BYTES = 512 * 1024
_BANKS = 32


def chip(target: TargetInfo) -> Chip:
    """What the simulator kit must know of a compute capability."""
    limits = target.limits
    return Chip(
        name=target.name, wave_size=limits["lanes"], pc_per_lane=True,
        max_threads=limits["threads_per_workgroup"], max_grid=_MAX_GRID,
        shared_bytes=limits["shared_bytes"], local_bytes=_LOCAL_BYTES, shared_banks=_BANKS,
    )


class Simulator(SimulatorDevice):
    """`tilefw.api.Device` for PTX artifacts of one compute capability."""

    format: ClassVar = "ptx"

    def __init__(self, target: TargetInfo) -> None:
        super().__init__(chip(target))

    def decoders(self, artifact: Artifact, name: str) -> Decoders:
        module = isa.parse(artifact.text, name)
        return {entry: partial(isa.program, module, entry) for entry in module.entries}
