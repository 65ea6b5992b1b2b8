"""Whether the launch can tell a copy engine of the array of a block: its base, its sizes and strides are known there, as numbers.

Lanes copy of an array to which the kernel stores, and of one whose rows do not begin where the engine wants them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import Operation, SSAValue

from tilefw.passes.pointer_origins import arguments_of
from tilefw.simt.description import CopyEngine, LaneMachine
from tilefw.simt.facts import LaneFacts
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.atomic_ops import AtomicOp
from tilefw.tile.dialect.block_ops import BlockAccess
from tilefw.tile.dialect.kernel_info import is_argument
from tilefw.tile.nested_ops import nested_ops

_BEYOND = (1 << 31) - 1  # elements of a dim that nothing bounds


@dataclass(frozen=True)
class BlockArray:
    """The number of the argument that is the base; the dims of the block, innermost first (`order`); in that order the sizes, and
    the strides of all dims but the innermost: numbers, or numbers of arguments."""

    base: int
    order: tuple[int, ...]
    sizes: tuple[int | str, ...]
    strides: tuple[int | str, ...]


def engine_of(machine: LaneMachine, op: Operation) -> CopyEngine | None:
    """The engine that may make a copy at the place of an op: one that counting barriers tell of, in one workgroup, whose phases
    are counted in the function and in its counted loops."""
    chip = machine.chip
    if chip.copy_engine is None or not chip.barrier_bytes or machine.workgroups > 1:
        return None
    around = op.parent_op()
    while isinstance(around, ForOp):
        around = around.parent_op()
    return chip.copy_engine if isinstance(around, FuncOp) else None


def array_of(function: FuncOp, facts: LaneFacts, op: BlockAccess, engine: CopyEngine) -> BlockArray | None:
    """The array of a block; None where the launch cannot describe it, or the engine does not take it."""
    base, dtype = op.base, types.dtype_of(types.element_of(op.block_type))
    size, order = dtype.storage_bits // 8, _innermost_first(facts, op)
    if order is None or op.rank > engine.rank or not is_argument(base) or size not in engine.element_bytes:
        return None
    starts = [facts.divisor(base), *(facts.divisor(op.strides[dim]) * size for dim in order[1:])]
    if any(start % engine.alignment for start in starts) or _is_stored_to(function, base):
        return None
    sizes = [_BEYOND if (bound := op.shape[dim]) is None else _measure(facts, bound) for dim in order]
    strides = [_measure(facts, op.strides[dim]) for dim in order[1:]]
    if any(measure is None for measure in (*sizes, *strides)) or not all(_is_near(facts, offset) for offset in op.offsets):
        return None
    return BlockArray(base.index, tuple(order), tuple(sizes), tuple(strides))  # type: ignore[arg-type]


def _innermost_first(facts: LaneFacts, op: BlockAccess) -> Sequence[int] | None:
    """The dims of the block, that of neighbours first; None where that is not clear."""
    dense = [dim for dim, stride in enumerate(op.strides) if facts.constant(stride) == 1]
    return [dense[0], *(dim for dim in reversed(range(op.rank)) if dim != dense[0])] if len(dense) == 1 else None


def _measure(facts: LaneFacts, value: SSAValue) -> int | str | None:
    """A number that the launch knows: one that is fixed, or an argument's; None for any other."""
    fixed = facts.constant(value)
    if fixed is not None:
        return fixed
    while isinstance(value.owner, Operation) and value.owner.name == "tile.exts":
        value = value.owner.operands[0]
    return str(value.index) if is_argument(value) else None


def _is_stored_to(function: FuncOp, base: SSAValue) -> bool:
    """Whether the kernel stores to the array by itself: what lanes stored an engine sees behind barriers, and fences of global
    memory, that no pass places."""
    stores = [op for op in nested_ops(function) if isinstance(op, ops.StoreOp | ops.StoreBlockOp | AtomicOp)]
    roots = [arguments_of(op.base if isinstance(op, ops.StoreBlockOp) else op.pointer) for op in stores]
    return any(found is None or base in found for found in roots)


def _is_near(facts: LaneFacts, offset: SSAValue) -> bool:
    """Whether a place in the array is a number of 32 bits."""
    if offset.type == types.i32:
        return True
    reach = facts.reach(offset)
    return reach is not None and reach < 1 << 31
