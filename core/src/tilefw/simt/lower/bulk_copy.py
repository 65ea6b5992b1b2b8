"""Lowering of copies of blocks by a copy engine, where the launch can describe the array and its block lies as engines put it.

The array's base is a kernel's argument; its extents and strides are numbers or arguments. The function gets a hidden argument more,
the descriptor that the launch makes of them (`tilefw.copy_descriptors`). Lanes copy of an array to which the kernel stores.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import Attribute, Operation, SSAValue

from tilefw.copy_descriptors import CopyDescriptor
from tilefw.passes.pointer_origins import arguments_of
from tilefw.simt import lane
from tilefw.simt.description import CopyEngine
from tilefw.simt.layout.shared import SharedLayout
from tilefw.simt.layout.shared_operand import SharedOperand
from tilefw.simt.lower.context import LoweringContext, SharedView
from tilefw.simt.lower.memory import argument_of
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.atomic_ops import AtomicOp
from tilefw.tile.dialect.base import integer_attr, string_attr
from tilefw.tile.dialect.copy_ops import CopyBlockOp
from tilefw.tile.dialect.kernel_info import is_argument
from tilefw.tile.nested_ops import nested_ops

_BEYOND = (1 << 31) - 1  # elements of a dim that nothing bounds
_BEFORE = -(1 << 30)  # further before an array than any block reaches


@dataclass(frozen=True)
class _Boxes:
    """How an engine fetches a block, of dims innermost first: `extents` of each copy, where each begins in the block along the
    innermost dim, in elements, and in the buffer, in bytes; the bytes of a row whose pieces are exchanged, 0 for none."""

    extents: tuple[int, ...]
    places: tuple[tuple[int, int], ...]
    row_bytes: int


def copy_block(context: LoweringContext, op: CopyBlockOp) -> bool:
    """Have the engine make the copy; False where it cannot."""
    engine, view = context.machine.chip.copy_engine, context.views[op.view]
    if engine is None or not context.machine.chip.barrier_bytes or context.machine.workgroups > 1 or not _in_loops_alone(op):
        return False
    order = _innermost_first(context, op)
    if order is None or len(order) > engine.rank:
        return False
    boxes, array = _boxes(op, order, view.layout, engine), _described(context, op, order, engine)
    dtype = types.dtype_of(types.element_of(op.block_type))
    if boxes is None or array is None or math.prod(op.block) * dtype.storage_bits // 8 % engine.shared_alignment:
        return False  # or a ring's slots begin where the engine does not write
    base, sizes, strides = array
    descriptor = CopyDescriptor(
        base, sizes, strides, boxes.extents, dtype.name, dtype.storage_bits // 8, boxes.row_bytes, engine.alignment
    )
    _start(context, op, order, boxes, context.descriptor(str(descriptor)), view)
    return True


def _in_loops_alone(op: Operation) -> bool:
    """Whether the op stands in the function or in its counted loops: phases are counted there."""
    around = op.parent_op()
    while isinstance(around, ForOp):
        around = around.parent_op()
    return isinstance(around, FuncOp)


def _innermost_first(context: LoweringContext, op: CopyBlockOp) -> list[int] | None:
    """The dims of the block, that of neighbours first; None where that is not clear."""
    dense = [dim for dim, stride in enumerate(op.strides) if context.facts.constant(stride) == 1]
    return [dense[0], *(dim for dim in reversed(range(op.rank)) if dim != dense[0])] if len(dense) == 1 else None


def _described(
    context: LoweringContext, op: CopyBlockOp, order: Sequence[int], engine: CopyEngine
) -> tuple[int, tuple[int | str, ...], tuple[int | str, ...]] | None:
    """The number of the argument that is the array's base, its sizes and the strides of all dims but the innermost."""
    base, facts = op.base, context.facts
    size = types.dtype_of(types.element_of(op.block_type)).storage_bits // 8
    if not is_argument(base) or size not in engine.element_bytes or facts.divisor(base) % engine.alignment:
        return None
    if _is_stored_to(context.function, base):
        return None
    if any(facts.divisor(op.strides[dim]) * size % engine.alignment for dim in order[1:]):
        return None
    sizes = [_BEYOND if (bound := op.shape[dim]) is None else _measure(context, bound) for dim in order]
    strides = [_measure(context, op.strides[dim]) for dim in order[1:]]
    if any(measure is None for measure in (*sizes, *strides)) or not all(_is_near(context, offset) for offset in op.offsets):
        return None
    return base.index, tuple(sizes), tuple(strides)  # type: ignore[arg-type]


