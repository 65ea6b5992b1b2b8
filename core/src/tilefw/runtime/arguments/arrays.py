"""Any array as bytes in memory: element type, shape, strides, and the storage that owns it.

NumPy, PyTorch tensors, `__array_interface__`, `__cuda_array_interface__`, the buffer protocol, DLPack, ml_dtypes element types. An
array's bounds are those of its storage: a kernel may walk from a view to all that the view's owner holds, and nowhere else.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import le
from typing import Any

import numpy as np

from tilefw.api.dtypes import DTYPES, DType, dtype
from tilefw.api.errors import LaunchError
from tilefw.runtime.arguments import device_arrays
from tilefw.runtime.arguments.device_arrays import DeviceArray
from tilefw.runtime.arguments.pointer_objects import POINTER, attributes, placed_in


@dataclass(slots=True)  # frozen ones take four times as long to make, and every launch makes one an array
class HostArray:
    """A pointer argument in host memory.

    `address` is that of the element [0, …, 0]; `[start, start + nbytes)` is the owning storage.
    `keep` holds what must live as long as the memory is used: the array, and what owns its memory.
    """

    dtype: DType
    address: int
    start: int
    nbytes: int
    readonly: bool
    keep: Any

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.keep[0].shape)

    @property
    def strides(self) -> tuple[int, ...]:
        """In bytes."""
        array = self.keep[0]
        return array.strides if isinstance(array, np.ndarray) else tuple(n * array.element_size() for n in array.stride())

    @property
    def offset(self) -> int:
        """Bytes from the storage's start to the first element: what a device's own placement keeps, so it decides alignment."""
        return self.address - self.start


ARRAYS = frozenset((HostArray, DeviceArray))


TYPED = "__typed_array__"  # the attribute that holds the TypedArray of an object which stands for one


@dataclass(frozen=True, slots=True)
class TypedArray:
    """An array whose element type is not what its own library says: `fp8e4b15` kept as `uint8`, for instance."""

    array: Any
    element: DType


def reinterpret(array: Any, element: str) -> TypedArray:
    """The same memory read as `element`, of equal width (Triton's `triton.reinterpret`); raises LaunchError TFW0331."""
    found = array_argument(array).dtype
    wanted = _dtype_named(element)
    if wanted.storage_bits != found.storage_bits:
        raise LaunchError(
            f"an array of {found} cannot be read as {wanted}: {found.storage_bits} and {wanted.storage_bits} bits",
            code="TFW0331",
        )
    return TypedArray(array, wanted)


def is_array(value: Any) -> bool:
    """Whether `value` is something that `host_array` takes or refuses as an array; numbers and None are not."""
    if isinstance(value, (np.ndarray, HostArray, DeviceArray, TypedArray)):
        return True
    if isinstance(value, np.generic):  # a number, though it has a buffer and an interface
        return False
    return is_array_type(type(value)) or any(hasattr(value, name) for name in _PROTOCOLS) or _has_buffer(value)


def is_array_type(kind: type) -> bool:
    """Whether the type alone says that its values are arrays."""
    if issubclass(kind, (np.ndarray, HostArray, DeviceArray, TypedArray, bytes, bytearray, memoryview)):
        return True
    return not issubclass(kind, np.generic) and any(hasattr(kind, name) for name in _PROTOCOLS)


def host_array(value: Any, what: str = "the argument") -> HostArray:
    """`value` as memory of the host; raises LaunchError when it is none, lives elsewhere, or has elements that no kernel knows."""
    found = array_argument(value, what)
    if isinstance(found, DeviceArray):
        raise in_device_memory(found)
    return found


def in_device_memory(array: DeviceArray) -> LaunchError:
    """The error for an array in a card's memory where host memory is needed."""
    return LaunchError(
        f"{array.what} lives in the memory of a device, and this executor runs on the host", code="TFW0333",
        help="copy it to the host first, or launch with executor='hw'",
    )


def array_argument(value: Any, what: str = "the argument") -> HostArray | DeviceArray:
    """`value` as memory of the host or of a card, or itself where it is that already; raises LaunchError when it is none, or has
    elements that no kernel knows."""
    return conversion(type(value))(value, what)


@lru_cache(maxsize=256)
def conversion(kind: type) -> Callable[[Any, str], HostArray | DeviceArray]:
    """`array_argument` for values of one type."""
    if kind is np.ndarray:
        return _from_numpy
    if issubclass(kind, np.ma.MaskedArray):
        return _refuse_masked
    if issubclass(kind, HostArray | DeviceArray):
        return _as_it_is
    if issubclass(kind, TypedArray):
        return _from_typed
    if hasattr(kind, TYPED):
        return lambda value, what: _from_typed(getattr(value, TYPED), what)
    if is_torch_tensor(kind):
        return _from_torch
    return _from_card if says_where(kind) else _from_other


def says_where(kind: type) -> bool:
    """Whether values of a type say where they are in a card's memory, and nothing else is known of them."""
    known = issubclass(kind, HostArray | DeviceArray | TypedArray) or hasattr(kind, TYPED) or hasattr(kind, "__array_interface__")
    return hasattr(kind, ON_CARD) and not known and not is_torch_tensor(kind)


def is_torch_tensor(kind: type) -> bool:
    """Whether a type is PyTorch's tensor or derived from it, in whatever module."""
    torch = hasattr(kind, "untyped_storage") and not hasattr(kind, TYPED)
    return torch and any(base.__module__.partition(".")[0] == "torch" for base in kind.__mro__)


def _refuse_masked(value: Any, what: str) -> HostArray:
    """A kernel reads what stands behind a mask as if there were none."""
    raise LaunchError(
        f"{what} is a masked array, whose mask a kernel does not see", code="TFW0330",
        help="pass its .data, and numpy.ma.getmaskarray(array) as an argument of its own, or array.filled(value)",
    )


def _as_it_is(array: HostArray | DeviceArray, what: str) -> HostArray | DeviceArray:
    return array


def _from_typed(value: TypedArray, what: str) -> HostArray | DeviceArray:
    array = array_argument(value.array, what)
    if isinstance(array, DeviceArray):
        return replace(array, dtype=value.element)
    return HostArray(value.element, array.address, array.start, array.nbytes, array.readonly, array.keep)


def _from_other(value: Any, what: str) -> HostArray | DeviceArray:
    if _is_pointer(value):
        return _from_pointer(value, what)
    if not isinstance(value, (np.ndarray, np.generic)) and not hasattr(value, "__array_interface__"):
        return _from_card(value, what)
    return _from_seen(value, what)


def _from_card(value: Any, what: str) -> HostArray | DeviceArray:
    """An object that says where it is in a card's memory, or else has memory of the host."""
    interface = getattr(value, ON_CARD, None)
    if interface is None:
        return _from_seen(value, what)
    kind = numpy_type(interface["typestr"])
    element = known_element(kind) or _element(kind, what)
    return device_arrays.from_interface(value, interface, element, kind.itemsize, what)


def _from_seen(value: Any, what: str) -> HostArray:
    """An object whose memory NumPy can see. The object owns it, or the buffer that it shows: NumPy's array was made to see it, and
    lives no longer than that. A copy is that array's own."""
    array = _as_numpy(value, what)
    found = _from_numpy(array, what)
    if array is value or array.base is None:
        return found
    shown = array.base if hasattr(value, "__array_interface__") else value
    if isinstance(array.base, memoryview):
        shown = array.base.obj
    return replace(found, keep=(found.keep[0], shown))


ON_CARD = "__cuda_array_interface__"
_WHOLE = (TYPED, "__array_interface__", "__dlpack__", ON_CARD)  # these tell of all the memory
_PROTOCOLS = (*_WHOLE, POINTER)


def _from_pointer(value: Any, what: str) -> HostArray | DeviceArray:
    said = getattr(value, "dtype", None)
    element = torch_element(said) or _dtype_named(getattr(said, "name", None) or str(said).removeprefix("torch."), what)
    return placed_in(value, element, list(_arrays_of(value, what)), what)


def _is_pointer(value: Any) -> bool:
    return hasattr(value, POINTER) and not (any(hasattr(value, name) for name in _WHOLE) or _has_buffer(value))


def _arrays_of(value: Any, what: str) -> Iterator[HostArray | DeviceArray]:
    """What an object holds that is an array of elements that kernels have, and what the pointers that it holds do."""
    holders = [value]
    for holder in holders:
        for part in attributes(holder):
            if not is_array_type(type(part)):
                continue
            if not _is_pointer(part):
                with suppress(LaunchError):
                    yield array_argument(part, what)
            elif not any(part is other for other in holders):
                holders.append(part)


def _has_buffer(value: Any) -> bool:
    try:
        memoryview(value)
    except TypeError:
        return False
    return True


def _as_numpy(value: Any, what: str) -> np.ndarray:
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, np.generic):
        raise LaunchError(f"{what} is a number, not an array", code="TFW0330")
    if hasattr(value, "__array_interface__"):
        return np.asarray(value)
    if _has_buffer(value):
        return _from_buffer(value, what)
    if hasattr(value, "__dlpack__"):
        return _from_dlpack(value, what)
    raise LaunchError(
        f"{what} is a {type(value).__name__}, which is not an array", code="TFW0330",
        note="an array has DLPack, the buffer protocol or __array_interface__: NumPy, PyTorch, JAX, array.array, …",
    )


