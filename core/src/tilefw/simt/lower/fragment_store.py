"""Writes of a tile to shared memory by fragment stores: the loads of `fragment_load.py` the other way round, by its algebra."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, SSAValue

from tilefw.simt import lane
from tilefw.simt.lower.fragment_load import FragmentRead
from tilefw.simt.lower.shared_address import SharedAccessContext, addresses
from tilefw.tile.dialect.base import dense_i64, integer_attr, string_attr


def emit(
    context: SharedAccessContext, address: SSAValue, how: FragmentRead, value: SSAValue, properties: Mapping[str, Attribute]
) -> None:
    """Store `value`, registers of a layout that `how` reads, to the buffer at `address`; `properties` say which that is."""
    b = context.builder
    where, slots, immediates = addresses(context, address, how.thread, how.constants)
    registers = sorted(range(len(how.order)), key=how.order.__getitem__)  # of each element of the accesses, one after the other
    found = {
        "parts": string_attr("address,value"), "store": string_attr(how.load.name), "count": integer_attr(how.count),
        "slots": dense_i64(tuple(slots)), "immediates": dense_i64(tuple(immediates)), **properties,
    }
    if how.transposed:
        found["transposed"] = UnitAttr()
    b.insert(lane.FragmentStoreOp.create(operands=[where, b.pick(value, registers)], properties=found))
