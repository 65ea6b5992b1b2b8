"""Whether a copy engine may miss what a kernel's lanes stored to the array that it reads, or they what it stores.

An engine sees what lanes stored to global memory behind a fence of its view and a barrier, which no pass places: lanes copy then.
A store through the array's own argument counts wherever it stands, as other programs may make it. One through another argument
counts unless the launch knows that buffers do not overlap, and only where it may come before the copy: the copy is waited for
before what follows it. An acquire before it counts always: it shows stores of other programs, or of other devices.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp, IfOp
from xdsl.ir import Operation, SSAValue

from tilefw.passes.pointer_origins import arguments_of
from tilefw.passes.side_effects import fetches_anew, may_write
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.atomic_ops import AtomicOp, FenceOp
from tilefw.tile.dialect.copy_ops import CopyBlockOp, CopyOp
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
    last = nested_ops(_repeated_with(copy))[-1]
    return any(_acquires(op) or (_stored_through(op) and not disjoint) for op in inside[: inside.index(last)])


def stores_alone(function: FuncOp, store: ops.StoreBlockOp, disjoint: bool) -> bool:
    """Whether nothing but `store`, which stands in counted loops alone, and those beside it accesses the array: an engine writes it
    in its own view, some time before the kernel is over, and no fence orders that with other accesses. Reads of other arguments
    that may overlap come before it."""
    roots, inside = arguments_of(store.base), nested_ops(function)
    outermost: Operation = store
    while isinstance(around := outermost.parent_op(), ForOp):
        outermost = around
    if roots is None or around is not function or any(_orders_programs(op) for op in inside):
        return False
    behind = set(inside[inside.index(outermost) + (outermost is store) :])
    own = {store, *beside(store)}
    for op in inside:
        for pointer in () if op in own else (*_stored_through(op), *_loaded_through(op)):
            found = arguments_of(pointer)
            if found is None or not roots.isdisjoint(found) or (not disjoint and (op in behind or _stored_through(op))):
                return False
    return True


def beside(store: ops.StoreBlockOp) -> list[ops.StoreBlockOp]:
    """The other stores of such blocks to the array in the same iteration of a loop: an engine makes them one after the other."""
    block = store.parent
    if block is None or not isinstance(store.parent_op(), ForOp):
        return []
    found = [op for op in block.ops if isinstance(op, ops.StoreBlockOp) and op is not store]
    return [op for op in found if op.base is store.base and op.value.type == store.value.type]


def _acquires(op: Operation) -> bool:
    """Whether the program may see behind an op what others have stored, under whatever name."""
    return op.acquires if isinstance(op, AtomicOp | FenceOp) else not op.regions and fetches_anew(op)


def _orders_programs(op: Operation) -> bool:
    """Whether an op may tell other programs, or wait for what they tell: what they then read is no business of an engine's."""
    if isinstance(op, AtomicOp | FenceOp | ops.BarrierOp) or (isinstance(op, InlineAsmOp) and may_write(op)):
        return True
    return not op.regions and fetches_anew(op)


def _loaded_through(op: Operation) -> Sequence[SSAValue]:
    if isinstance(op, ops.LoadOp | CopyOp):
        return (op.pointer,)
    return (op.base,) if isinstance(op, ops.LoadBlockOp | CopyBlockOp) else ()


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
