"""Selection of copies by engines."""

from __future__ import annotations

from tilefw.simt import lane
from tilefw.simt.chip import BulkCopy
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
            when, op.buffer,
        ))
