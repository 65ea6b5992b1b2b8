"""One launch on the reference interpreter over copies of its arrays; no array is written but by `copy_back`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tilefw.api.device import DEFAULT_BUDGET
from tilefw.runtime.arguments.arrays import HostArray, Storage, host_array, is_array, storages
from tilefw.runtime.arguments.registered import registered
from tilefw.runtime.arguments.unwritten import unwritten as unwritten_bytes

if TYPE_CHECKING:
    from tilefw.api.ir import ModuleOp
    from tilefw.tile.reference.interpret import RefReport
    from tilefw.tile.reference.memory import RefBuffer


class InterpretedLaunch:
    """The arguments of a launch by name, their arrays copied. `unwritten`: what the host has never written of an array counts as
    uninitialised (`tilefw.empty`)."""

    def __init__(self, values: Mapping[str, Any], *, unwritten: bool = False) -> None:
        from tilefw.tile.reference.memory import RefMemory

        self.memory = RefMemory()
        self._values = values
        self.hosts = {name: host_array(value) for name, value in values.items() if is_array(value)}
        self._reached = reached = registered()  # which must live until the copies have gone back
        stores = storages([*self.hosts.items(), *reached])
        placed = {store.start for store in stores if any(store.holds(array) for _, array in reached)}
        stores.sort(key=lambda store: store.start not in placed)  # so that none of the others takes their place
        self._stores = stores
        self._copies = {storage.start: self._copied(storage, unwritten, storage.start in placed) for storage in stores}

    def _copied(self, storage: Storage, unwritten: bool, placed: bool) -> RefBuffer:
        known = storage.nbytes, storage.label, storage.readonly
        buffer = self.memory.place(storage.start, *known) if placed else self.memory.allocate(*known)
        raw = storage.view()
        buffer.write_bytes(raw)
        left = unwritten_bytes(raw) if unwritten else None
        if left is not None:
            buffer.initialised = ~left
        return buffer

    def below(self, host: HostArray) -> tuple[int, RefBuffer]:
        """The copy that holds an array's memory, and at how many bytes in it the array begins."""
        start = next(start for start in sorted(self._copies, reverse=True) if start <= host.start)
        return host.address - start, self._copies[start]

    def run(
        self, module: ModuleOp, grid: tuple[int, int, int], *, fusion: bool = True, budget: int = DEFAULT_BUDGET,
        checks: frozenset[str] | None = None,
    ) -> RefReport:
        """Execute the module's only kernel. Raises IRError, LaunchError."""
        from tilefw.tile.reference.interpret import run

        return run(module, None, grid, self.arguments, memory=self.memory, fusion=fusion, budget=budget, checks=checks)

    @property
    def arguments(self) -> list[Any]:
        """The arguments in order, arrays as places in their copies."""
        return [self._argument(name, value) for name, value in self._values.items()]

    def copy_back(self) -> None:
        """Write what the copies hold by now to the arrays."""
        for storage in self._stores:
            if storage.nbytes and not storage.readonly:
                storage.view()[:] = np.frombuffer(self._copies[storage.start].read_bytes(storage.nbytes), np.uint8)

    def _argument(self, name: str, value: Any) -> Any:
        from tilefw.tile.reference.interpret import RefPointer

        if name not in self.hosts:
            return value
        offset, buffer = self.below(self.hosts[name])
        return RefPointer(buffer, offset)
