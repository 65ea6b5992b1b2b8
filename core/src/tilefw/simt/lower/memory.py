"""Lowering of loads and stores of global memory, and of the barrier."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from xdsl.dialects.builtin import UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from tilefw.api.integers import log2
from tilefw.simt import lane
from tilefw.simt.assign.accesses import PointerOp, first_elements
from tilefw.simt.layout import LinearLayout
from tilefw.simt.lower.access import Placed
from tilefw.simt.lower.context import LoweringContext
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.atomic_ops import AtomicOp
from tilefw.tile.dialect.base import integer_attr
from tilefw.tile.dialect.block_ops import BlockAccess
from tilefw.tile.dialect.copy_ops import CopyOp

_THROUGH = (ops.AddPtrOp, ops.SplatOp, ops.BroadcastOp, ops.ExpandDimsOp, ops.ReshapeOp, ops.TransOp)
_HINTS = ("cache", "eviction", "volatile")


def load(context: LoweringContext, op: ops.LoadOp) -> None:
    """In each layout anew; a scalar load is one uniform read."""
    for layout in context.layouts(op.results[0]):
        other = None if op.other is None else context.get(op.other, layout)
        if layout is None:
            mask = None if op.mask is None else context.scalars[op.mask]
            placed = Placed(scalar_address(context, op), mask, 1, range(1), [0])
        else:
            placed = place_computed(context, op, layout, None, _is_fill(other))
        context.put(op.results[0], layout, _load_placed(context, op, layout, placed, other, op.pointer))


def load_block(context: LoweringContext, op: ops.LoadBlockOp) -> None:
    """In each layout anew."""
    for layout in context.layouts(op.results[0]):
        assert layout is not None
        other = None if op.other is None else context.get(op.other, layout)
        placed = place_block(context, op, layout, None, _is_fill(other))
        context.put(op.results[0], layout, _load_placed(context, op, layout, placed, other, op.base))


def store(context: LoweringContext, op: ops.StoreOp) -> None:
    """One of the threads that hold an element stores it."""
    if types.is_tile(op.value.type):
        layout = context.assignment.layouts[op]
        only = context.address.only_copy(layout)
        placed, value = place_computed(context, op, layout, only, False), context.get(op.value, layout)
    else:
        builder, machine = context.builder, context.machine
        layout = LinearLayout((), (), (0,) * log2(machine.lanes), (0,) * log2(machine.waves))
        mask = None if op.mask is None else builder.splat(context.scalars[op.mask], 1)
        mask, address = context.address.both(mask, context.address.only_copy(layout)), scalar_address(context, op)
        if context.offsets is not None:
            placed = context.offsets.scalar(address, mask)
        else:
            placed = Placed(builder.splat(address, 1), mask, 1, range(1), [0])
        value = builder.splat(context.scalars[op.value], 1)
    _store(context, op, layout, placed, value, op.pointer)


def store_block(context: LoweringContext, op: ops.StoreBlockOp) -> None:
    """One of the threads that hold an element stores it."""
    layout = context.assignment.layouts[op]
    placed = place_block(context, op, layout, context.address.only_copy(layout), False)
    _store(context, op, layout, placed, context.get(op.value, layout), op.base)


def barrier(context: LoweringContext, op: ops.BarrierOp) -> None:
    """The workgroup's."""
    context.builder.insert(lane.BarrierOp.create())


def fence(context: LoweringContext, op: ops.FenceOp) -> None:
    """Every thread's; a later pass puts in what barriers that takes."""
    context.builder.insert(lane.FenceOp.create(properties={"order": op.properties["order"], "scope": op.properties["scope"]}))


def trap(context: LoweringContext, op: ops.TrapOp) -> None:
    """Every thread of the program gives up: the branch to here is the program's."""
    context.builder.insert(lane.TrapOp.create())


def computed(context: LoweringContext, op: PointerOp, layout: LinearLayout) -> Placed:
    """The accesses of a tile access, each at an address of its own."""
    return context.address.computed(op, layout, *_lane_operands(context, op, layout))


def _lane_operands(
    context: LoweringContext, op: PointerOp, layout: LinearLayout
) -> tuple[SSAValue, SSAValue | None, SSAValue | None]:
    """Pointer, offsets and mask of a tile access, once an access."""
    firsts = first_elements(layout, context.assignment.accesses.access_width(op, layout))
    offsets, mask = (None if v is None else context.get(v, firsts) for v in (op.offsets, op.mask))
    return context.get(op.pointer, firsts), offsets, mask


def place_computed(
    context: LoweringContext, op: ops.LoadOp | ops.StoreOp | CopyOp, layout: LinearLayout, also: SSAValue | None, filled: bool
) -> Placed:
    """The accesses of a tile access that `also` does not mask off, from a uniform base where that can be."""
    found = None
    if context.offsets is not None:
        found = context.offsets.computed(op, layout, *_lane_operands(context, op, layout), also, filled)
    return found or _masked(context, computed(context, op, layout), also)


