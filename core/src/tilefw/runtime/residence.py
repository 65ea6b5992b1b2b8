"""Arrays of the host that stay on a device from launch to launch: copied in before the first that has them, and back when the host
is to see them.

Whoever opens a residence says when the host looks at memory or writes it (`leave`): launches alone do not tell. A device that works
on the host's memory as it is needs none, and the interpreter has none: it would keep values between launches that storage rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilefw.api.device import Completion, Device
from tilefw.runtime.arguments.arrays import Storage
from tilefw.runtime.device_abilities import SharingDevice


@dataclass(slots=True)
class _ResidentArray:
    """Memory of the host and its allocation. `changed`: what the device has is newer. `mark` is for who opened the residence."""

    storage: Storage
    handle: int
    alive: Callable[[], bool]
    changed: bool = False
    mark: Any = None

    def meets(self, start: int, nbytes: int) -> bool:
        """Whether it has a byte of this stretch."""
        return self.storage.start < start + nbytes and start < self.storage.start + self.storage.nbytes


class Residence:
    """Launches on `device` within `opened()` leave arrays there; `lock` is held by who launches. `watch` says of an array's owner
    how one learns whether its memory is still there; without it the owner is kept. `written_bytes` and `read_bytes` count what was
    copied to the device and from it."""

    def __init__(
        self, device: Device, lock: AbstractContextManager[Any], watch: Callable[[Any], Callable[[], bool]] | None = None
    ) -> None:
        self.device, self._lock = device, lock
        self.written_bytes = self.read_bytes = 0
        self._last: Completion | None = None
        self._watch = watch
        self._stays: dict[tuple[int, int], _ResidentArray] = {}

    @contextmanager
    def opened(self) -> Iterator[Residence]:
        """Launches of this context leave their arrays on the device; at the end the host has all that they changed."""
        token = RESIDENCE.set(self)
        try:
            yield self
        finally:
            RESIDENCE.reset(token)
            self._bring_back()

    def enter(self, stores: Sequence[Storage], owners: Mapping[int, Any]) -> list[int]:
        """The handles of stretches of memory, `owners` by their starts, which are copied in unless they are there."""
        self._free_dead()
        return [self._entered(storage, owners.get(storage.start)) for storage in stores]

    def changed(self, storage: Storage, by: Completion | None) -> None:
        """The newest launch writes it; `by` is there where that may still run."""
        self._stays[storage.start, storage.nbytes].changed = True
        self._last = by

    def leave(self, start: int, nbytes: int) -> None:
        """The host is to read or write these bytes: it has the newest, and the next launch copies them in again."""
        with self._lock:
            for key in [key for key, stay in self._stays.items() if stay.meets(start, nbytes)]:
                self._read(self._stays[key])
                self._free(key)

    def keep(self, marks: Mapping[tuple[int, int], Any]) -> None:
        """Free all but stretches with a mark, by their starts and numbers of bytes: they stay for another opening."""
        with self._lock:
            for key, stay in list(self._stays.items()):
                if key not in marks or stay.changed or not stay.alive():
                    self._free(key)
                else:
                    stay.mark = marks[key]

    def close(self) -> None:
        """Free all."""
        with self._lock:
            for key in list(self._stays):
                self._free(key)

    def marks(self) -> dict[tuple[int, int], Any]:
        """What was marked, of memory that is still there."""
        return {key: stay.mark for key, stay in self._stays.items() if stay.alive()}

    def _entered(self, storage: Storage, owner: Any) -> int:
        found = self._stays.get((storage.start, storage.nbytes))
        if found is not None:
            return found.handle
        self.leave(storage.start, storage.nbytes)
        handle = self.device.allocate(storage.nbytes, label=storage.label, element=storage.element)
        alive = self._watch(owner) if self._watch is not None and owner is not None else _kept(owner)
        self._stays[storage.start, storage.nbytes] = _ResidentArray(storage, handle, alive)
        if storage.nbytes:
            self.device.write(handle, storage.view())
            self.written_bytes += storage.nbytes
        return handle

    def _bring_back(self) -> None:
        with self._lock:
            self._free_dead()
            for stay in self._stays.values():
                self._read(stay)

    def _read(self, stay: _ResidentArray) -> None:
        if not stay.changed:
            return
        if self._last is not None:
            completion, self._last = self._last, None
            completion.wait()
        stay.changed = False
        if stay.storage.nbytes and stay.alive():
            np.copyto(stay.storage.view(), np.frombuffer(self.device.read(stay.handle, stay.storage.nbytes), np.uint8))
            self.read_bytes += stay.storage.nbytes

    def _free_dead(self) -> None:
        for key in [key for key, stay in self._stays.items() if not stay.alive()]:
            self._free(key)

    def _free(self, key: tuple[int, int]) -> None:
        self.device.free(self._stays.pop(key).handle)


def _kept(owner: Any) -> Callable[[], bool]:
    return lambda kept=owner: True


RESIDENCE: ContextVar[Residence | None] = ContextVar("tilefw_residence", default=None)


def staying(device: Device, stores: Sequence[Storage], serves: bool) -> Residence | None:
    """Where the memory of a launch on a device stays, in this context: nowhere if it may not be written, or `serves` is false. Then
    what there is of it leaves."""
    residence = RESIDENCE.get()
    if residence is None or residence.device is not device:
        return None
    if serves and not any(storage.readonly for storage in stores):
        return residence
    for storage in stores:
        residence.leave(storage.start, storage.nbytes)
    return None


def keeps(device: Device) -> bool:
    """Whether a residence on the device is of use: neither an interpreter nor one that works on the host's memory."""
    return device.executor != "ref" and not isinstance(device, SharingDevice)
