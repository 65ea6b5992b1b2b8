"""The reference interpreter's memory: buffers whose elements carry value, error bound, free mask and initialisation."""

from __future__ import annotations

import numpy as np

from tilefw.api.dtypes import DTYPES, DType
from tilefw.api.errors import LaunchError
from tilefw.api.integers import ceil_div
from tilefw.multicast_window import MulticastWindow
from tilefw.sparse_arrays import copy_sparse
from tilefw.tile import numbers
from tilefw.tile.reference.memory_sums import ElementSums
from tilefw.tile.reference.ordering import Record
from tilefw.tile.reference.value import Array, EvaluatedValue, some

# Buffer k owns the addresses [k·2^40, (k+1)·2^40) and begins in their middle, so that an access out of bounds on either
# side still names its buffer and never lands in another one.
SLOT_BITS = 40
_MIDDLE = 1 << (SLOT_BITS - 1)


class RefBuffer:
    """One allocation of `nbytes`, read and written as elements of whatever type the kernel's pointers have.

    It keeps elements in the type they were last stored in. Reading them as another type goes through their codes, which
    is exact; elements with a bound become free then.
    """

    def __init__(self, handle: int, nbytes: int, label: str = "", readonly: bool = False) -> None:
        self.handle = handle
        self.nbytes = nbytes
        self.label = label or f"buffer {handle}"
        self.readonly = readonly
        self.address = (handle << SLOT_BITS) + _MIDDLE
        self._dtype: DType = DTYPES["uint8"]
        self.x: Array = np.zeros(nbytes, np.int8)
        self.err: Array | None = None
        self.free: Array | None = None
        self.initialised: Array | None = np.zeros(nbytes, np.bool_)
        self.record: Record | None = None
        self.stored = True
        self.sums: ElementSums | None = None
        self.placed = False

    def write_bytes(self, data: bytes | memoryview | Array, offset: int = 0) -> None:
        """Copy raw bytes in; they are exact and initialised."""
        raw = np.frombuffer(data, np.uint8)
        if offset < 0 or offset + raw.size > self.nbytes:
            raise ValueError(f"{raw.size} bytes at {offset} do not fit {self.label} of {self.nbytes} bytes")
        self.view(DTYPES["uint8"])
        copy_sparse(self.x[offset : offset + raw.size], raw.view(np.int8))
        if raw.size == self.nbytes:
            self.err = self.free = self.initialised = None
            return
        for name, value in (("err", 0.0), ("free", False), ("initialised", True)):
            part = getattr(self, name)
            if part is not None:
                part[offset : offset + raw.size] = value
        if self.initialised is not None and self.initialised.all():
            self.initialised = None

    def hold(self, values: Array, dtype: DType) -> None:
        """Have these values of a type as all its elements, as they are: floats may be unrounded."""
        self.view(dtype)
        if values.size != self.x.size:
            raise ValueError(f"{values.size} elements for {self.label}, which has {self.x.size}")
        self.x = values.reshape(-1).astype(self.x.dtype)
        self.err = self.free = self.initialised = None

    def forget(self, which: Array) -> None:
        """The bytes where `which` is true count as never written."""
        self.view(DTYPES["uint8"])
        self.initialised = ~which if self.initialised is None else self.initialised & ~which

    def read_bytes(self, nbytes: int, offset: int = 0) -> bytes:
        """Raw bytes out: each element's reference value rounded to its type."""
        size = self._dtype.storage_bits // 8
        first = offset // size
        raw = numbers.to_bytes(self.x[first : ceil_div(offset + nbytes, size)], self._dtype)[offset - first * size :]
        beyond = max(0, min(nbytes, self.nbytes - offset) - raw.size)  # bytes that make no whole element
        return np.concatenate([raw, np.zeros(beyond, np.uint8)])[:nbytes].tobytes() if beyond else raw[:nbytes].tobytes()

    def read_reference(self, dtype: DType | None = None) -> EvaluatedValue:
        """Values, bounds and free mask of the whole buffer, as elements of `dtype` (default: as last accessed).

        Elements never written are free.
        """
        if dtype is not None:
            self.view(dtype)
        free = self.free
        if self.initialised is not None:
            free = ~self.initialised if free is None else free | ~self.initialised
        return EvaluatedValue(self.x, self.err, free)

    def view(self, dtype: DType) -> None:
        """Make the elements those of `dtype`."""
        old = self._dtype
        if (old.is_float, old.bits) == (dtype.is_float, dtype.bits) and (not dtype.is_float or old.name == dtype.name):
            return
        raw = numbers.to_bytes(self.x, old)
        raw = raw if raw.size == self.nbytes else np.concatenate([raw, np.zeros(self.nbytes - raw.size, np.uint8)])
        size = dtype.storage_bits // 8
        count = self.nbytes // size
        unsure = self.free
        if self.err is not None:
            unsure = (self.err > 0) if unsure is None else unsure | (self.err > 0)
        free = None if unsure is None else some(_regroup(unsure, old.storage_bits // 8, size, count, np.logical_or))
        if self.initialised is not None:
            self.initialised = _regroup(self.initialised, old.storage_bits // 8, size, count, np.logical_and)
        self.record = None if self.record is None else Record(count)
        self.sums = None
        self._dtype = dtype
        self.x = numbers.from_bytes(raw[: count * size], dtype, copy=False)
        if not self.x.flags.writeable:
            self.x = self.x.copy()
        self.free = free
        self.err = None if free is None or not dtype.is_float else np.where(free, np.inf, 0.0)

    def begin_launch(self, stored: bool) -> None:
        """Forget who accessed what and what was added up: races and sums in memory are within one launch, in which something is
        `stored` here, or nothing is."""
        self.record = self.sums = None
        self.stored = stored

    def settle(self) -> None:
        """Make the elements what memory holds of them when the launch is over: values of their type, exact from now on."""
        if self.err is None and self.free is None:
            return
        self.x = numbers.from_bytes(numbers.to_bytes(self.x, self._dtype), self._dtype, copy=False).copy()
        self.err = self.free = None

    def recorded(self) -> Record:
        """Who accessed what in this launch."""
        if self.record is None:
            self.record = Record(self.x.size)
        return self.record


def _regroup(mask: Array, old: int, new: int, count: int, join: np.ufunc) -> Array:
    """A mask per element of `old` bytes as one per element of `new` bytes."""
    per_byte = np.repeat(mask, old)[: count * new]
    if per_byte.size < count * new:
        per_byte = np.concatenate([per_byte, np.zeros(count * new - per_byte.size, np.bool_)])
    return join.reduce(per_byte.reshape(count, new), axis=1)


class RefMemory:
    """The buffers by handle; handle 0 is the null pointer."""

    def __init__(self) -> None:
        self.buffers: dict[int, RefBuffer] = {}
        self._next = 1
        self.multicast: MulticastWindow | None = None
        self.placed: list[RefBuffer] = []  # those whose address is not their handle's

    def allocate(self, nbytes: int, label: str = "", readonly: bool = False) -> RefBuffer:
        """A new buffer of uninitialised bytes."""
        while any(self._next in _slots(buffer) for buffer in self.placed):
            self._next += 1
        buffer = RefBuffer(self._next, nbytes, label, readonly)
        self.buffers[buffer.handle] = buffer
        self._next += 1
        return buffer

    def place(self, address: int, nbytes: int, label: str = "", readonly: bool = False) -> RefBuffer:
        """A new buffer of uninitialised bytes at `address`. Raises LaunchError (TFW0340) where another one may be."""
        buffer = RefBuffer(self._next, nbytes, label, readonly)
        buffer.address, buffer.placed = address, True
        if any(_taken(buffer, other) for other in self.buffers.values()):
            raise LaunchError(f"{nbytes} bytes at {address:#x} are taken", "TFW0340")
        self.buffers[buffer.handle] = buffer
        self.placed.append(buffer)
        self._next += 1
        return buffer

    def of_array(self, array: Array, label: str = "", readonly: bool = False) -> RefBuffer:
        """A buffer with a copy of an array's bytes."""
        buffer = self.allocate(array.nbytes, label, readonly)
        if array.nbytes:
            buffer.write_bytes(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        return buffer

    def free(self, handle: int) -> None:
        """Forget a buffer."""
        gone = self.buffers.pop(handle, None)
        if gone is not None and gone.placed:
            self.placed.remove(gone)

    def of_slot(self, slot: int) -> RefBuffer | None:
        """The buffer that owns the addresses of a slot, in or out of its bounds."""
        found = self.buffers.get(slot)
        return None if found is None or found.placed else found


def _slots(buffer: RefBuffer) -> range:
    """The slots that a placed buffer lies in."""
    return range(buffer.address >> SLOT_BITS, (buffer.address + buffer.nbytes >> SLOT_BITS) + 1)


def _taken(placed: RefBuffer, other: RefBuffer) -> bool:
    if other.placed:
        return placed.address < other.address + other.nbytes and other.address < placed.address + placed.nbytes
    return other.handle in _slots(placed)
