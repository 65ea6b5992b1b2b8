"""Whether a copy engine may miss what a kernel's lanes stored to the array that it reads.

An engine sees what lanes stored to global memory behind a fence of its view and a barrier, which no pass places: lanes copy then.
A store through the array's own argument counts wherever it stands, as other programs may make it. One through another argument
counts unless the launch knows that buffers do not overlap, and only where it may come before the copy: the copy is waited for
before what follows it.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import IfOp
from xdsl.ir import Operation, SSAValue

from tilefw.passes.pointer_origins import arguments_of
from tilefw.passes.side_effects import fetches_anew, may_write
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.atomic_ops import AtomicOp
from tilefw.tile.dialect.inline_asm_op import InlineAsmOp
from tilefw.tile.nested_ops import nested_ops


def may_miss_stores(function: FuncOp, copy: Operation, base: SSAValue, disjoint: bool) -> bool:
    """Whether an engine that makes `copy`, from an array behind the argument `base`, may read what was there before a store.

    `disjoint`: buffers of different arguments do not overlap.
    """
    inside = nested_ops(function)
    roots = [arguments_of(pointer) for op in inside for pointer in _stored_through(op)]
    if any(found is None or base in found for found in roots):
        return True
    if disjoint or not roots:
        return False
    last = nested_ops(_repeated_with(copy))[-1]
    return any(_stored_through(op) or (not op.regions and fetches_anew(op)) for op in inside[: inside.index(last)])


def _repeated_with(op: Operation) -> Operation:
    """The outermost loop around an op; the op itself where there is none."""
    found, around = op, op.parent_op()
    while around is not None and not isinstance(around, FuncOp):
        found, around = found if isinstance(around, IfOp) else around, around.parent_op()
    return found


def _stored_through(op: Operation) -> Sequence[SSAValue]:
    """The pointers through which an op may store: of assembly text that has effects all that it is given."""
    if isinstance(op, ops.StoreBlockOp):
        return (op.base,)
    if isinstance(op, ops.StoreOp | AtomicOp):
        return (op.pointer,)
    if isinstance(op, InlineAsmOp) and may_write(op):
        return [operand for operand in op.operands if types.is_pointer(operand.type)]
    return ()