def _from_buffer(value: Any, what: str) -> np.ndarray:
    view = memoryview(value)
    try:
        return np.asarray(view)
    except (ValueError, TypeError, NotImplementedError) as error:
        message = f"the buffer of {what} cannot be read: {error}"
        raise LaunchError(message, code="TFW0330", note=f"its format is {view.format!r}") from None


def _from_dlpack(value: Any, what: str) -> np.ndarray:
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        if hasattr(value, "__array__"):
            # A copy: NumPy's DLPack has no bfloat16, for one. It is marked so that no result is lost in it.
            copied = np.array(value)
            copied.flags.writeable = False
            return copied
        raise LaunchError(f"{what} cannot be had through DLPack: {error}", code="TFW0330") from None


def _from_numpy(array: np.ndarray, what: str) -> HostArray:
    element = known_element(array.dtype) or _element(array.dtype, what)
    address, flags = _pointer(array), array.flags
    if array.base is None and flags.c_contiguous:
        return HostArray(element, address, address, array.nbytes, not flags.writeable, (array, array))
    start, nbytes, keep = _storage(array)
    return HostArray(element, address, start, nbytes, not flags.writeable, (array, keep))


def _is_whole(array: np.ndarray) -> bool:
    """Whether the array has memory of its own, from its first element to its last one."""
    return array.base is None and array.flags.c_contiguous


