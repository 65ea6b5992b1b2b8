"""Memory as regions of bytes: global allocations at 64-bit addresses with guard gaps, and the shared, local and parameter blocks.

A region holds its bytes in one NumPy array and, until all of them are initialised, a second one of poison: a set bit
says that the bit beside it was never written. Elements are gathered and scattered through views of the element's width.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator
from itertools import count

import numpy as np

from tilefw.api.errors import LaunchError
from tilefw.multicast_window import MulticastWindow
from tilefw.sim.floats import Array
from tilefw.sparse_arrays import copy_sparse

# Wide elements move as complex128, whose copies are plain moves of 16 bytes.
ELEMENTS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.complex128}
GUARD_BYTES = 1 << 16
ALIGNMENT = 512
# One process must survive any kernel and any launch file: more than this is refused.
MEMORY_LIMIT = 8 << 30


class Region:
    """`size` bytes from address `base`; `stride` separates the copies of a per-workgroup or per-thread space."""

    __slots__ = (
        "_fresh", "_poison", "_poison_views", "_views",
        "base", "data", "element", "flags", "label", "races", "readonly", "size", "stride",
    )

    def __init__(
        self, base: int, size: int, *, copies: int = 1, label: str = "", readonly: bool = False, element: str = ""
    ) -> None:
        self.base, self.size, self.label, self.readonly, self.element = base, size, label, readonly, element
        self.stride = size + -size % 16
        self.data: Array = np.zeros(max(16, self.stride * copies), dtype=np.uint8)
        self._poison: Array | None = None
        self._fresh = copies  # so many copies whose poison nobody has asked for yet: what is written whole never has any
        self.flags: Array | None = None
        self.races: object | None = None
        self._views: dict[int, Array] = {}
        self._poison_views: dict[int, Array] = {}

    @property
    def poison(self) -> Array | None:
        if self._fresh:
            self._poison, self._fresh = self._all_poison(self._fresh), 0
        return self._poison

    @poison.setter
    def poison(self, poison: Array | None) -> None:
        self._poison, self._fresh = poison, 0

    def _all_poison(self, copies: int) -> Array:
        poison = np.full(len(self.data), 0xFF, dtype=np.uint8)
        if self.stride != self.size or not self.size:
            # Padding belongs to nobody: it must not keep the region from being settled.
            poison[: self.stride * copies].reshape(copies, self.stride)[:, self.size :] = 0
            poison[self.stride * copies :] = 0
        return poison

    def view(self, width: int) -> Array:
        view = self._views.get(width)
        if view is None:
            view = self._views[width] = self.data.view(ELEMENTS[width])
        return view

    def poison_view(self, width: int) -> Array:
        view = self._poison_views.get(width)
        if view is None:
            assert self.poison is not None
            view = self._poison_views[width] = self.poison.view(ELEMENTS[width])
        return view

    def settle(self) -> None:
        """Drop the poison where nothing of it is left."""
        if self.poison is not None and not self.poison.any():
            self.poison = None
            self._poison_views.clear()

    def initialise(self, offset: int, data: bytes | memoryview) -> None:
        copy_sparse(self.data[offset : offset + len(data)], np.frombuffer(data, dtype=np.uint8))
        if offset == 0 and len(data) == self.size:
            self.poison = None
            self._poison_views.clear()
        elif self.poison is not None:
            self.poison[offset : offset + len(data)] = 0

    def forget(self, which: Array) -> None:
        """The bytes of the region where `which` is true count as never written; what they hold stays."""
        poison = np.zeros(len(self.data), dtype=np.uint8) if self.poison is None else self.poison
        poison[: self.size][which] = 0xFF
        self.poison = poison
        self._poison_views.clear()


def gather(region: Region, index: Array, width: int) -> Array:
    """Elements of `width` bytes at byte offsets `index` (int64, in range); any alignment."""
    return _take(region.view, index, width)


def gather_poison(region: Region, index: Array, width: int) -> Array:
    assert region.poison is not None
    return _take(region.poison_view, index, width)


def same_bytes(region: Region, index: Array, values: Array, width: int, granule: int) -> Array:
    """Of elements of `width` bytes at byte offsets, flat, by granule of so many bytes whether these values stand there already."""
    now = np.ascontiguousarray(gather(region, np.ascontiguousarray(index), width))
    same = now[..., None].view(np.uint8) == np.ascontiguousarray(values)[..., None].view(np.uint8)
    return same.reshape(len(values), -1, granule).all(axis=2)


def common_alignment(index: Array, width: int) -> int:
    """The largest power of two up to `width` of which all offsets are multiples."""
    together = int(np.bitwise_or.reduce(index, axis=None)) | width
    return together & -together


def _take(view: Callable[[int], Array], index: Array, width: int) -> Array:
    part = common_alignment(index, width)
    first = index >> (part.bit_length() - 1)
    if part == width:
        return np.take(view(width), first)
    taken = np.take(view(part), first[..., None] + np.arange(width // part))
    return taken.view(ELEMENTS[width])[..., 0]


def scatter(data: Array, view: Array, index: Array, values: Array, width: int) -> None:
    """Write elements at byte offsets; where offsets are equal, the last one stays. `view` is `data` as such elements."""
    part = common_alignment(index, width)
    if part == width:
        view[index >> (width.bit_length() - 1)] = values
        return
    places = (index >> (part.bit_length() - 1))[..., None] + np.arange(width // part)
    # Where offsets differ but elements overlap, the last one stays as well: assignments go in order.
    data.view(ELEMENTS[part])[places] = np.ascontiguousarray(values)[..., None].view(ELEMENTS[part])


class GlobalMemory:
    """Every live allocation of a device, found by address. Handles are positive integers; 0 is null.

    Addresses that it gives begin at `first`, aligned; all end below `end`, and none is 0, the null pointer. None is given twice as
    long as there are new ones.
    """

    def __init__(self, limit: int = MEMORY_LIMIT, first: int = 1 << 36, end: int = 1 << 64) -> None:
        first = max(first + -first % ALIGNMENT, ALIGNMENT)
        self._by_handle: dict[int, Region] = {}
        self._bases: list[int] = []
        self._regions: list[Region] = []
        self._next_handle = 1
        self._first, self._next_address, self._end = first, first, end
        self._limit = min(limit, end - first)
        self.used = 0
        self.multicast: MulticastWindow | None = None
        self.moments = count(1)  # numbers of accesses with a memory order that somebody writes down, of all launches

    def __iter__(self) -> Iterator[Region]:
        return iter(self._regions)

    @property
    def first(self) -> int:
        """The lowest address that an allocation is given."""
        return self._first

    @property
    def end(self) -> int:
        """Addresses are below it."""
        return self._end

    @property
    def limit(self) -> int:
        """How many bytes all regions may have together."""
        return self._limit

    def allocate(self, size: int, *, label: str = "", readonly: bool = False, element: str = "") -> int:
        """The handle of a new region of `size` uninitialised bytes; reports use its `label` and element type.

        Raises LaunchError (TFW0340) for a negative size, and where too little memory is left.
        """
        if size < 0:
            raise LaunchError(f"an allocation of {size} bytes", code="TFW0340", help="sizes are not negative")
        if self.used + size > self._limit:
            raise LaunchError(
                f"out of simulated memory: {size} bytes asked for, {self._limit - self.used} of {self._limit} free", code="TFW0340"
            )
        return self._added(Region(self._address(size), size, label=label, readonly=readonly, element=element))

    def place(self, address: int, size: int, *, label: str = "", readonly: bool = False, element: str = "") -> int:
        """As `allocate`, at `address`. Raises LaunchError (TFW0340) where a live region is there, or allocations have been."""
        below = self.find(address + size - 1)
        given = self._first < address + size and address < self._next_address
        if given or (below is not None and below.base + below.size > address):
            raise LaunchError(f"out of simulated memory: {size} bytes at {address:#x} are taken", code="TFW0340")
        if self.used + size > self._limit:
            raise LaunchError(f"out of simulated memory: {size} bytes asked for at {address:#x}", code="TFW0340")
        return self._added(Region(address, size, label=label, readonly=readonly, element=element))

    def _added(self, region: Region) -> int:
        handle = self._next_handle
        self._next_handle += 1
        self._by_handle[handle] = region
        place = bisect.bisect_left(self._bases, region.base)
        self._bases.insert(place, region.base)
        self._regions.insert(place, region)
        self.used += region.size
        return handle

    def _address(self, size: int) -> int:
        """Where an allocation goes: behind all that there ever were, or into the first gap that is large enough."""
        room = size + GUARD_BYTES
        room += -room % ALIGNMENT
        if self._next_address + room <= self._end:
            self._next_address += room
            return self._next_address - room
        start = self._first
        for region in self._regions:
            if start + room <= region.base:
                return start
            start = max(start, region.base + region.size + GUARD_BYTES)  # what was placed may lie below
            start += -start % ALIGNMENT
        if start + room <= self._end:
            return start
        raise LaunchError(
            f"out of simulated memory: no {size} bytes in one piece below {self._end:#x}", code="TFW0340",
            help="free unused allocations, or allocate less",
        )

    def free(self, handle: int) -> None:
        """End an allocation. Raises LaunchError (TFW0341) for a handle that has none."""
        region = self.region(handle)
        place = bisect.bisect_left(self._bases, region.base)
        del self._bases[place], self._regions[place], self._by_handle[handle]
        self.used -= region.size

    def region(self, handle: int) -> Region:
        """The live region of a handle. Raises LaunchError (TFW0341) for a handle that has none."""
        region = self._by_handle.get(handle)
        if region is None:
            raise LaunchError(f"no live allocation has handle {handle}", code="TFW0341", help="was it freed?")
        return region

    def nearest(self, address: int) -> Region | None:
        """The region that a wild address most likely meant: the one below it, unless the next one is closer."""
        below = self.find(address)
        place = bisect.bisect_right(self._bases, address)
        above = self._regions[place] if place < len(self._regions) else None
        if below is None or above is None:
            return below or above
        return below if address - (below.base + below.size) <= above.base - address else above

    def find(self, address: int) -> Region | None:
        """The last region that starts at or below the address; None where there is none."""
        place = bisect.bisect_right(self._bases, address) - 1
        if place < 0:
            return None
        return self._regions[place]