def place_block(context: LoweringContext, op: BlockAccess, layout: LinearLayout, also: SSAValue | None, filled: bool) -> Placed:
    """The same for a block."""
    found = None if context.offsets is None else context.offsets.block(op, layout, also, filled)
    return found or _masked(context, context.address.block(op, layout), also)


def _masked(context: LoweringContext, placed: Placed, also: SSAValue | None) -> Placed:
    return replace(placed, mask=context.address.both(placed.mask, also))


def _is_fill(other: SSAValue | None) -> bool:
    """Whether masked-off elements have values other than zero, which a limit gives by itself."""
    if other is None or not isinstance(other.owner, lane.ConstantOp):
        return other is not None
    return repr(other.owner.value) not in ("0", "0.0")


def scalar_address(context: LoweringContext, op: ops.LoadOp | ops.StoreOp | AtomicOp) -> SSAValue:
    """Where a scalar access goes."""
    pointer = context.scalars[op.pointer]
    if op.offsets is None:
        return pointer
    size = types.dtype_of(types.pointee_of(op.pointer.type)).storage_bits // 8
    with context.builder.promising():
        return context.builder.op("addi", pointer, context.address.scaled(context.scalars[op.offsets], size))


def _load_placed(
    context: LoweringContext, op: Any, layout: LinearLayout | None, placed: Placed, other: SSAValue | None, base: SSAValue
) -> SSAValue:
    beyond = other
    if placed.limit is not None and placed.mask is None:
        other = None  # zero
    parts = {"address": placed.address, "base": placed.base, "limit": placed.limit, "mask": placed.mask, "other": other}
    type = context.lane_type(op.results[0], layout)
    access = _access(context, lane.LoadOp, op, parts, placed, base, [type])
    if context.repeated(layout):
        access.properties["repeated"] = UnitAttr()
    elif layout is not None:
        say_deal(context, access, layout)
    loaded = access.results[0]
    return loaded if placed.inside is None or beyond is None else context.builder.op("select", placed.inside, loaded, beyond)


def _store(
    context: LoweringContext, op: Any, layout: LinearLayout, placed: Placed, value: SSAValue, base: SSAValue
) -> None:
    parts = {"address": placed.address, "base": placed.base, "limit": placed.limit, "value": value, "mask": placed.mask}
    say_deal(context, _access(context, lane.StoreOp, op, parts, placed, base, []), layout)


def say_deal(context: LoweringContext, access: Operation, layout: LinearLayout) -> None:
    """Note which waves have the elements of an access, where not all accesses have them alike."""
    deal = context.deal(layout)
    if deal:
        access.properties["deal"] = integer_attr(deal)


def _access(
    context: LoweringContext, cls: type[Operation], op: Any, parts: dict[str, SSAValue | None], placed: Placed, base: SSAValue,
    results: list[Attribute],
) -> Operation:
    present = {k: v for k, v in parts.items() if v is not None}
    properties = lane.access_properties(",".join(present), placed.width, placed.slots, placed.immediates, argument_of(base))
    properties.update(hints(op))
    return context.builder.insert(cls.create(operands=list(present.values()), result_types=results, properties=properties))


def hints(op: Operation) -> dict[str, Attribute]:
    """The cache hints of a tile access, as a lane access has them."""
    return {word: op.properties[word] for word in _HINTS if word in op.properties}


def argument_of(base: SSAValue) -> int:
    """The index of the kernel argument that an address comes from, through loops as well; -1 when it is not one argument."""
    found = _origins(base, set())
    return found.pop() if len(found) == 1 else -1


def _origins(value: SSAValue, seen: set[SSAValue]) -> set[int]:
    """The arguments that an address may come from; -1 stands for anything else."""
    if value in seen:
        return set()
    seen.add(value)
    if isinstance(value, BlockArgument):
        around = value.block.parent_op()
        if isinstance(around, FuncOp):
            return {value.index}
        return _carried_buffers(around, value.index - 1, seen) if isinstance(around, ForOp) and value.index else {-1}
    if isinstance(value.owner, _THROUGH):
        return _origins(value.owner.operands[0], seen)
    return _carried_buffers(value.owner, value.owner.results.index(value), seen) if isinstance(value.owner, ForOp) else {-1}


def _carried_buffers(loop: ForOp, index: int, seen: set[SSAValue]) -> set[int]:
    """Where what a loop carries comes from: its start and every step."""
    last = loop.body.block.last_op
    assert last is not None
    return _origins(loop.iter_args[index], seen) | _origins(last.operands[index], seen)


HANDLERS = {
    ops.LoadOp: load, ops.StoreOp: store, ops.LoadBlockOp: load_block, ops.BarrierOp: barrier, ops.FenceOp: fence,
    ops.TrapOp: trap,
}
