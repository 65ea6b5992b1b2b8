"""Where the buffers of a plan are on a device: constants from the beginning to the end, the others by one of two strategies.

`ArenaMemory` has one allocation for all of them. `SeparateMemory` has one for each while it is in use: a simulator or interpreter
checks every access against the allocation that it is made to, and what nobody has written yet counts as uninitialised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from tilefw.api.device import Argument, ArrayDescriptor, BufferView, Device, DeviceAddress, Scalar
from tilefw.api.errors import LaunchError
from tilefw.copy_descriptors import PREFIX as DESCRIPTOR
from tilefw.graph.mapped_constants import require_whole
from tilefw.graph.memory import arranged, lives
from tilefw.graph.plan import ModelPlan, PlanArgument, PlanLaunch

_NULL = BufferView(0)
_NAMED = 3  # constants that a message names


class DeviceMemory(Protocol):
    """The buffers of one session."""

    def view(self, buffer: int) -> BufferView:
        """Where a buffer is now."""
        ...

    def begin(self) -> None:
        """Make room for the inputs of a run."""
        ...

    def before(self, number: int) -> Sequence[Argument]:
        """Make room for a launch, and say its arguments."""
        ...

    def end(self) -> None:
        """Free what the run allocated."""
        ...

    def close(self) -> None:
        """Free everything."""
        ...


@runtime_checkable
class AddressingDevice(Protocol):
    """A device that can say where an allocation is, and takes addresses, which a launch need not look up."""

    def address_of(self, view: BufferView) -> int:
        """The address of a place in an allocation."""
        ...


class ConstantMemory:
    """The constants of a plan on a device. `written_bytes` counts what was copied there."""

    def __init__(self, device: Device, plan: ModelPlan) -> None:
        self._device = device
        self.views: dict[int, BufferView] = {}
        self.written_bytes = 0
        try:
            for number, buffer in enumerate(plan.buffers):
                if buffer.constant is not None:
                    require_whole(buffer.name, buffer.constant)
                    handle = allocate(device, buffer.nbytes, buffer.name, buffer.dtype, readonly=True)
                    self.views[number] = BufferView(handle)
                    if buffer.nbytes:
                        device.write(handle, buffer.constant)
                    self.written_bytes += buffer.nbytes
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Free them."""
        while self.views:
            self._device.free(self.views.popitem()[1].handle)


class ArenaMemory:
    """One allocation for all buffers, so that the arguments of every step are known from the beginning."""

    def __init__(self, device: Device, plan: ModelPlan, constants: Mapping[int, BufferView]) -> None:
        layout = arranged(lives(plan))
        self._device = device
        self._handle = allocate(device, layout.nbytes, "the arena", "uint8") if layout.nbytes else 0
        self._views = {**constants, **{buffer: BufferView(self._handle, offset) for buffer, offset in layout.offsets.items()}}
        self._arguments = [[_looked_up(a, device) for a in _arguments(launch, self.view)] for launch in plan.launches()]

    def view(self, buffer: int) -> BufferView:
        return self._views[buffer]

    def begin(self) -> None:
        """Every buffer is there."""

    def before(self, number: int) -> Sequence[Argument]:
        return self._arguments[number]

    def end(self) -> None:
        """Every buffer stays."""

    def close(self) -> None:
        if self._handle:
            self._device.free(self._handle)
        self._handle = 0


class SeparateMemory:
    """An allocation for each buffer while it is in use."""

    def __init__(self, device: Device, plan: ModelPlan, constants: Mapping[int, BufferView]) -> None:
        self._device, self._plan, self._constants = device, plan, constants
        self._launches = plan.launches()
        self._lives = lives(plan, of_steps=True)  # judges ask for all that a step was given
        self._views: dict[int, BufferView] = {}

    def view(self, buffer: int) -> BufferView:
        return self._constants.get(buffer) or self._views[buffer]

    def begin(self) -> None:
        self.end()
        self._at(-1)

    def before(self, number: int) -> Sequence[Argument]:
        self._at(number)
        return _arguments(self._launches[number], self.view)

    def end(self) -> None:
        while self._views:
            self._device.free(self._views.popitem()[1].handle)

    def close(self) -> None:
        self.end()

    def _at(self, number: int) -> None:
        """Free what is not used any more, then allocate what is used from this launch on."""
        for life in self._lives:
            if life.last < number and life.buffer in self._views:
                self._device.free(self._views.pop(life.buffer).handle)
        for life in self._lives:
            if life.first == number:
                buffer = self._plan.buffers[life.buffer]
                self._views[life.buffer] = BufferView(allocate(self._device, buffer.nbytes, buffer.name, buffer.dtype))


def needs(plan: ModelPlan) -> str:
    """How many bytes a plan takes of a device, and which constants take most of them."""
    constants = sorted((buffer for buffer in plan.buffers if buffer.constant is not None), key=lambda one: -one.nbytes)
    largest = ", ".join(f"{one.name} {one.nbytes:,}" for one in constants[:_NAMED])
    held, arena = plan.constant_bytes, arranged(lives(plan)).nbytes
    return f"the model takes {held:,} bytes for constants (the largest: {largest or 'none'}) and {arena:,} for the rest"


def allocate(device: Device, nbytes: int, label: str, element: str, *, readonly: bool = False) -> int:
    """An allocation on a device. Raises LaunchError TFW0361 where it has not so many bytes."""
    try:
        return device.allocate(nbytes, label=label, readonly=readonly, element=element)
    except (MemoryError, ValueError, OverflowError) as error:
        raise LaunchError(f"{device.name} has no {nbytes:,} bytes for {label}", code="TFW0361", note=str(error) or None) from None


def write(device: Device, view: BufferView, array: np.ndarray[Any, Any]) -> None:
    """Copy an array in storage form to a buffer."""
    if array.nbytes:
        device.write(view.handle, array.reshape(-1).view(np.uint8), view.offset)


def _looked_up(argument: Argument, device: Device) -> Argument:
    if isinstance(device, AddressingDevice) and isinstance(argument, BufferView) and argument.handle:
        return DeviceAddress(device.address_of(argument))
    return argument


def _arguments(launch: PlanLaunch, view: Callable[[int], BufferView]) -> list[Argument]:
    given = [_argument(argument, view) for argument in launch.arguments]
    if len(launch.steps) != 1:
        return given
    told = [parameter.hidden or "" for parameter in launch.artifact.entry().parameters]
    return [ArrayDescriptor(words) if words.startswith(DESCRIPTOR) else each for each, words in zip(given, told, strict=True)]


def _argument(argument: PlanArgument, view: Callable[[int], BufferView]) -> Argument:
    if argument is None or isinstance(argument, Scalar):
        return argument or _NULL
    found = view(argument.buffer)
    return BufferView(found.handle, found.offset + argument.offset)
