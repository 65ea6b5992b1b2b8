"""Reads and writes of a tile in shared memory by all threads, each in its layout, with the widest accesses.

The bits of a register's index are changed for others: the lowest choose the element within an access, the rest the access. The
offset of an access is that of its thread XOR a constant. Where threads differ in the order of the elements within an access,
registers change places by selects.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from xdsl.ir import Attribute, SSAValue

from tilefw.api.errors import InternalError
from tilefw.api.integers import log2
from tilefw.simt import lane
from tilefw.simt.lane.registers import bits_of, type_name
from tilefw.simt.layout import LinearLayout, f2
from tilefw.simt.layout.pattern import Banks, banks_of, side
from tilefw.simt.layout.shared import SharedLayout
from tilefw.simt.layout.transposed import TransposedRead
from tilefw.simt.lower import fragment_load, transposed_load
from tilefw.simt.lower.shared_address import SharedAccessContext, addresses, xor_permuted
from tilefw.tile import types
from tilefw.tile.dialect.base import string_attr


@dataclass(frozen=True)
class SharedAccesses:
    """Offsets in elements. Access k takes `width` elements from thread part XOR constants[k].

    Element i of access k is, in thread 0, register `order[k * width + i]`; in others the places within an access are XORed by the
    thread's `moves`.
    """

    width: int
    thread: tuple[int, ...]
    moves: tuple[int, ...]
    constants: tuple[int, ...]
    order: tuple[int, ...]

    @property
    def positions(self) -> tuple[int, ...]:
        """For each register its place among the accessed elements."""
        found = [0] * len(self.order)
        for place, register in enumerate(self.order):
            found[register] = place
        return tuple(found)


def storage_bits(element: Attribute) -> int:
    """The bits of an element in shared memory; an i1 is a byte."""
    return max(8, bits_of(type_name(element)))


@lru_cache(maxsize=512)
def plan(shared: SharedLayout, layout: LinearLayout, bits: int, banks: Banks, flip: int) -> SharedAccesses:
    """The accesses of a layout whose elements are XORed with `flip`, with the cheapest width."""
    return _accesses(shared, layout, side(layout, bits, banks).best(shared, banks)[1].width, flip)


def _columns(shared: SharedLayout, layout: LinearLayout, bits: int, banks: Banks) -> TransposedRead | None:
    """The transposing load that reads a layout in the fewest issue slots; None where plain reads do."""
    return side(layout, bits, banks, reads=True).best(shared, banks)[1].columns if banks.transposed else None


def _accesses(shared: SharedLayout, layout: LinearLayout, width: int, flip: int) -> SharedAccesses:
    low = (1 << width) - 1
    registers, thread = shared.offsets(layout.register), shared.offsets(layout.thread)
    inside = f2.Subspace(registers).solve_all(f2.identity(width))
    assert inside is not None, "the width is what all registers together hold"
    # Bits that move whole accesses: each other register bit, less its part within an access.
    outside = [bit ^ f2.apply(inside, f2.apply(registers, bit) & low) for bit in f2.complete(inside, len(registers))]
    start = shared.offset(flip)
    constants = [(start & ~low) ^ offset for offset in f2.table(f2.compose(registers, outside))]
    within = [f2.apply(inside, i ^ start & low) for i in range(1 << width)]
    order = [first ^ i for first in f2.table(outside) for i in within]
    return SharedAccesses(
        1 << width, tuple(t & ~low for t in thread), tuple(t & low for t in thread), tuple(constants), tuple(order)
    )


def write(
    context: SharedAccessContext, address: SSAValue, shared: SharedLayout, layout: LinearLayout, value: SSAValue,
    predicate: SSAValue | None = None, *, buffer: int, phase: int = 0, ring: int = 0, alone: bool = False,
) -> None:
    """Stores `value`, a tile in `layout`, to the buffer (an allocation's id) that begins at `address`, a uniform i32.

    Of copies in several waves one stores: others would only write the same bytes again. Copies within a wave store together,
    which costs nothing. `predicate` is one i1 for all; `alone`: it lets no copies store. `ring`, `phase`: those of `lane.store`.
    """
    b = context.builder
    element = types.element_of(value.type)
    if types.is_bool(element):
        value = b.op("extu", value, result=types.i8)
    bits = storage_bits(element)
    how = plan(shared, layout, bits, banks_of(context.machine.chip), 0)
    where, slots, immediates = _addresses(context, address, how, bits)
    first = layout.copies & -1 << len(layout.lane)
    if first and not alone:
        predicate = context.address.both(predicate, _clear(context, first))
    operands = [where, xor_permuted(context, b.pick(value, how.order), how.moves)]
    parts = "address,value"
    if predicate is not None:
        operands.append(predicate)
        parts += ",mask"
    b.insert(lane.StoreOp.create(operands=operands, properties=_properties(parts, how, slots, immediates, buffer, ring, phase)))


def read(
    context: SharedAccessContext, address: SSAValue, shared: SharedLayout, layout: LinearLayout, element_type: Attribute,
    *, buffer: int, phase: int = 0, ring: int = 0, flip: int = 0,
) -> SSAValue:
    """The tile in the buffer at `address` in `layout`: by fragment loads where one fits, by transposing loads or the widest reads.

    `flip` is XORed to the flat index of every element that is read, so that one layout serves for all k steps of a dot.
    """
    b = context.builder
    bits = storage_bits(element_type)
    stored = types.i8 if types.is_bool(element_type) else element_type
    fragments = fragment_load.match(shared, layout, bits, context.machine.chip.fragment_loads, flip)
    if fragments is not None:
        properties = lane.shared_properties(buffer, ring, phase)
        value = fragment_load.emit(context, address, fragments, stored, properties)
    elif (columns := _columns(shared, layout, bits, banks_of(context.machine.chip))) is not None:
        properties = lane.shared_properties(buffer, ring, phase)
        value = transposed_load.emit(context, address, shared, layout, columns, flip, stored, properties)
    else:
        how = plan(shared, layout, bits, banks_of(context.machine.chip), flip)
        where, slots, immediates = _addresses(context, address, how, bits)
        properties = _properties("address", how, slots, immediates, buffer, ring, phase)
        type = lane.vector(layout.registers, stored)
        loaded = b.insert(lane.LoadOp.create(operands=[where], result_types=[type], properties=properties)).results[0]
        value = b.pick(xor_permuted(context, loaded, how.moves), how.positions)
    return b.op("nei", value, b.constant(0, value.type)) if stored is not element_type else value


def copy_addresses(
    context: SharedAccessContext, address: SSAValue, shared: SharedLayout, layout: LinearLayout, width: int, bits: int
) -> tuple[SSAValue, list[int], list[int]]:
    """Where an asynchronous copy of `width` registers at a time lands: addresses, and a slot and an immediate for each copy.

    Copy k takes registers k·width … (k+1)·width - 1, in their order.
    """
    how = _accesses(shared, layout, log2(width), 0)
    if how.order[:width] != tuple(range(width)) or any(how.moves):
        raise InternalError(f"a buffer of {shared} does not keep {width} registers of {layout} together for a copy")
    return _addresses(context, address, how, bits)


def _addresses(
    context: SharedAccessContext, address: SSAValue, how: SharedAccesses, bits: int
) -> tuple[SSAValue, list[int], list[int]]:
    size = bits // 8
    return addresses(context, address, [t * size for t in how.thread], [c * size for c in how.constants])


def _clear(context: SharedAccessContext, mask: int) -> SSAValue:
    """Whether none of the thread index's bits in `mask` is set."""
    b = context.builder
    bits = b.op("andi", context.address.thread_id(), b.constant(mask, lane.vector(1, types.i32)))
    return b.op("eqi", bits, b.constant(0, bits.type))


def _properties(
    parts: str, how: SharedAccesses, slots: list[int], immediates: list[int], buffer: int, ring: int, phase: int
) -> dict[str, Attribute]:
    return {
        **lane.access_properties(parts, how.width, slots, immediates, buffer), **lane.shared_properties(buffer, ring, phase),
        "space": string_attr(lane.SHARED),
    }