_BYTE = ctypes.c_ubyte


def _pointer(array: np.ndarray) -> int:
    """Where the first element is. The array's own description of that is a dict, which takes longer to make."""
    try:
        return ctypes.addressof(_BYTE.from_buffer(array))  # type: ignore[arg-type]
    except (TypeError, ValueError, BufferError):  # it has no elements, may not be written, or is no buffer
        return array.__array_interface__["data"][0]


numpy_type = lru_cache(maxsize=64)(np.dtype)


@lru_cache(maxsize=64)
def known_element(kind: np.dtype) -> DType | None:
    """The element type of a NumPy type: finding it by its name takes longer than all else about an array. None for others."""
    try:
        return dtype(kind.name) if kind.byteorder != ">" else None
    except KeyError:
        return None


def _element(kind: np.dtype, what: str) -> DType:
    if kind.byteorder == ">":
        raise LaunchError(f"{what} is big-endian", code="TFW0332", help="array.astype(array.dtype.newbyteorder('<'))")
    try:
        return dtype(kind.name)
    except KeyError:
        raise LaunchError(
            f"{what} has elements of type {kind}, which kernels do not have", code="TFW0332",
            note="element types: " + ", ".join(d.numpy for d in DTYPES.values() if d.numpy),
        ) from None


def _storage(array: np.ndarray) -> tuple[int, int, Any]:
    """Start, length and owner of the memory below a view: the outermost array, or the object whose buffer that is."""
    owner: Any = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    if _is_whole(owner):
        return _pointer(owner), owner.nbytes, owner
    low, high = _byte_bounds(owner)
    if owner.base is not None and _has_buffer(owner.base):
        whole = memoryview(owner.base)
        if whole.nbytes and whole.contiguous:
            outer = np.frombuffer(whole, np.uint8)
            first = _pointer(outer)
            if first <= low and high <= first + outer.nbytes:
                low, high = first, first + outer.nbytes
    return low, high - low, owner


def _byte_bounds(array: np.ndarray) -> tuple[int, int]:
    low = high = _pointer(array)
    if array.size == 0:
        return low, high
    for extent, stride in zip(array.shape, array.strides, strict=True):
        low += min(0, (extent - 1) * stride)
        high += max(0, (extent - 1) * stride)
    return low, high + array.itemsize


