"""Lowering of shared buffers: allocations, slots of rings, asynchronous copies, reads and writes in the layouts assigned."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, SSAValue

from tilefw.api.errors import InternalError
from tilefw.api.integers import log2
from tilefw.simt import lane
from tilefw.simt.assign.k_steps import dot_of, steps_of
from tilefw.simt.layout import LinearLayout, f2
from tilefw.simt.lower import bulk_copy, shared_access
from tilefw.simt.lower.access import Placed
from tilefw.simt.lower.context import LoweringContext, SharedView
from tilefw.simt.lower.memory import argument_of, computed, hints, place_block, place_computed, say_deal
from tilefw.tile import types
from tilefw.tile.dialect.base import dense_i64, integer_attr, string_attr
from tilefw.tile.dialect.copy_ops import CopyBlockOp, CopyOp
from tilefw.tile.dialect.shared_ops import AllocSharedOp, CommitOp, HandOverOp, LoadSharedOp, SlotOp, StoreSharedOp, WaitOp
from tilefw.tile.dialect.shared_type import SharedType
from tilefw.tile.text.source_location import place_of


def bytes_of(op: AllocSharedOp) -> int:
    """What an allocation takes, with all slots of a ring."""
    return _slot_bytes(op.type) * max(1, op.type.slots)


def allocate(context: LoweringContext, op: AllocSharedOp) -> None:
    """One allocation for all slots of a ring, aligned to all banks."""
    type, chip, size = op.type, context.machine.chip, bytes_of(op)
    place = place_of(op)
    label = f"{op.results[0].name_hint or 'shared buffer'}{f' (line {place.line})' if place else ''}"
    align = context.alignments.get(op.results[0], chip.banks * chip.bank_bytes)
    if chip.copy_engine is not None:
        align = max(align, chip.copy_engine.shared_alignment)
    alloc = context.builder.alloc(size, min(_slot_bytes(type), align), label)
    context.views[op.results[0]] = SharedView(alloc.results[0], alloc.id, context.shared[op.results[0]], type.slots)


def slot(context: LoweringContext, op: SlotOp) -> None:
    """The ring's address and index times the bytes of a slot, uniform."""
    builder, ring = context.builder, context.views[op.ring]
    size = _slot_bytes(op.ring.type)  # type: ignore[arg-type]
    offset = builder.op("muli", context.scalars[op.index], builder.constant(size, types.i32))
    # Without a promised phase the slot may be any: then no slots are told, and barriers take the whole ring for one.
    slots, phase = (0, 0) if op.phase is None else (ring.slots, op.phase)
    context.views[op.results[0]] = replace(ring, address=builder.op("addi", ring.address, offset), slots=slots, phase=phase)


def read(context: LoweringContext, op: LoadSharedOp) -> None:
    """In each layout that is wanted; what a dot can read for itself, step by step, is left to it."""
    dot = dot_of(op)
    if dot is not None and not context.assignment.dots[dot].atom.asynchronous:
        steps = steps_of(op, dot, context.assignment.dots[dot])
        context.steps[op.results[0]] = lambda step: _load_from_shared(context, op, steps.layout, steps.offsets[step])
        return
    for layout in context.layouts(op.results[0]):
        assert layout is not None
        context.put(op.results[0], layout, _load_from_shared(context, op, layout))


def _load_from_shared(context: LoweringContext, op: LoadSharedOp, layout: LinearLayout, flip: int = 0) -> SSAValue:
    view, here = context.views[op.view], context.builder.location
    context.builder.location = op.location
    value = shared_access.read(
        context, view.address, view.layout, layout, context.element(op.results[0].type),
        buffer=view.buffer, phase=view.phase, ring=view.slots, flip=flip,
    )
    context.builder.location = here
    return value


def write(context: LoweringContext, op: StoreSharedOp) -> None:
    """From the home of the value."""
    view, layout = context.views[op.view], context.assignment.layouts[op]
    shared_access.write(
        context, view.address, view.layout, layout, context.get(op.value, layout),
        buffer=view.buffer, phase=view.phase, ring=view.slots,
    )


def copy_block(context: LoweringContext, op: CopyBlockOp) -> None:
    """A block, straight to its place in the buffer."""
    if bulk_copy.copy_block(context, op):
        return
    layout, when = context.assignment.layouts[op], _when(context, op)
    if context.machine.chip.copies_consecutive:
        _start_copy(context, op, layout, place_block(context, op, layout, when, False), None, op.base)
    else:
        _start_copy(context, op, layout, context.address.block(op, layout), when, op.base)


