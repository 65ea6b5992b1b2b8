"""Selection of copies by engines."""

from __future__ import annotations

from xdsl.ir import SSAValue

from tilefw.machine.inst import Slice
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
        address, immediate = self.memory.address(op.needed("address"), (0, 0))
        barrier, barrier_immediate = self.memory.address(op.needed("barrier"), (0, 0))
        places = tuple(self.values.element(value, 0) for value in op.at)
        self.chip.bulk_copy(self.code, BulkCopy(
            address, immediate, self.memory.register(op.needed("descriptor"), 0), places, barrier, barrier_immediate,
            self._predicate(op.part("when")), op.buffer,
        ))

    def _predicate(self, when: SSAValue | None) -> Slice | None:
        element = None if when is None else self.values.element(when, 0)
        if not isinstance(element, Const):
            return element
        register = self.code.new_register("i1")
        self.chip.move(self.code, register, element)
        return register
