"""Stores of a copy engine in the lane interpreter: a block of shared memory on its way to an array, read and written as
late as it may be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilefw.api.device import DescribedArray
from tilefw.simt.description import CopyEngine
from tilefw.testing.lane_memory import LaneFault, LaneGlobalMemory, LaneSharedMemory
from tilefw.testing.lane_products import swizzled
from tilefw.tile.reference.value import Array


@dataclass(frozen=True)
class _Store:
    """Which bytes go to which addresses, and which the engine reads only because they are in the block."""

    sources: Array
    inside: Array
    addresses: Array


class EngineStores:
    """The stores of one workgroup that its thread has not waited for, and those of which it knows only that they were read."""

    def __init__(self, memory: LaneGlobalMemory) -> None:
        self.memory = memory
        self.under_way: list[_Store] = []
        self.read: list[tuple[Array, Array]] = []  # where to, and what

    def start(
        self, engine: CopyEngine | None, array: DescribedArray, element_bytes: int, shared: LaneSharedMemory, address: int,
        at: Sequence[int], count: int, wave: int,
    ) -> None:
        """The store of the block at `address`, of `count` bytes, to these places, innermost dim first, by a thread of `wave`."""
        if engine is None or not engine.stores:
            raise LaneFault("the chip has no copy engine that stores")
        form = next((each for each in engine.forms if each.row_bytes == array.row_bytes), None)
        aligned = engine.shared_alignment if form is None else form.pattern_bytes
        if address % aligned:
            raise LaneFault(f"an engine's store from shared byte {address}, no multiple of {aligned}")
        if min(at) < 0:
            raise LaneFault(f"an engine's store to place {min(at)} of an array")
        index = np.indices(tuple(reversed(array.extents)))[::-1].reshape(len(array.extents), -1)  # innermost dim first
        if index.shape[1] * element_bytes != count:
            raise LaneFault(f"an engine's store of {index.shape[1] * element_bytes} bytes, not {count}")
        places = index + np.array(at)[:, None]
        strides = np.array([element_bytes, *array.strides])
        sources = address + np.arange(index.shape[1]) * element_bytes
        sources = sources if form is None else swizzled(sources, form)
        shared.engage(sources, element_bytes, wave)
        inside = np.asarray((places < np.array(array.sizes)[:, None]).all(axis=0))
        addresses = array.base + (places * strides[:, None]).sum(axis=0)
        self.under_way.append(_Store(sources[:, None] + np.arange(element_bytes), inside, addresses))

    def wait(self, shared: LaneSharedMemory, written: bool) -> None:
        """The engine has read them; what it read is what was there last. With `written` it has written them, too."""
        for store in self.under_way:
            shared.disengage(store.sources)
            if store.inside.any():
                self.read.append((store.addresses[store.inside], shared.data[store.sources[store.inside]]))
        self.under_way = []
        if written:
            self._write()

    def end(self) -> None:
        """The workgroup ends."""
        if self.under_way:
            raise LaneFault("the kernel ends while an engine reads its shared memory")
        self._write()

    def _write(self) -> None:
        """The last ones first: nobody may rely on another order."""
        while self.read:
            self.memory.write(*self.read.pop())
