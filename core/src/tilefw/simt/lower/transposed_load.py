"""A read of shared memory by transposing loads: the addresses that the lanes give, and the order of what they receive.

Lane IR has them as fragment loads: an access gives a lane `count` registers of 32 bits, each lane saying where its row stands.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Attribute, SSAValue

from tilefw.simt import lane
from tilefw.simt.layout import LinearLayout, f2
from tilefw.simt.layout.shared import SharedLayout
from tilefw.simt.layout.transposed import TransposedRead
from tilefw.simt.lower.shared_address import SharedAccessContext, addresses
from tilefw.tile.dialect.base import dense_i64, integer_attr, string_attr

_REGISTER_BYTES = 4


def emit(
    context: SharedAccessContext, address: SSAValue, shared: SharedLayout, layout: LinearLayout, read: TransposedRead, flip: int,
    element: Attribute, properties: Mapping[str, Attribute],
) -> SSAValue:
    """The elements of `layout` as a lane value. `address` is where the buffer (or its slot) begins; `flip` is XORed to the flat
    index of every element; `properties` say which buffer it is (`lane.shared_properties`)."""
    b, size = context.builder, read.load.cell_bits // 8
    thread = [offset * size for offset in shared.offsets((*read.lanes, *layout.wave))]
    start = shared.offset(flip) * size
    constants = [start ^ offset * size for offset in f2.table(shared.offsets(layout.register[read.width :]))]
    where, slots, immediates = addresses(context, address, thread, constants)
    found = {
        "parts": string_attr("address"), "load": string_attr(read.load.name),
        "count": integer_attr(read.load.bytes // _REGISTER_BYTES), "slots": dense_i64(tuple(slots)),
        "immediates": dense_i64(tuple(immediates)), **properties,
    }
    type = lane.vector(layout.registers, element)
    return b.insert(lane.FragmentLoadOp.create(operands=[where], result_types=[type], properties=found)).results[0]
