"""The launches of a plan with their arguments packed, for a device in this process whose memory stays where it is.

An input that no launch writes is read where its array lies, and not copied: the addresses of it in the blocks of arguments are
replaced when another array comes. Arrays that lie otherwise than kernels were compiled for are copied to the arena as on any other
device.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilefw.api.device import LaunchOptions, LaunchReport
from tilefw.argument_block import BlockLayout
from tilefw.graph.device_memory import ArenaMemory, write
from tilefw.graph.kernel_graph import ModelTensor
from tilefw.graph.plan import ModelPlan, PlanLaunch
from tilefw.hardware.processor_device import ProcessorDevice
from tilefw.kernels.formats import array_dtype
from tilefw.runtime.executor import ADDRESS_BITS

_ALIGNED = 16  # bytes: what kernels are compiled for (`compile_graph` specialises for addresses divisible by it)
_WIDEST = 64  # bytes: at which outputs begin, so that others need not copy them

Array = np.ndarray[Any, Any]


@dataclass(slots=True)
class PlacedInput:
    """An input that is read where it lies: `uses` are launches with the place of the address in their blocks and what is added to
    it; `address` is where it is now, and `own` its place in the arena."""

    own: int
    address: int
    uses: list[tuple[int, int, int]] = field(default_factory=list)


class ReadyLaunches:
    """`calls[number]()` makes a launch."""

    def __init__(
        self, device: ProcessorDevice, plan: ModelPlan, launches: Sequence[PlanLaunch], modules: Sequence[Any], memory: ArenaMemory,
        options: LaunchOptions,
    ) -> None:
        self._device, self._plan, self._memory = device, plan, memory
        self._blocks: list[bytes] = []
        self.calls: list[Callable[[], LaunchReport]] = []
        for number, (one, module) in enumerate(zip(launches, modules, strict=True)):
            entry = one.artifact.entry()
            layout = BlockLayout(entry, ADDRESS_BITS)
            self._blocks.append(layout.pack(memory.before(number), device.address_of, ADDRESS_BITS, device.name))
            self.calls.append(self._call(number, device.ready(module, entry.name, options), one.grid, options.stream or 0))
        self._placed = {
            name: self._place(tensor, launches) for name, tensor in plan.inputs.items() if _only_read(plan, tensor, launches)
        }
        self._outputs = [
            (name, tensor.shape, array_dtype(tensor.dtype), tensor.nbytes, self._address(tensor) if tensor.nbytes else 0)
            for name, tensor in plan.outputs.items()
        ]

    def _call(self, number: int, run: Any, grid: tuple[int, int, int], stream: int) -> Callable[[], LaunchReport]:
        blocks = self._blocks
        return lambda: run(grid, blocks[number], stream)

    def _address(self, tensor: ModelTensor) -> int:
        return self._device.address_of(self._memory.view(tensor.buffer)) + tensor.offset

    def _place(self, tensor: ModelTensor, launches: Sequence[PlanLaunch]) -> PlacedInput:
        address = self._device.address_of(self._memory.view(tensor.buffer))
        found = PlacedInput(address, address)
        for number, one in enumerate(launches):
            for argument, parameter in zip(one.arguments, one.artifact.entry().parameters, strict=True):
                if isinstance(argument, ModelTensor) and argument.buffer == tensor.buffer:
                    found.uses.append((number, parameter.offset, argument.offset))
        return found

    def take(self, arrays: Mapping[str, Array]) -> int:
        """Let launches read these inputs where they lie, and copy in all others; how many bytes were copied."""
        copied = 0
        for name, array in arrays.items():
            placed = self._placed.get(name)
            if placed is not None:
                address = array.__array_interface__["data"][0]
                if not address % _ALIGNED:
                    self._move(placed, address)
                    continue
                self._move(placed, placed.own)
            write(self._device, self._memory.view(self._plan.inputs[name].buffer), array)
            copied += array.nbytes
        return copied

    def give_back(self) -> None:
        """Let launches read all inputs in the arena again."""
        for placed in self._placed.values():
            self._move(placed, placed.own)

    def _move(self, placed: PlacedInput, address: int) -> None:
        if address == placed.address:
            return
        for number, offset, added in placed.uses:
            block = self._blocks[number]
            self._blocks[number] = b"".join((block[:offset], (address + added).to_bytes(8, "little"), block[offset + 8 :]))
        placed.address = address

    def outputs(self) -> dict[str, Array]:
        """Copies of what the outputs hold now."""
        return {name: _copied(address, nbytes, kind, shape) for name, shape, kind, nbytes, address in self._outputs}


def _only_read(plan: ModelPlan, tensor: ModelTensor, launches: Sequence[PlanLaunch]) -> bool:
    """Whether no launch stores to an input, and no output is the input itself."""
    if not tensor.nbytes or tensor.offset or any(tensor.buffer == one.buffer for one in plan.outputs.values()):
        return False
    return all(
        parameter.readonly is True
        for one in launches for argument, parameter in zip(one.arguments, one.artifact.entry().parameters, strict=True)
        if isinstance(argument, ModelTensor) and argument.buffer == tensor.buffer
    )


def _copied(address: int, nbytes: int, kind: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """Elements at an address, in memory of their own that begins at a multiple of 64."""
    held = np.empty(nbytes + _WIDEST, np.uint8)
    begin = -held.__array_interface__["data"][0] % _WIDEST
    data = held[begin : begin + nbytes]
    if nbytes:
        ctypes.memmove(data.__array_interface__["data"][0], address, nbytes)
    return data.view(kind).reshape(shape)
