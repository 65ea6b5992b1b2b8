"""Arrays that other libraries keep in a card's memory: they go into a launch where they are, and nothing of them is copied."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilefw.api.dtypes import DType
from tilefw.api.errors import LaunchError, UsageError


@dataclass(slots=True)  # as HostArray, not frozen
class DeviceArray:
    """A pointer argument in a card's memory; the first fields are those of `HostArray`, and `keep` begins with the array.

    `stream` is the handle of the stream on which the array's library works on it now, None where it does not say; `device` is
    PyTorch's for a tensor, whose current stream that is. `what` names the argument in messages.
    """

    dtype: DType
    address: int
    start: int
    nbytes: int
    readonly: bool
    stream: int | None
    device: Any
    what: str
    keep: Any

    @property
    def shape(self) -> tuple[int, ...]:
        array = self.keep[0]
        return tuple(array.shape if self.device is not None else array.__cuda_array_interface__["shape"])

    @property
    def strides(self) -> tuple[int, ...]:
        """In bytes."""
        array = self.keep[0]
        if self.device is not None:
            return tuple(n * array.element_size() for n in array.stride())
        return array.__cuda_array_interface__.get("strides") or _contiguous(self.shape, self.dtype.storage_bits // 8)

    @property
    def offset(self) -> int:
        """What decides alignment: here the address itself, as nothing moves the array."""
        return self.address


def from_torch(tensor: Any, element: DType, device: Any, what: str) -> DeviceArray:
    """A PyTorch tensor on a card, by its storage; it may be used on the stream that is current for its card."""
    storage = tensor.untyped_storage()
    start, nbytes = storage.data_ptr(), storage.nbytes()
    return DeviceArray(element, tensor.data_ptr(), start, nbytes, False, None, device, what, (tensor, storage))


def streams_of(arrays: Sequence[DeviceArray]) -> list[int]:
    """The streams on which the libraries of arrays work on them now, each once, in the order of the arrays."""
    found: dict[int, None] = {}
    asked: Any = None
    for array in arrays:
        stream, device = array.stream, array.device
        if device is not None and device is not asked and device != asked:
            asked = device
            stream = stream_question(sys.modules.get("torch"), device.type)(device)
        if stream is not None:
            found[stream] = None
    return list(found)


@functools.lru_cache(maxsize=16)
def stream_question(torch: Any, kind: str) -> Callable[[Any], int | None]:
    """What gives the current stream of a device of PyTorch's. It has a module for each kind of device, named as the device is; for
    some kinds also a function that gives the handle alone, as PyTorch's own launches of Triton kernels ask."""
    quick = getattr(getattr(torch, "_C", None), f"_{kind}_getCurrentRawStream", None)
    if quick is not None:
        return lambda device: quick(device.index)
    current = getattr(getattr(torch, kind, None), "current_stream", None)
    return lambda device: None if current is None else stream_handle(current(device))


def from_interface(value: Any, interface: Mapping[str, Any], element: DType, itemsize: int, what: str) -> DeviceArray:
    """An object with this `__cuda_array_interface__`; its bounds are those of its elements. Raises LaunchError TFW0330 for a masked
    one."""
    if interface.get("mask") is not None:
        raise LaunchError(f"{what} is a masked array, which kernels do not know", code="TFW0330")
    address, readonly = interface["data"]
    strides = interface.get("strides")
    if strides is None:
        low, high = address, address + math.prod(interface["shape"]) * itemsize
    else:
        low, high = _bounds(address, interface["shape"], strides, itemsize)
    # The protocol numbers the default stream 1, and forbids 0; None: nothing is under way.
    stream = interface.get("stream")
    handle = None if stream is None else 0 if stream == 1 else int(stream)
    return DeviceArray(element, address, low, high - low, bool(readonly), handle, None, what, (value,))


def _contiguous(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """The strides of an array whose last axis is the fastest, without gaps."""
    return tuple(itemsize * math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _bounds(address: int, shape: Sequence[int], strides: Sequence[int], itemsize: int) -> tuple[int, int]:
    if 0 in shape:
        return address, address
    reach = [(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)]
    return address + sum(r for r in reach if r < 0), address + sum(r for r in reach if r > 0) + itemsize


def stream_handle(value: Any) -> int:
    """The handle of a stream: a number, an object with the stream protocol, or the streams of PyTorch and CuPy. Raises UsageError
    TFW0902 for what is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    protocol = getattr(value, "__cuda_stream__", None)
    if protocol is not None:
        said: Any = protocol() if callable(protocol) else protocol  # (version, handle)
        return int(said[1])
    for name in ("cuda_stream", "ptr"):
        handle = getattr(value, name, None)
        if isinstance(handle, int):
            return handle
    raise UsageError(
        f"a stream is a stream of PyTorch or CuPy, or a driver's handle, not {value!r}", code="TFW0902",
        help="leave `stream` out for the current one",
    )
