"""Arrays in a card's memory without any other library: what a launch needs of them, and a kernel that empties the caches."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.dtypes import dtype
from tilefw.api.hardware import Card
from tilefw.kernels.spec import Buffer, Launch
from tilefw.runtime.arguments.arrays import TypedArray

_BLOCK = 4096


class CardArray:
    """A copy of a contiguous array on the card, as whole numbers of its elements' width; `typed` says what they are."""

    def __init__(self, card: Card, array: np.ndarray) -> None:
        self._card, self._array = card, array
        self._handle = card.allocate(array.nbytes)
        card.write(self._handle, array.view(np.uint8))

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        address = self._card.allocation(self._handle).address
        fields = {"shape": self._array.shape, "typestr": f"<u{self._array.dtype.itemsize}", "data": (address, False)}
        return {**fields, "strides": None, "version": 3, "stream": None}

    def get(self) -> np.ndarray:
        """What the card's memory holds."""
        return np.frombuffer(self._card.read(self._handle, self._array.nbytes), self._array.dtype).reshape(self._array.shape)

    def free(self) -> None:
        self._card.free(self._handle)


class OnCard:
    """The arguments of a launch with their buffers on the card; to be freed."""

    def __init__(self, card: Card, launch: Launch) -> None:
        buffers = {name: value for name, value in launch.arguments.items() if isinstance(value, Buffer)}
        self.arrays = {name: CardArray(card, np.ascontiguousarray(buffer.array)) for name, buffer in buffers.items()}
        typed = {name: TypedArray(array, dtype(buffers[name].dtype)) for name, array in self.arrays.items()}
        self.arguments: dict[str, Any] = {**launch.arguments, **typed}

    def free(self) -> None:
        for array in self.arrays.values():
            array.free()


@tilefw.jit
def fill(out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), 0)


class Flush:
    """Writes `nbytes` of the card's memory, so that a launch finds its inputs in no cache; 0 bytes: nothing."""

    def __init__(self, card: Card, target: str, nbytes: int) -> None:
        self._blocks, self._target = nbytes // (4 * _BLOCK), target
        self._array = CardArray(card, np.zeros(self._blocks * _BLOCK, np.int32)) if self._blocks else None

    def __call__(self) -> None:
        if self._array is not None:
            fill[(self._blocks,)](self._array, BLOCK=_BLOCK, target=self._target, executor="hw")

    def free(self) -> None:
        if self._array is not None:
            self._array.free()
