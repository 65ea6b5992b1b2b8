"""What some devices can do beside the device protocol, and the runtime makes use of where they can."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from tilefw.api.device import LaunchOptions
from tilefw.hardware.ready_entry import ReadyEntry


@runtime_checkable
class PlacingDevice(Protocol):
    """A device that can have an allocation at an address that it is told."""

    def reaches(self, address: int) -> bool:
        """Whether memory that ends at `address` can be there."""
        ...

    def place(self, address: int, nbytes: int, *, label: str = "", readonly: bool = False, element: str = "") -> int:
        """As `Device.allocate`, at `address`. Raises LaunchError (TFW0340) where other memory is there."""
        ...


@runtime_checkable
class ForgettingDevice(Protocol):
    """A device that can be told that bytes which were copied in count as never written."""

    def forget(self, handle: int, which: np.ndarray) -> None:
        """The bytes of an allocation where `which` is true count as never written; what they hold stays."""
        ...


@runtime_checkable
class SharingDevice(Protocol):
    """A device that uses the host's memory as it is: nothing is copied to it or back."""

    def share(self, address: int, nbytes: int, *, label: str = "", readonly: bool = False, element: str = "") -> int:
        """The handle of memory of this process, until it is freed."""
        ...


@runtime_checkable
class ReadyingDevice(Protocol):
    """A device whose kernels take the addresses of arrays that stay where they are."""

    def ready(self, module: Any, entry: str, options: LaunchOptions) -> ReadyEntry:
        """Launches of an entry without checks."""
        ...
