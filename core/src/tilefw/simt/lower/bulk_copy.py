"""Lowering of copies of blocks by a copy engine, where the launch can describe the array and its block lies as engines put it.

The function gets a hidden argument more, the descriptor that the launch makes (`tilefw.copy_descriptors`) of the array
(`described_array.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute, SSAValue

from tilefw.copy_descriptors import CopyDescriptor
from tilefw.simt import lane
from tilefw.simt.assign.staging import buffer_of_view, users_of
from tilefw.simt.description import CopyEngine
from tilefw.simt.layout.shared import SharedLayout
from tilefw.simt.layout.shared_operand import SharedOperand
from tilefw.simt.lower.context import LoweringContext, SharedView
from tilefw.simt.lower.described_array import BlockArray, array_of, engine_of
from tilefw.simt.lower.memory import argument_of
from tilefw.tile import types
from tilefw.tile.dialect.base import integer_attr, string_attr
from tilefw.tile.dialect.copy_ops import CopyBlockOp, CopyOp

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
    engine, view = engine_of(context.machine, op), context.views[op.view]
    array = None if engine is None else array_of(context.function, context.facts, op, engine)
    if engine is None or array is None or not _fills_alone(context, op, engine):
        return False
    boxes = _boxes(op, array.order, view.layout, engine)
    dtype = types.dtype_of(types.element_of(op.block_type))
    if boxes is None or math.prod(op.block) * dtype.storage_bits // 8 % engine.shared_alignment:
        return False  # or a ring's slots begin where the engine does not write
    extents = (*boxes.extents, *(1 for _ in array.outer))
    descriptor = CopyDescriptor(
        array.base, array.sizes, array.strides, extents, dtype.name, dtype.storage_bits // 8, boxes.row_bytes, engine.alignment,
        array.divisors,
    )
    _start(context, op, array, boxes, context.descriptor(str(descriptor)), view)
    return True


def _fills_alone(context: LoweringContext, op: CopyBlockOp, engine: CopyEngine) -> bool:
    """Whether the engine can make all copies to the slots of a ring: a first one alone would want barriers beside lanes' groups."""
    copies = [user for user in users_of(buffer_of_view(op.view)) if isinstance(user, CopyOp | CopyBlockOp)]
    arrays = (array_of(context.function, context.facts, copy, engine) for copy in copies if isinstance(copy, CopyBlockOp))
    return all(isinstance(copy, CopyBlockOp) for copy in copies) and all(array is not None for array in arrays)


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
    context: LoweringContext, op: CopyBlockOp, array: BlockArray, boxes: _Boxes, descriptor: SSAValue, view: SharedView
) -> None:
    """One thread starts the copies of a block's parts."""
    builder, vec1 = context.builder, lane.vector(1, types.i32)
    first = builder.op("eqi", context.address.thread_id(), builder.constant(0, vec1))
    when = None if op.when is None else builder.splat(context.scalars[op.when], 1)
    when = context.address.both(when, first)
    assert when is not None
    size = math.prod(boxes.extents) * types.dtype_of(types.element_of(op.block_type)).storage_bits // 8
    starts = [*(_begin(context, op, dim) for dim in array.order), *(context.scalars[place] for place in array.outer)]
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