def copy(context: LoweringContext, op: CopyOp) -> None:
    """Elements at computed addresses."""
    layout, when = context.assignment.layouts[op], _when(context, op)
    if context.machine.chip.copies_consecutive:
        _start_copy(context, op, layout, place_computed(context, op, layout, when, False), None, op.pointer)
    else:
        _start_copy(context, op, layout, computed(context, op, layout), when, op.pointer)


def _when(context: LoweringContext, op: CopyOp | CopyBlockOp) -> SSAValue | None:
    return None if op.when is None else context.builder.splat(context.scalars[op.when], 1)


def _start_copy(
    context: LoweringContext, op: CopyOp | CopyBlockOp, layout: LinearLayout, source: Placed, when: SSAValue | None, base: SSAValue
) -> None:
    builder, view = context.builder, context.views[op.view]
    bits = shared_access.storage_bits(op.view.type.element)  # type: ignore[attr-defined]
    # A masked-off copy writes zeros, so threads that hold copies of others are kept out by the condition, not by the mask.
    when = context.address.both(when, context.address.only_copy(layout))
    where, properties = _target(context, view, layout, source.width, bits)
    parts = {
        **where, "source": source.address, "base": source.base, "limit": source.limit, "mask": source.mask, "when": when,
    }
    present = {name: value for name, value in parts.items() if value is not None}
    properties |= {
        "parts": string_attr(",".join(present)), "bytes": integer_attr(source.width * bits // 8),
        "source_slots": dense_i64(tuple(source.slots)), "source_immediates": dense_i64(tuple(source.immediates)),
        "argument": integer_attr(argument_of(base)), **lane.shared_properties(view.buffer, view.slots, view.phase), **hints(op),
    }
    say_deal(context, builder.insert(lane.CopyAsyncOp.create(operands=list(present.values()), properties=properties)), layout)


def _target(
    context: LoweringContext, view: SharedView, layout: LinearLayout, width: int, bits: int
) -> tuple[dict[str, SSAValue | None], dict[str, Attribute]]:
    """Where copies of `width` elements land: for each lane, or from where on for a wave."""
    if not context.machine.chip.copies_consecutive:
        address, slots, immediates = shared_access.copy_addresses(context, view.address, view.layout, layout, width, bits)
        return {"address": address}, {"slots": dense_i64(tuple(slots)), "immediates": dense_i64(tuple(immediates))}
    size, shared, within = bits // 8, view.layout, log2(width)
    pieces = f2.table(shared.offsets(layout.register[within:]))
    piece = tuple(width << i for i in range(len(layout.lane)))
    if shared.offsets(layout.register[:within]) != f2.identity(within) or shared.offsets(layout.lane) != piece:
        raise InternalError(f"a buffer of {shared} does not keep what a wave copies in {layout} in one piece")
    wave = [0] * len(layout.lane) + [offset * size for offset in shared.offsets(layout.wave)]
    where = {"address": context.builder.splat(view.address, 1), "wave": context.address.thread_part(wave)}
    immediates = dense_i64(tuple(offset * size for offset in pieces))
    return where, {"slots": dense_i64((0,) * len(pieces)), "immediates": immediates, "consecutive": UnitAttr()}


def commit(context: LoweringContext, op: CommitOp) -> None:
    """A group of copies ends."""
    context.builder.insert(lane.CommitOp.create())


def hand_over(context: LoweringContext, op: HandOverOp) -> None:
    """The slot and its parity, uniform."""
    operands = [context.scalars[operand] for operand in op.operands]
    context.builder.insert(lane.HandOverOp.create(operands=operands, properties={"slots": integer_attr(op.slots)}))


def wait(context: LoweringContext, op: WaitOp) -> None:
    """Groups land; the barrier that shows them to other threads is the barrier pass's business."""
    context.builder.insert(lane.WaitOp.create(properties={"pending": integer_attr(op.pending)}))


def _slot_bytes(type: SharedType) -> int:
    size = shared_access.storage_bits(type.element) // 8
    for extent in type.shape:
        size *= extent
    return size


HANDLERS = {
    AllocSharedOp: allocate, SlotOp: slot, LoadSharedOp: read, StoreSharedOp: write, CopyBlockOp: copy_block, CopyOp: copy,
    CommitOp: commit, WaitOp: wait, HandOverOp: hand_over,
}
