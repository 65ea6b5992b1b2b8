"""Arrays in a stand-in card's memory, as other libraries have them: with the interface of CuPy, and as PyTorch's tensors."""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import pytest

from tilefw.api.hardware import Card


class OnCard:
    """A NumPy array's copy on a card, which says where it is; `stream` is what its library says of streams."""

    def __init__(self, card: Card, array: np.ndarray, stream: int | None = None) -> None:
        self.card, self.like, self.stream = card, array, stream
        self.handle = card.allocate(array.nbytes)
        card.write(self.handle, array)

    @property
    def address(self) -> int:
        return self.card.allocation(self.handle).address

    @property
    def dtype(self) -> np.dtype:
        return self.like.dtype

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.like.shape, "typestr": self.like.dtype.str, "data": (self.address, False), "strides": None, "version": 3,
            "stream": self.stream,
        }

    def get(self) -> np.ndarray:
        """What the card's memory holds now, without waiting for streams of others."""
        return np.frombuffer(self.card.read(self.handle, self.like.nbytes), self.like.dtype).reshape(self.like.shape)


class Device:
    type = "cuda"

    def __init__(self, index: int) -> None:
        self.index = index

    def __str__(self) -> str:
        return f"cuda:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.index == self.index

    def __hash__(self) -> int:
        return self.index


class Storage:
    def __init__(self, array: OnCard) -> None:
        self._array = array

    def data_ptr(self) -> int:
        return self._array.address if self._array.like.size else 0

    def nbytes(self) -> int:
        return self._array.like.nbytes


class Tensor:
    """What a launch looks at of a PyTorch tensor."""

    layout = "torch.strided"
    is_cpu = False

    def __init__(self, array: OnCard, first: int = 0) -> None:
        self._array, self._first = array, first
        self.device = Device(array.card.number)
        self.dtype = f"torch.{array.like.dtype}"
        self.shape = (array.like.size - first,)

    def untyped_storage(self) -> Storage:
        return Storage(self._array)

    def data_ptr(self) -> int:
        """PyTorch's is 0 for a tensor without elements."""
        return self._array.address + self._first * self.element_size() if self._array.like.size else 0

    def element_size(self) -> int:
        return self._array.like.itemsize

    def stride(self) -> tuple[int, ...]:
        return (1,)

    def __dlpack__(self) -> object:
        raise BufferError("a launch reads the storage")

    def is_conj(self) -> bool:
        return False

    is_neg = is_conj


Tensor.__module__ = "torch"


class Stream:
    def __init__(self, handle: int) -> None:
        self.cuda_stream = handle


def pretend_torch(monkeypatch: pytest.MonkeyPatch, current: int) -> Any:
    """A module called torch, whose current stream of any card is `current`."""
    torch: Any = types.ModuleType("torch")
    torch.cuda = types.SimpleNamespace(current_stream=lambda device: Stream(current))
    torch.strided = Tensor.layout
    monkeypatch.setitem(sys.modules, "torch", torch)
    return torch
