"""Lowering of atomics: each element by one thread, and its old value, where somebody reads it, from there to all that hold it.

Threads that hold copies of an element leave the access to the first of them (`LinearLayout.copies`): it has to happen once. The
old value then goes to the others by a shuffle, where they are lanes of one wave with it in the same register, else through shared
memory. A scalar is a tile of one element, held by all threads.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from tilefw.api.errors import UnsupportedError
from tilefw.api.integers import log2
from tilefw.simt import lane
from tilefw.simt.layout import LinearLayout, swizzle
from tilefw.simt.lower import shared_access
from tilefw.simt.lower.access import Placed
from tilefw.simt.lower.context import LoweringContext
from tilefw.simt.lower.memory import argument_of, computed, say_deal, scalar_address
from tilefw.tile import types
from tilefw.tile.dialect.atomic_ops import AtomicCasOp, AtomicOp, AtomicRmwOp
from tilefw.tile.dialect.base import string_attr
from tilefw.tile.dialect.multicast_op import MulticastOp
from tilefw.tile.text.source_location import place_of

Again = tuple[str, SSAValue]
"""A comparison of what was there, and with what: the access is made again as long as it holds."""


def atomic(context: LoweringContext, op: AtomicOp, again: Again | None = None) -> None:
    """One access an element, and the old values in the layout of the op."""
    if isinstance(op, MulticastOp) and op.action == "load" and not op.result_is_used:
        return  # changes nothing, and nobody asks
    tile = types.is_tile(op.value.type)
    layout = context.assignment.layouts[op] if tile else of_scalar(context)
    mine = context.address.only_copy(layout)
    placed = computed(context, op, layout) if tile else _scalar_access(context, op)
    made = _insert(context, op, layout, placed, context.address.both(placed.mask, mine), again)
    if not made.results or again is not None:
        return
    old = to_copies(context, op, made.results[0], layout, mine, "the old values of this atomic")
    if isinstance(op, MulticastOp) and op.mask is not None:
        mask = context.get(op.mask, layout) if tile else context.builder.splat(context.scalars[op.mask], 1)
        old = context.builder.op("select", mask, old, _held(context, op.value, layout))
    context.put(op.results[0], layout if tile else None, old if tile else context.builder.uniform(old))


def of_scalar(context: LoweringContext) -> LinearLayout:
    """A tile of one element, of which every thread holds a copy."""
    return LinearLayout((1,), (), (0,) * log2(context.machine.lanes), (0,) * log2(context.machine.waves))


def _scalar_access(context: LoweringContext, op: AtomicOp) -> Placed:
    b = context.builder
    mask = None if op.mask is None else b.splat(context.scalars[op.mask], 1)
    return Placed(b.splat(scalar_address(context, op), 1), mask, 1, range(1), [0])


def _insert(
    context: LoweringContext, op: AtomicOp, layout: LinearLayout, placed: Placed, mask: SSAValue | None,
    again: Again | None,
) -> lane.AtomicOp:
    parts = {"address": placed.address, "compare": None, "value": _held(context, op.value, layout), "mask": mask}
    if again is not None:
        parts["awaited"] = context.builder.splat(again[1], 1)
    if isinstance(op, AtomicCasOp):
        parts["compare"] = _held(context, op.compare, layout)
    present = {name: value for name, value in parts.items() if value is not None}
    where = lane.access_properties(",".join(present), placed.width, placed.slots, placed.immediates, argument_of(op.pointer))
    kind = _lane_kind(op)
    words = {"kind": string_attr(kind), "order": string_attr(op.order), "scope": string_attr(op.scope)}
    if again is not None:
        words["again"] = string_attr(again[0])
    result = [lane.vector(layout.registers, types.element_of(op.value.type))] if op.result_is_used else []
    made = lane.AtomicOp.create(operands=list(present.values()), result_types=result, properties={**where, **words})
    say_deal(context, context.builder.insert(made), layout)
    return made


def _lane_kind(op: AtomicOp) -> str:
    """The kind of lane IR."""
    if isinstance(op, MulticastOp):
        words = {"load": f"load_{op.kind}", "store": "store", "update": op.kind}
        return f"multicast_{words[op.action]}"
    return op.kind if isinstance(op, AtomicRmwOp) else lane.CAS


def _held(context: LoweringContext, value: SSAValue, layout: LinearLayout) -> SSAValue:
    return context.get(value, layout) if types.is_tile(value.type) else context.builder.splat(context.scalars[value], 1)


def to_copies(
    context: LoweringContext, op: Operation, old: SSAValue, layout: LinearLayout, mine: SSAValue | None, what: str
) -> SSAValue:
    """What the first holder of each element has, in all that hold it; `what` it is, in words."""
    chip, lanes = context.machine.chip, context.machine.lanes
    if mine is None:
        return old
    if chip.shuffles and layout.copies < lanes and not layout.copies & ~layout.free:
        return _shuffled(context, old, layout.copies)
    if chip.shared_bytes:
        return _through_shared(context, old, layout, mine, what)
    raise UnsupportedError(
        f"{chip.name} has neither shared memory nor shuffles to bring {what} to all threads that hold it",
        code="TFW0626", place=place_of(op), help="leave the result unused, or give every thread elements of its own",
    )


def _shuffled(context: LoweringContext, old: SSAValue, copies: int) -> SSAValue:
    """From the lane whose bits in `copies` are 0."""
    b, lanes = context.builder, context.machine.lanes
    kept = lanes - 1 & ~copies
    if not kept:
        return b.shuffle(old, "index", 0)
    first = b.op("andi", context.address.thread_id(), b.constant(kept, lane.vector(1, types.i32)))
    return b.shuffle(old, "index", first)


def _through_shared(
    context: LoweringContext, old: SSAValue, layout: LinearLayout, mine: SSAValue, what: str
) -> SSAValue:
    element = types.element_of(old.type)
    bits = shared_access.storage_bits(element)
    shared = swizzle.choose(layout.shape, bits, [layout], [layout], context.machine.chip)
    buffer = context.builder.alloc(shared.size * bits // 8, 16, what)
    address = buffer.results[0]
    shared_access.write(context, address, shared, layout, old, mine, buffer=buffer.id, alone=True)
    return shared_access.read(context, address, shared, layout, element, buffer=buffer.id)


HANDLERS = {AtomicRmwOp: atomic, AtomicCasOp: atomic, MulticastOp: atomic}
