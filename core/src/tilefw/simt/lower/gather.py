"""Lowering of `tile.gather`: the source goes to shared memory once, and every thread reads the elements that its indices name."""

from __future__ import annotations

from math import prod

from xdsl.ir import SSAValue

from tilefw.api.errors import UnsupportedError
from tilefw.simt import lane
from tilefw.simt.layout import LinearLayout, f2
from tilefw.simt.layout.shape_maps import bit_starts
from tilefw.simt.layout.shared import SharedLayout
from tilefw.simt.lower import shared_access
from tilefw.simt.lower.context import LoweringContext
from tilefw.simt.lower.shared_address import addresses
from tilefw.tile import types
from tilefw.tile.dialect.base import string_attr
from tilefw.tile.dialect.gather_op import GatherOp
from tilefw.tile.text.source_location import place_of


def gather(context: LoweringContext, op: GatherOp) -> None:
    """In the layout of the indices, whatever that of the source is."""
    source = context.assignment.layouts.get(op)
    if source is None:  # nobody uses it
        return
    chip = context.machine.chip
    if not chip.shared_bytes:
        raise UnsupportedError(
            "tile.gather needs shared memory, and this chip has none", code="TFW0612", place=place_of(op),
            note="which lane has an element is known only when the program runs",
        )
    for layout in context.layouts(op.results[0]):
        assert layout is not None
        context.put(op.results[0], layout, _through_shared(context, op, source, layout))


def _through_shared(context: LoweringContext, op: GatherOp, source: LinearLayout, layout: LinearLayout) -> SSAValue:
    b, value = context.builder, context.tiles[op.source, source]
    element = types.element_of(value.type)
    size = shared_access.storage_bits(element) // 8
    shape = types.shape_of(op.source.type)
    words = "x".join(map(str, shape))
    buffer = b.alloc(prod(shape) * size, 16, f"a gather from a tile of {words}x{element}")
    rows = SharedLayout(shape, f2.identity(source.bits))
    shared_access.write(context, buffer.results[0], rows, source, value, buffer=buffer.id)
    where, immediates = _places(context, op, buffer.results[0], layout, size)
    stored = types.i8 if types.is_bool(element) else element
    properties = {
        **lane.access_properties("address", 1, list(range(layout.registers)), immediates, buffer.id),
        **lane.shared_properties(buffer.id), "space": string_attr(lane.SHARED),
    }
    loaded = b.insert(lane.LoadOp.create(
        operands=[where], result_types=[lane.vector(layout.registers, stored)], properties=properties,
    )).results[0]
    return loaded if stored is element else b.op("nei", loaded, b.constant(0, loaded.type))


def _places(
    context: LoweringContext, op: GatherOp, base: SSAValue, layout: LinearLayout, size: int
) -> tuple[SSAValue, list[int]]:
    """For each register of the result the address of its element, and an immediate: bits of the index along the axis come from
    the tile of indices, all others are those of the place itself."""
    b, shape = context.builder, types.shape_of(op.source.type)
    keep = _without_axis(types.shape_of(op.index.type), shape, op.axis)
    constants = [e * size for e in f2.table(f2.compose(keep, layout.register))]
    thread = [t * size for t in f2.compose(keep, layout.thread)]
    found, slots, immediates = addresses(context, base, thread, constants)
    index = context.tiles[op.index, layout]
    within = b.op("andi", index, b.constant(shape[op.axis] - 1, index.type))
    step = b.op("muli", within, b.constant(prod(shape[op.axis + 1 :]) * size, index.type))
    return b.op("addi", b.pick(found, slots), step), immediates


def _without_axis(index: tuple[int, ...], source: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """For each bit of a flat index into the result that into the source with the same place in all dims but `axis`, and 0 there."""
    starts, others = bit_starts(index), bit_starts(source)
    columns = [0] * (prod(index).bit_length() - 1)
    for dim, extent in enumerate(index):
        if dim != axis:
            for bit in range(extent.bit_length() - 1):
                columns[starts[dim] + bit] = 1 << others[dim] + bit
    return tuple(columns)


HANDLERS = {GatherOp: gather}
