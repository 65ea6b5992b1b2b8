"""Bound arguments over copies of their arrays: a launch is run once more, and the user's arrays stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilefw.runtime.arguments.arrays import HostArray, in_device_memory, storages
from tilefw.runtime.arguments.binding import Bound
from tilefw.runtime.arguments.device_arrays import DeviceArray


def copied(args: Sequence[Bound]) -> list[Bound]:
    """The arguments with each storage copied; arrays that share one share its copy. Raises LaunchError TFW0333 for an array in a
    card's memory."""
    for argument in args:
        if isinstance(argument, DeviceArray):
            raise in_device_memory(argument)
    stores = storages([("", argument) for argument in args if isinstance(argument, HostArray)])
    memory = [store.view().copy() for store in stores]

    def moved(argument: Bound) -> Bound:
        if not isinstance(argument, HostArray):
            return argument
        number = next(n for n, store in enumerate(stores) if store.holds(argument))
        distance = memory[number].ctypes.data - stores[number].start
        keep = (argument.keep[0], memory[number])  # the first says shape and strides
        return replace(argument, address=argument.address + distance, start=argument.start + distance, keep=keep)

    return [moved(argument) for argument in args]
