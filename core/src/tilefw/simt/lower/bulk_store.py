"""Stores of blocks by a copy engine: lanes put the tile into shared memory as the engine takes it, and one thread has it stored.

That pays where lanes hold the tile as a matrix unit leaves it, or where they would store elements one by one: fragment stores
then take a fraction of the instructions of stores to global memory, which would write a few bytes each. So the rule: the engine
stores a block if fragment stores serve the layout of the value, in at most half as many instructions as lanes would store with.
Nothing else in the kernel accesses the array, as no fence between the engine's view and the lanes' would order that
(`stores_alone`). Where a block may begin before its array, as programs that are divided into groups may, a branch has lanes store
that one.

Behind all loops the buffer has bytes that are free by then, and the thread waits right behind its store. In a loop, that of a
persistent kernel, it waits before the next one: the engine works beside what comes between. Then

- the buffer lasts through the loop beside the loop's own, and serves all blocks of one array that an iteration stores. It must not
  take the room of a workgroup beside this one (`_has_room`), of which a loop over tiles has none: it begins with the program's
  own, as launches of one program a processor have it;
- blocks may lie over each other. So the wait is until the engine has written, and what lanes store in the branch, in another view
  of the array, stands behind that and before a fence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from xdsl.dialects.builtin import UnitAttr
from xdsl.dialects.scf import ForOp, IfOp, YieldOp
from xdsl.ir import Attribute, Block, Region, SSAValue

from tilefw.copy_descriptors import CopyDescriptor
from tilefw.simt import lane
from tilefw.simt.description import CopyEngine
from tilefw.simt.layout import LinearLayout
from tilefw.simt.layout.shared_operand import SharedOperand
from tilefw.simt.lower import fragment_load, fragment_store, memory, shared
from tilefw.simt.lower.context import LoweringContext
from tilefw.simt.lower.described_array import BlockArray, engine_of, stored_array_of, uncertain
from tilefw.simt.lower.fragment_load import FragmentRead
from tilefw.simt.lower.unseen_stores import beside
from tilefw.tile import types
from tilefw.tile.dialect.base import integer_attr, string_attr
from tilefw.tile.dialect.ops import ProgramIdOp, StoreBlockOp
from tilefw.tile.dialect.shared_ops import AllocSharedOp, HandOverOp
from tilefw.tile.nested_ops import nested_ops

_GAIN = 2  # so many times fewer stores pay for a barrier and for addresses in shared memory
_BESIDE = 2048  # bytes of shared memory for counting barriers, and for rows of the engine's forms to begin where they must


@dataclass(frozen=True)
class _Staging:
    """The buffer's layout, as rows that the engine takes, and the fragment stores that fill it."""

    operand: SharedOperand
    row_bytes: int
    stores: FragmentRead


@dataclass(frozen=True)
class _EngineStore:
    """The layout of the value, the array that it goes to, and how it is put down for the engine."""

    layout: LinearLayout
    array: BlockArray
    staging: _Staging


def store_block(context: LoweringContext, op: StoreBlockOp) -> None:
    """By the engine where that pays, else by lanes; of several to one array in a loop all or none."""
    looped, plan = isinstance(op.parent_op(), ForOp), _plan(context, op)
    if plan is None or not all(_plan(context, other) for other in beside(op)) or (looped and not _has_room(context, op)):
        memory.store_block(context, op)
    elif looped:
        _store_again_and_again(context, op, plan)
    elif offsets := uncertain(op):
        _branch(
            context, _all_upwards(context, offsets), lambda: _store(context, op, plan), lambda: memory.store_block(context, op)
        )
    else:
        _store(context, op, plan)


def _plan(context: LoweringContext, op: StoreBlockOp) -> _EngineStore | None:
    """How an engine stores a block; None where lanes do."""
    engine, layout = engine_of(context.machine, op), context.assignment.layouts[op]
    if engine is None or not engine.stores or layout.copies:
        return None
    array = stored_array_of(context.function, context.facts, op, engine)
    staging = None if array is None else _staging(context, op, array, layout, engine)
    accesses = layout.registers // context.assignment.accesses.access_width(op, layout)
    if array is None or staging is None or len(staging.stores.constants) * _GAIN > accesses:
        return None
    return _EngineStore(layout, array, staging)


