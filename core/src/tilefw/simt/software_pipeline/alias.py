"""Which loads of a loop may be issued some iterations early: those whose memory nothing in the loop can write.

Pointers are followed to the kernel's arguments. A store through one argument may write what another points to, unless the
launch guarantees that the buffers do not overlap. An atomic with acquire order makes other threads' writes visible, wherever they
are: no load may be issued before it.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation, SSAValue

from tilefw.passes.pointer_origins import arguments_of, written_pointer
from tilefw.passes.side_effects import may_write


class LoopWrites:
    """What ops, of a loop or of more of a kernel, may write: arguments of the kernel, or anything at all."""

    def __init__(self, inside: Sequence[Operation], disjoint: bool) -> None:
        self._disjoint = disjoint
        self._written: set[SSAValue] = set()
        self._anything = False
        for op in inside:
            if not op.regions and not isinstance(op, ReturnOp) and may_write(op):
                self._add(op)

    def _add(self, op: Operation) -> None:
        pointer = written_pointer(op)
        roots = None if pointer is None else arguments_of(pointer)
        if roots is None:
            self._anything = True
        else:
            self._written |= roots

    def may_write(self, pointer: SSAValue) -> bool:
        """Whether a write of the loop may change what a load through `pointer` reads."""
        if self._anything:
            return True
        if not self._written:
            return False
        roots = arguments_of(pointer)
        return roots is None or not self._disjoint or not roots.isdisjoint(self._written)