def _from_torch(tensor: Any, what: str) -> HostArray | DeviceArray:
    """A PyTorch tensor by its storage; the library itself is not imported."""
    if not tensor.is_cpu or not _is_strided(tensor.layout) or tensor.is_neg():
        return _from_torch_elsewhere(tensor, what)
    element = torch_element(tensor.dtype) or _dtype_named(str(tensor.dtype).removeprefix("torch."), what)
    storage = tensor.untyped_storage()
    start, first = _storage_start(storage, what), tensor.storage_offset()
    address = start + first * tensor.element_size() if first else start  # `data_ptr` is what a program asks for (tilefw.triton)
    return HostArray(element, address, start, storage.nbytes(), False, (tensor, storage))


def _storage_start(storage: Any, what: str) -> int:
    """Raises LaunchError TFW0330 where there is none, as for a tensor that wraps others."""
    try:
        return storage.data_ptr()
    except RuntimeError as error:
        message = f"{what} is a tensor without memory of its own: {str(error).splitlines()[0]}"
        raise LaunchError(message, code="TFW0330", help="pass the tensor that it stands for") from None


def _from_torch_elsewhere(tensor: Any, what: str) -> DeviceArray:
    """A tensor in the memory of a card. Raises LaunchError TFW0330 for one that has none, or none of its own."""
    element, device = torch_element(tensor.dtype), tensor.device
    conjugate = element is None and tensor.is_conj()  # which complex numbers alone can be
    if not _is_strided(tensor.layout) or conjugate or tensor.is_neg() or device.type == "meta":
        negated = ", negated or conjugated when it is read" if conjugate or tensor.is_neg() else ""
        message = f"{what} is a tensor without plain memory ({tensor.layout} on {device}{negated})"
        raise LaunchError(message, code="TFW0330", help=f"pass tensor.{'resolve_conj().resolve_neg' if negated else 'to_dense'}()")
    element = element or _dtype_named(str(tensor.dtype).removeprefix("torch."), what)
    return device_arrays.from_torch(tensor, element, device, what)


@lru_cache(maxsize=16)
def _is_strided(layout: Any) -> bool:
    return str(layout) == "torch.strided"


@lru_cache(maxsize=64)
def torch_element(kind: Any) -> DType | None:
    """The element type of a PyTorch type; None for others."""
    try:
        return dtype(str(kind).removeprefix("torch."))
    except KeyError:
        return None


def _dtype_named(name: str, what: str = "the array") -> DType:
    try:
        return dtype(name)
    except KeyError:
        message = f"{what}: there is no element type {name!r}"
        raise LaunchError(message, code="TFW0332", note="element types: " + ", ".join(DTYPES)) from None


@dataclass(frozen=True, slots=True)
class Storage:
    """One stretch of memory; `readonly` when every argument in it is. One of the host's becomes one allocation of the device."""

    start: int
    nbytes: int
    readonly: bool
    element: str
    label: str

    def holds(self, array: HostArray | DeviceArray) -> bool:
        """Whether the array's own storage lies in this one."""
        return self.start <= array.start and array.start + array.nbytes <= self.start + self.nbytes

    def view(self) -> np.ndarray:
        """The bytes themselves, shared with their owner."""
        if self.nbytes == 0:
            return np.empty(0, np.uint8)
        raw = (ctypes.c_ubyte * self.nbytes).from_address(self.start)
        return np.frombuffer(memoryview(raw), np.uint8)


def storages(arrays: Sequence[tuple[str, HostArray | DeviceArray]]) -> list[Storage]:
    """The storages below named arrays, in the order of their addresses; those that overlap are one."""
    merged: list[Storage] = []
    for label, array in sorted(arrays, key=lambda pair: pair[1].start):
        mine = Storage(array.start, array.nbytes, array.readonly, array.dtype.name, label)
        if merged and _overlap(merged[-1], mine):
            merged[-1] = _union(merged[-1], mine)
        else:
            merged.append(mine)
    return merged


def disjoint(starts: Sequence[int], ends: Sequence[int]) -> bool:
    """Whether each of the stretches is a storage of its own, as `storages` finds them."""
    # Before each but the first begins, as many have ended.
    return len(starts) < 2 or all(map(le, sorted(ends), sorted(starts)[1:]))


def _overlap(low: Storage, high: Storage) -> bool:
    return high.start < low.start + low.nbytes or (high.start == low.start and high.nbytes == low.nbytes)


def _union(low: Storage, high: Storage) -> Storage:
    end = max(low.start + low.nbytes, high.start + high.nbytes)
    element = low.element if low.element == high.element else ""
    label = low.label if high.label in low.label.split("/") else f"{low.label}/{high.label}"
    return Storage(low.start, end - low.start, low.readonly and high.readonly, element, label)
