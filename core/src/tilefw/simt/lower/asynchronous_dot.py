"""Lowers a dot that a matrix unit does by itself: one `lane.async_atom` of all k steps, on addresses in shared memory."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, SSAValue

from tilefw.simt import lane
from tilefw.simt.assign.shared_operands import view_of
from tilefw.simt.layout import LinearLayout
from tilefw.simt.layout.atom_layouts import DotLayouts
from tilefw.simt.layout.shared_operand import SharedOperand
from tilefw.simt.lower.context import LoweringContext, SharedView
from tilefw.simt.lower.dot import ELEMENTS, cast
from tilefw.simt.lower.shared_address import addresses
from tilefw.tile import types
from tilefw.tile.dialect.base import dense_i64, integer_attr, string_attr
from tilefw.tile.dialect.dot_op import DotOp


def lower(context: LoweringContext, op: DotOp, layouts: DotLayouts) -> SSAValue:
    """a · b + acc as a lane value in `layouts.d`. The atoms of one part of the result follow one another, all k steps of it."""
    builder, acc = context.builder, context.tiles[op.acc, layouts.d]
    sums = cast(builder, acc, layouts.atom.d)
    parts: dict[str, SSAValue] = {}
    properties: dict[str, Attribute] = {"atom": string_attr(layouts.atom.name)}
    order = [(repeat, step) for repeat in layouts.repeats for step in range(layouts.steps)]
    sides = ((op.a, layouts.a, layouts.atom.a_forms), (op.b, layouts.b, layouts.atom.b_forms))
    for index, (side, (value, layout, forms)) in enumerate(zip(lane.AsyncAtomOp.SIDES, sides, strict=True)):
        size = layout.registers // layouts.steps
        firsts = [step * size + repeat[index] for repeat, step in order]
        operand, view = layouts.shared[index], view_of(value, op)
        if operand is None or view is None:
            parts[side] = context.tiles[value, layout]
            properties[side] = dense_i64(tuple(firsts))
            continue
        parts[f"{side}_address"], found = _addresses(context, context.views[view.view], operand, layout, firsts)
        properties |= {f"{side}{name}": number for name, number in found.items()}
        properties[f"{side}_form"] = integer_attr(forms.index(operand.form))
    parts["acc"] = sums
    properties |= {"parts": string_attr(",".join(parts)), "d": dense_i64(tuple(repeat[2] for repeat, _ in order))}
    type = lane.vector(layouts.d.registers, ELEMENTS[layouts.atom.d])
    made = builder.insert(lane.AsyncAtomOp.create(operands=list(parts.values()), result_types=[type], properties=properties))
    return cast(builder, made.results[0], types.dtype_of(acc.type).ir)


def _addresses(
    context: LoweringContext, view: SharedView, operand: SharedOperand, layout: LinearLayout, firsts: Sequence[int]
) -> tuple[SSAValue, dict[str, Attribute]]:
    """Where the first elements of the atoms stand: the address of a wave, and each atom's slot of it and bytes beyond."""
    thread = [operand.offset(basis) for basis in layout.thread]
    constants = [operand.offset(layout.element(first, 0)) for first in firsts]
    address, slots, immediates = addresses(context, view.address, thread, constants)
    properties: dict[str, Attribute] = {
        "": dense_i64(tuple(immediates)), "_slots": dense_i64(tuple(slots)), "_stride": integer_attr(operand.row_stride),
        "_buffer": integer_attr(view.buffer), "_ring": integer_attr(view.slots), "_phase": integer_attr(view.phase),
    }
    return address, properties