def finish(context: LoweringContext) -> None:
    """Before the function ends the engine has read what it was to store in loops."""
    for buffer in context.stores_in_loops.values():
        _wait(context, _first_thread(context), buffer.id, written=False)


def _has_room(context: LoweringContext, op: StoreBlockOp) -> bool:
    """Whether there is a buffer, or room for it, with which as many workgroups are side by side on a processor as without: of a
    divided program, and of one that goes over tiles, there is one."""
    if _key(op) in context.stores_in_loops:
        return True
    machine, inside = context.machine, nested_ops(context.function)
    taken = _BESIDE + sum(shared.bytes_of(alloc) for alloc in inside if isinstance(alloc, AllocSharedOp))
    total = taken + _bytes(op.value.type) + sum(buffer.bytes for buffer in context.stores_in_loops.values())
    if total > machine.chip.shared_bytes:
        return False
    alone = any(isinstance(op, HandOverOp) for op in inside) or _goes_over_tiles(op)
    return alone or machine.side_by_side(total) == machine.side_by_side(taken)


def _goes_over_tiles(op: StoreBlockOp) -> bool:
    """Whether a loop begins with the number of the program."""
    loop = op.parent_op()
    return isinstance(loop, ForOp) and isinstance(loop.lb.owner, ProgramIdOp)


def _key(op: StoreBlockOp) -> tuple[Block, SSAValue, Attribute]:
    """What stores that share a buffer have in common."""
    assert op.parent is not None
    return op.parent, op.base, op.value.type


def _bytes(type: Attribute) -> int:
    return math.prod(types.shape_of(type)) * types.dtype_of(type).storage_bits // 8


def _store_again_and_again(context: LoweringContext, op: StoreBlockOp, plan: _EngineStore) -> None:
    """In a loop: the engine has written the block before when a thread does anything with this one."""
    builder, first = context.builder, _first_thread(context)
    buffer = context.stores_in_loops.get(_key(op))
    if buffer is None:
        plans = (plan, *(_plan(context, other) for other in beside(op)))
        widest = max((each.staging for each in plans if each), key=lambda staging: staging.operand.form.pattern_bytes)
        outer = builder.enter(context.entry)
        buffer = context.stores_in_loops[_key(op)] = _alloc(context, op, widest)  # rows or columns: each form begins there
        builder.leave(outer)
    _wait(context, first, buffer.id, written=True)

    def by_engine() -> None:
        _start(context, op, plan, buffer)

    def by_lanes() -> None:
        builder.insert(lane.BarrierOp.create())
        memory.store_block(context, op)
        builder.insert(lane.FenceViewOp.create(properties={"arrays": UnitAttr()}))

    if offsets := uncertain(op):
        _branch(context, _all_upwards(context, offsets), by_engine, by_lanes)
    else:
        by_engine()


def _all_upwards(context: LoweringContext, offsets: Sequence[SSAValue]) -> SSAValue:
    """Whether a block begins at places that are not negative, which is all that engines store to."""
    builder = context.builder
    joined = reduce(lambda a, b: builder.op("ori", a, b), [_narrow(context, offset) for offset in offsets])
    return builder.op("les", builder.constant(0, types.i32), joined)


def _branch(context: LoweringContext, condition: SSAValue, then: Callable[[], None], otherwise: Callable[[], None]) -> None:
    """Make one or the other; `condition` is equal in all threads."""
    builder, regions = context.builder, []
    for make in (then, otherwise):
        block = Block()
        outer = builder.enter(block)
        make()
        builder.insert(YieldOp())
        builder.leave(outer)
        regions.append(Region(block))
    builder.insert(IfOp.create(operands=[condition], regions=regions))


def _staging(
    context: LoweringContext, op: StoreBlockOp, array: BlockArray, layout: LinearLayout, engine: CopyEngine
) -> _Staging | None:
    """The first form of rows, the widest, that fits the block and fragment stores; None where none does."""
    chip, shape = context.machine.chip, types.shape_of(op.value.type)
    bits = types.dtype_of(op.value.type).storage_bits
    if len(shape) != 2 or not chip.fragment_stores or shape[array.order[1]] > engine.extent:
        return None
    if math.prod(shape) * bits // 8 > chip.shared_bytes:
        return None
    for form in engine.forms:
        if form.row_bytes * 8 // bits > shape[array.order[0]] or form.rows > shape[array.order[1]]:
            continue
        operand = SharedOperand(form, shape, bits, array.order[0])
        found = fragment_load.match(operand.layout, layout, bits, chip.fragment_stores)
        if found is not None:
            return _Staging(operand, form.row_bytes, found)
    return None


