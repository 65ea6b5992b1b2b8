"""What a simulated device keeps in memory: buffers, and copies to and from them, whatever the chip that it simulates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tilefw.api.errors import LaunchError
from tilefw.multicast_window import MulticastWindow
from tilefw.sim.memory.regions import GlobalMemory


class SimulatedBuffers:
    """The half of `tilefw.api.Device` that is about buffers, in one `GlobalMemory`; handles are its regions'."""

    def __init__(self, memory: GlobalMemory | None = None) -> None:
        self._memory = memory or GlobalMemory()

    def allocate(self, nbytes: int, *, label: str = "", readonly: bool = False, element: str = "") -> int:
        """As `Device.allocate`: the handle of `nbytes` uninitialised bytes. Raises LaunchError (TFW0340)."""
        return self._memory.allocate(nbytes, label=label, readonly=readonly, element=element)

    def reaches(self, address: int) -> bool:
        """Whether memory that ends at `address` can be there. It may lie below what is allocated: the heap of a host's process does
        where its program has a fixed place."""
        return 0 < address <= self._memory.end

    def place(self, address: int, nbytes: int, *, label: str = "", readonly: bool = False, element: str = "") -> int:
        """As `allocate`, at `address`. Raises LaunchError (TFW0340)."""
        return self._memory.place(address, nbytes, label=label, readonly=readonly, element=element)

    def map_multicast(self, window: MulticastWindow | None) -> None:
        """From now on the node has this multicast mapping, or none."""
        self._memory.multicast = window

    def free(self, handle: int) -> None:
        """As `Device.free`. Raises LaunchError (TFW0341) for a handle without an allocation."""
        self._memory.free(handle)

    def write(self, handle: int, data: Any, offset: int = 0) -> None:
        """As `Device.write`. Raises LaunchError: TFW0341 for the handle, TFW0345 for bytes beyond the allocation."""
        view = memoryview(data).cast("B")
        self._check_range(handle, len(view), offset)
        self._memory.region(handle).initialise(offset, view)

    def forget(self, handle: int, which: np.ndarray) -> None:
        """The bytes of an allocation where `which` is true count as never written. Raises LaunchError (TFW0341, TFW0345)."""
        self._check_range(handle, len(which), 0)
        self._memory.region(handle).forget(which)

    def read(self, handle: int, nbytes: int, offset: int = 0) -> bytes:
        """As `Device.read`. Raises LaunchError: TFW0341 for the handle, TFW0345 for bytes beyond the allocation."""
        self._check_range(handle, nbytes, offset)
        return self._memory.region(handle).data[offset : offset + nbytes].tobytes()

    def _check_range(self, handle: int, nbytes: int, offset: int) -> None:
        size = self._memory.region(handle).size
        if offset < 0 or nbytes < 0 or offset + nbytes > size:
            raise LaunchError(f"a copy of {nbytes} bytes at offset {offset} of an allocation of {size}", code="TFW0345")

    def memory_info(self) -> Mapping[str, int]:
        """As `Device.memory_info`: the bytes that are `total`, `used` and `free`."""
        return {"total": self._memory.limit, "used": self._memory.used, "free": self._memory.limit - self._memory.used}
