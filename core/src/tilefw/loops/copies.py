"""Copies between memory and the program's own, for a machine with an engine that makes them: blocks of loads and of stores, whole.

What a bounded access leaves out is not copied: a buffer is filled with the load's `other` first where not all of it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Generic

from xdsl.ir import SSAValue

from tilefw.api.errors import CapacityError
from tilefw.loops.access import TileAccess, access_of
from tilefw.loops.buffers import TileBuffer, bytes_of
from tilefw.loops.index import IndexMath
from tilefw.loops.index_map import Indices
from tilefw.loops.lowering import TileLowering
from tilefw.loops.machine import BlockCopy, V
from tilefw.tile.dialect.block_ops import StoreBlockOp

Scalars = Callable[[SSAValue], V]
"""What a scalar of the kernel is where the copy is written."""
AT_ONCE = 0
"""The tag of copies that are waited for where they are started."""


@dataclass(frozen=True, slots=True)
class _Extent(Generic[V]):
    """What of a dim is copied: `count` elements from `first` on, `step` bytes apart in memory."""

    first: V | None
    count: V
    start: V
    step: V


def copy_in(lowering: TileLowering[V], access: TileAccess, buffer: TileBuffer) -> None:
    """Copy what a load accesses into a buffer."""
    start_copy_in(lowering, access, buffer, AT_ONCE, lambda value: lowering.elements.scalars[value])
    lowering.machine.wait_copy(AT_ONCE)


def start_copy_in(
    lowering: TileLowering[V], access: TileAccess, buffer: TileBuffer, tag: int, scalars: Scalars[V]
) -> None:
    """Begin to copy what a load accesses into a buffer; what it does not access is `other` there already."""
    extents = _extents(lowering, access, scalars)
    if access.bounded:
        whole = lowering.legal.true()
        for extent, size in zip(extents, access.shape, strict=True):
            same = lowering.legal("eqi", extent.count, lowering.legal.integer(size, "i64"))
            whole = lowering.legal("andi", whole, same)
        with lowering.machine.branch(lowering.legal.not_(whole)), lowering.region():
            _fill(lowering, access, buffer)
    _start(lowering, access, buffer, extents, tag, scalars, inward=True)


def copy_out(lowering: TileLowering[V], op: StoreBlockOp) -> bool:
    """Write a store by a copy, of the value's buffer or of one that is made of it; whether there was room for that."""
    access, elements = access_of(op), lowering.elements
    buffer = elements.buffers.get(op.value)
    if buffer is None or buffer.element != access.element or buffer.panel:
        try:
            buffer = lowering.temporary(access.shape, access.element)
        except CapacityError:
            return False
        lowering.store_value(op.value, buffer)

    def scalars(value: SSAValue) -> V:
        return elements.scalars[value]

    _start(lowering, access, buffer, _extents(lowering, access, scalars), AT_ONCE, scalars, inward=False)
    lowering.machine.wait_copy(AT_ONCE)
    return True


def _fill(lowering: TileLowering[V], access: TileAccess, buffer: TileBuffer) -> None:
    elements, other = lowering.elements, access.other

    def write(index: Indices, math: IndexMath[V]) -> None:
        if other is None:
            value = lowering.machine.const(0, access.element)
        else:
            value = elements.at(other, index, math)
        elements.write(buffer, index, value, math)

    lowering.each(access.shape, max(32, 8 * bytes_of(access.element)), write)


def _extents(lowering: TileLowering[V], access: TileAccess, scalars: Scalars[V]) -> list[_Extent[V]]:
    legal = lowering.legal
    zero, width = legal.integer(0, "i64"), legal.integer(bytes_of(access.element), "i64")
    found: list[_Extent[V]] = []
    for dim, size in zip(access.dims or (), access.shape, strict=True):
        offset, stride = (lowering.elements.resized(scalars(v), "i64") for v in (dim.offset, dim.stride))
        step = width if dim.unit else legal("muli", stride, width)
        count, first = legal.integer(size, "i64"), None
        if dim.bound is not None:
            room = legal("subi", lowering.elements.resized(scalars(dim.bound), "i64"), offset)
            count = legal("mins", count, legal("maxs", room, zero))
        if dim.bound is not None and dim.lower:
            first = legal("mins", legal.integer(size, "i64"), legal("maxs", legal("subi", zero, offset), zero))
            count = legal("maxs", legal("subi", count, first), zero)
            offset = legal("addi", offset, first)
        found.append(_Extent(first, count, legal("muli", offset, step), step))
    return found


def _start(
    lowering: TileLowering[V], access: TileAccess, buffer: TileBuffer, extents: list[_Extent[V]], tag: int, scalars: Scalars[V],
    inward: bool,
) -> None:
    """Begin the copy: of the last dims at once, as many as the engine counts, in loops over those before."""
    machine, legal = lowering.machine, lowering.legal
    memory, local = scalars(access.base), lowering.elements.address(buffer)
    width = bytes_of(access.element)
    steps = [prod(access.shape[dim + 1 :]) * width for dim in range(len(access.shape))]
    for extent, step in zip(extents, steps, strict=True):
        memory = legal("addi", memory, extent.start)
        if extent.first is not None:
            local = legal("addi", local, legal("muli", extent.first, legal.integer(step, "i64")))

    def nest(dim: int, memory: V, local: V) -> None:
        if dim >= len(extents) - machine.copy_dims:
            counts, strides = (tuple(getattr(extent, name) for extent in extents[dim:]) for name in ("count", "step"))
            machine.start_copy(BlockCopy(memory, local, counts, strides, tuple(steps[dim:]), width, inward), tag)
            if not inward:
                _await_same_place(lowering, extents[:dim], tag)
            return
        zero, one = legal.integer(0, "i64"), legal.integer(1, "i64")
        with machine.loop(zero, extents[dim].count, one) as turn, lowering.region():
            further = legal("addi", memory, legal("muli", turn, extents[dim].step))
            nest(dim + 1, further, legal("addi", local, legal("muli", turn, legal.integer(steps[dim], "i64"))))

    nest(0, memory, local)


def _await_same_place(lowering: TileLowering[V], outer: list[_Extent[V]], tag: int) -> None:
    """Await a copy to memory where one of the loops around it does not move on: the next turn's goes to the same place."""
    legal, machine = lowering.legal, lowering.machine
    zero = legal.integer(0, "i64")
    for extent in outer:
        with machine.branch(legal("eqi", extent.step, zero)):
            machine.wait_copy(tag)
