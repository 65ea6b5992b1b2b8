"""Selection of copies and stores by engines."""

from __future__ import annotations

from tilefw.simt import lane
from tilefw.simt.chip_requests import BulkCopy, BulkStore
from tilefw.simt.select.code import Const
from tilefw.simt.select.memory import MemorySelection


class BulkCopySelection:
    """Emits them; `memory` knows addresses."""

    def __init__(self, memory: MemorySelection) -> None:
        self.memory = memory
        self.values = memory.values
        self.code = memory.code
        self.chip = memory.chip

    def copy(self, op: lane.BulkCopyOp) -> None:
        """A copy by one thread."""
        when = self.memory.guard(op.part("when"), 0)
        if isinstance(when, Const):
            return
        address, immediate = self.memory.address(op.needed("address"), (0, 0))
        barrier, barrier_immediate = self.memory.address(op.needed("barrier"), (0, 0))
        places = tuple(self.values.element(value, 0) for value in op.at)
        self.chip.bulk_copy(self.code, BulkCopy(
            address, immediate, self.memory.register(op.needed("descriptor"), 0), places, barrier, barrier_immediate,
            when, op.buffer, self.memory.cluster.workgroups,
        ))

    def store(self, op: lane.BulkStoreOp) -> None:
        """A store by one thread."""
        when = self.memory.guard(op.part("when"), 0)
        if isinstance(when, Const):
            return
        address, immediate = self.memory.address(op.needed("address"), (0, 0))
        places = tuple(self.values.element(value, 0) for value in op.at)
        descriptor = self.memory.register(op.needed("descriptor"), 0)
        self.chip.bulk_store(self.code, BulkStore(address, immediate, descriptor, places, when, op.buffer))

    def finish_stores(self, op: lane.BulkStoreWaitOp) -> None:
        """The wait of that thread."""
        when = self.memory.guard(op.part("when"), 0)
        if not isinstance(when, Const):
            self.chip.finish_bulk_stores(self.code, when, op.written)