def _store(context: LoweringContext, op: StoreBlockOp, plan: _EngineStore) -> None:
    buffer = _alloc(context, op, plan.staging)
    when = _start(context, op, plan, buffer)
    _wait(context, when, buffer.id, written=False)


def _alloc(context: LoweringContext, op: StoreBlockOp, staging: _Staging) -> lane.AllocOp:
    engine, shape = context.machine.chip.copy_engine, types.shape_of(op.value.type)
    assert engine is not None
    align = max(staging.operand.form.pattern_bytes, engine.shared_alignment)
    words = f"store of a tile of {'x'.join(map(str, shape))}x{types.dtype_of(op.value.type).name}"
    return context.builder.alloc(_bytes(op.value.type), align, words)


def _wait(context: LoweringContext, when: SSAValue, buffer: int, written: bool) -> None:
    properties: dict[str, Attribute] = {"parts": string_attr("when"), "buffer": integer_attr(buffer)}
    if written:
        properties["written"] = UnitAttr()
    context.builder.insert(lane.BulkStoreWaitOp.create(operands=[when], properties=properties))


def _start(context: LoweringContext, op: StoreBlockOp, plan: _EngineStore, buffer: lane.AllocOp) -> SSAValue:
    """Fill the buffer, and have one thread start the stores; for whom."""
    layout, array, staging = plan.layout, plan.array, plan.staging
    builder, engine, dtype = context.builder, context.machine.chip.copy_engine, types.dtype_of(op.value.type)
    assert engine is not None
    shape, size, fast = types.shape_of(op.value.type), dtype.storage_bits // 8, array.order[0]
    elements = staging.row_bytes // size
    fragment_store.emit(
        context, buffer.results[0], staging.stores, context.get(op.value, layout), lane.shared_properties(buffer.id, 0, 0)
    )
    extents = (elements, shape[array.order[1]])
    descriptor = context.descriptor(str(CopyDescriptor(
        array.base, array.sizes, array.strides, (*extents, *(1 for _ in array.outer)), dtype.name, size, staging.row_bytes,
        engine.alignment, array.divisors,
    )))
    when, starts = _when(context, op), [_narrow(context, op.offsets[dim]) for dim in array.order]
    outer = {f"at{2 + i}": context.scalars[place] for i, place in enumerate(array.outer)}
    for i in range(shape[fast] // elements):
        address = builder.op("addi", buffer.results[0], builder.constant(i * staging.operand.row_stride, types.i32))
        first = builder.op("addi", starts[0], builder.constant(i * elements, types.i32))
        parts = {"address": address, "descriptor": descriptor, "at0": first, "at1": starts[1], **outer, "when": when}
        properties: dict[str, Attribute] = {
            "parts": string_attr(",".join(parts)), "bytes": integer_attr(math.prod(extents) * size),
            "argument": integer_attr(memory.argument_of(op.base)), "buffer": integer_attr(buffer.id),
        }
        builder.insert(lane.BulkStoreOp.create(operands=list(parts.values()), properties=properties))
    return when


def _first_thread(context: LoweringContext) -> SSAValue:
    return context.builder.op("eqi", context.address.thread_id(), context.builder.constant(0, lane.vector(1, types.i32)))


def _when(context: LoweringContext, op: StoreBlockOp) -> SSAValue:
    """The one thread; nobody where the array has no elements: an engine is told of one (`CopyDescriptor.described`)."""
    builder, when = context.builder, _first_thread(context)
    for size in op.shape:
        if size is not None and not (context.facts.constant(size) or 0) > 0:
            value = context.scalars[size]
            some = builder.op("lts", builder.constant(0, value.type), value)
            when = builder.op("andi", when, builder.splat(some, 1))
    return when


def _narrow(context: LoweringContext, offset: SSAValue) -> SSAValue:
    value = context.scalars[offset]
    return value if value.type == types.i32 else context.builder.op("trunci", value, result=types.i32)


HANDLERS = {StoreBlockOp: store_block}
