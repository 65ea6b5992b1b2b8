"""The PTX simulator as a device: PTX text of any compiler, parsed and decoded here, run by the simulator kit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from tilefw.api import Artifact, BufferView, Struct
from tilefw.api.device import DescribedArray
from tilefw.api.sim import Decoders, SimulatedChip, SimulatorDevice
from tilefw_nvidia import isa
from tilefw_nvidia.chips import Chip
from tilefw_nvidia.device.tensor_map import element_name, swizzle_mode
from tilefw_nvidia.isa.meaning import tensor_map

# Where generic addresses mean another space than global memory.
_WINDOWS = {"shared": (1 << 56, 1 << 32), "local": (2 << 56, 1 << 32), "param": (3 << 56, 1 << 32)}


def simulated(chip: Chip) -> SimulatedChip:
    """What the simulator kit must know of a chip."""
    return SimulatedChip(
        name=chip.target, wave_size=chip.lanes, pc_per_lane=True, max_threads=chip.threads_per_workgroup, max_grid=chip.max_grid,
        shared_bytes=chip.shared_bytes, local_bytes=chip.local_bytes, shared_banks=chip.banks,
        max_cluster=chip.workgroups_per_cluster, registers=chip.registers_per_processor, windows=_WINDOWS,
    )


class Simulator(SimulatorDevice):
    """`tilefw.api.Device` for PTX artifacts of one compute capability."""

    format: ClassVar = "ptx"

    def __init__(self, chip: Chip) -> None:
        super().__init__(simulated(chip))
        self.instructions = isa.instruction_set(chip)

    def copy_descriptor(self, array: DescribedArray) -> bytes:
        return tensor_map.encoded(
            array.base, array.sizes, array.strides, array.extents, element_name(array), swizzle=swizzle_mode(array)
        )

    def decoders(self, artifact: Artifact, name: str) -> Decoders:
        module = isa.parse(artifact.text, name)
        isa.check_target(module, self.instructions)
        return {entry: partial(isa.program, module, entry, self.instructions) for entry in module.entries}

    def tensor_map(
        self, base: BufferView, sizes: Sequence[int], strides: Sequence[int], box: Sequence[int], *, element: str,
        swizzle: int = 0, fill: int = 0, steps: Sequence[int] | None = None,
    ) -> Struct:
        """The argument that tells a copy engine of an array in memory of this device, as a host's cuTensorMapEncodeTiled makes it.
        Dimensions are the innermost first; `strides` are in bytes. Raises LaunchError."""
        address = self._address(base)
        return Struct(
            tensor_map.encoded(address, sizes, strides, box, element, swizzle=swizzle, fill=fill, steps=steps)
        )

    def pixel_map(
        self, base: BufferView, sizes: Sequence[int], strides: Sequence[int], corners: tuple[Sequence[int], Sequence[int]],
        channels: int, pixels: int, *, element: str, swizzle: int = 0, fill: int = 0, steps: Sequence[int] | None = None,
    ) -> Struct:
        """As `tensor_map`, for the mode im2col, as a host's cuTensorMapEncodeIm2col makes it. Raises LaunchError."""
        address = self._address(base)
        return Struct(tensor_map.encoded_pixels(
            address, sizes, strides, corners, channels, pixels, element, swizzle=swizzle, fill=fill, steps=steps
        ))