def _measure(context: LoweringContext, value: SSAValue) -> int | str | None:
    """A number that the launch knows: one that is fixed, or an argument's; None for any other."""
    fixed = context.facts.constant(value)
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


def _is_near(context: LoweringContext, offset: SSAValue) -> bool:
    """Whether a place in the array is a number of 32 bits."""
    if offset.type == types.i32:
        return True
    reach = context.facts.reach(offset)
    return reach is not None and reach < 1 << 31


def _boxes(op: CopyBlockOp, order: Sequence[int], layout: SharedLayout, engine: CopyEngine) -> _Boxes | None:
    """The copies that fill a buffer of this layout; None where no engine's do."""
    bits, shape = types.dtype_of(types.element_of(op.block_type)).storage_bits, op.block
    return next((found for found in _ways(bits, shape, order, layout, engine) if max(found.extents) <= engine.extent), None)


def _ways(
    bits: int, shape: Sequence[int], order: Sequence[int], layout: SharedLayout, engine: CopyEngine
) -> Iterator[_Boxes]:
    fast, row = order[0], shape[order[0]] * bits // 8
    if len(shape) == 2:
        for form in engine.forms:
            elements = form.row_bytes * 8 // bits
            if elements > shape[fast] or form.rows > shape[order[1]]:
                continue
            operand = SharedOperand(form, tuple(shape), bits, fast)
            if operand.layout == layout:
                places = tuple((i * elements, i * operand.row_stride) for i in range(shape[fast] // elements))
                yield _Boxes((elements, shape[order[1]]), places, form.row_bytes)
    if layout.bases == _plain(shape, order) and row % engine.alignment == 0:
        yield _Boxes(tuple(shape[dim] for dim in order), ((0, 0),), 0)


def _plain(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """The bases of a buffer whose rows follow one another as they are."""
    strides, stride = [0] * len(shape), 1
    for dim in reversed(range(len(shape))):
        strides[dim], stride = stride, stride * shape[dim]
    return tuple(strides[dim] << i for dim in order for i in range(shape[dim].bit_length() - 1))


def _start(
    context: LoweringContext, op: CopyBlockOp, order: Sequence[int], boxes: _Boxes, descriptor: SSAValue, view: SharedView
) -> None:
    """One thread starts the copies of a block's parts."""
    builder, vec1 = context.builder, lane.vector(1, types.i32)
    first = builder.op("eqi", context.address.thread_id(), builder.constant(0, vec1))
    when = None if op.when is None else builder.splat(context.scalars[op.when], 1)
    when = context.address.both(when, first)
    assert when is not None
    size = math.prod(boxes.extents) * types.dtype_of(types.element_of(op.block_type)).storage_bits // 8
    starts = [_begin(context, op, dim) for dim in order]
    for along, offset in boxes.places:
        address = builder.op("addi", view.address, builder.constant(offset, types.i32))
        at = [builder.op("addi", starts[0], builder.constant(along, types.i32)), *starts[1:]]
        parts = {"address": address, "descriptor": descriptor, **{f"at{i}": value for i, value in enumerate(at)}, "when": when}
        properties: dict[str, Attribute] = {
            "parts": string_attr(",".join(parts)), "bytes": integer_attr(size), "argument": integer_attr(argument_of(op.base)),
            **lane.shared_properties(view.buffer, view.slots, view.phase),
        }
        builder.insert(lane.BulkCopyOp.create(operands=list(parts.values()), properties=properties))


def _begin(context: LoweringContext, op: CopyBlockOp, dim: int) -> SSAValue:
    """Where the block begins along a dim. Engines know no dim of no elements, and are told of one (`CopyDescriptor.described`): all
    of the block is before that, so that zeros come."""
    start, size = _narrow(context, op.offsets[dim]), op.shape[dim]
    if size is None or ((fixed := context.facts.constant(size)) is not None and fixed > 0):
        return start
    builder, value = context.builder, context.scalars[size]
    some = builder.op("lts", builder.constant(0, value.type), value)
    return builder.op("select", some, start, builder.constant(_BEFORE, types.i32))


def _narrow(context: LoweringContext, offset: SSAValue) -> SSAValue:
    value = context.scalars[offset]
    return value if value.type == types.i32 else context.builder.op("trunci", value, result=types.i32)
