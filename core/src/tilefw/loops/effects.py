"""Order and aliasing as questions: what an op does to memory, whether two accesses may overlap, whether a load may wait.

Pointers are followed to the kernel's arguments. Two arguments may point to one buffer unless the launch says that they are
`disjoint`. An atomic with acquire or release order, a barrier, a trap and a load that looks anew each time order
everything.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from tilefw.passes.pointer_origins import arguments_of, written_pointer
from tilefw.passes.side_effects import fetches_anew, may_write
from tilefw.tile.dialect.atomic_ops import AtomicOp
from tilefw.tile.nested_ops import nested_ops


@dataclass(frozen=True, slots=True)
class Effects:
    """The questions, for one launch's facts. `disjoint`: buffers of different arguments do not overlap."""

    disjoint: bool = False

    def may_overlap(self, a: SSAValue, b: SSAValue) -> bool:
        """Whether accesses through two pointers may touch one byte."""
        first, second = arguments_of(a), arguments_of(b)
        return first is None or second is None or not self.disjoint or not first.isdisjoint(second)

    def may_change(self, op: Operation, pointer: SSAValue) -> bool:
        """Whether an op, or one inside it, may write what is read through `pointer`, or wait for another program that does."""
        if fetches_anew(op):
            return True
        if not may_write(op):
            return False
        writes = [inner for inner in nested_ops(op) if not inner.regions and may_write(inner)]
        # Behind a release another program may write, wherever it is.
        targets = [None if isinstance(inner, AtomicOp) and inner.releases else written_pointer(inner) for inner in writes]
        return any(target is None or self.may_overlap(target, pointer) for target in targets)

    def may_wait(self, load: Operation, pointer: SSAValue, until: Operation) -> bool:
        """Whether a load may read its elements one by one while `until`, a later op of its block, is carried out."""
        if load.parent is not until.parent:
            return False
        op = load.next_op
        while op is not None:
            if self.may_change(op, pointer):
                return False
            if op is until:
                return True
            op = op.next_op
        return False
