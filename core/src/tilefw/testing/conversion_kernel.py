"""A lane function that is one conversion: a tile of numbers made in one layout, stored from another; for tests of any chip."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from xdsl.dialects.builtin import UnknownLoc
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue

from tilefw.simt import lane
from tilefw.simt.description import LaneMachine
from tilefw.simt.lane.builder import LaneBuilder
from tilefw.simt.layout import LinearLayout
from tilefw.simt.layout.convert import Plan
from tilefw.simt.lower import exchange
from tilefw.simt.lower.access import Addressing
from tilefw.tile import types
from tilefw.tile.dialect.base import integer_attr
from tilefw.tile.reference.value import Array

ELEMENTS = {"i1": types.i1, "i8": types.i8, "i16": types.i16, "i32": types.i32, "i64": types.i64}
_HELD = {"i1": np.uint8, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}
_MIX = 167  # so that the low bits of a number tell more of an index than its low bits


def conversion_kernel(plan: Plan, source: LinearLayout, target: LinearLayout, element: str, machine: LaneMachine) -> FuncOp:
    """`k(out)`: thread t's register r of the converted tile at out[t, r]; what is expected there says `converted`.

    Shared memory is not placed yet, and there are no barriers.
    """
    block = Block(arg_types=[types.pointer(ELEMENTS["i8" if element == "i1" else element])])
    builder = LaneBuilder(block, UnknownLoc())
    address = Addressing(builder, {}, None, types.i64, None)  # type: ignore[arg-type]
    context: Any = SimpleNamespace(builder=builder, address=address, machine=machine)
    value = exchange.emit(context, _numbers(builder, address.index(source), element), plan, source, target)
    _store(builder, address.thread_id(), value, builder.op("ptr_to_int", block.args[0], result=types.i64))
    builder.insert(ReturnOp())
    function = FuncOp("k", ([block.args[0].type], []), Region(block))
    function.attributes.update({"lane.lanes": integer_attr(machine.lanes), "lane.waves": integer_attr(machine.waves)})
    return function


def converted(target: LinearLayout, element: str, flip: int) -> Array:
    """What the threads hold in the end, as (threads, registers)."""
    indices = [[e ^ t ^ flip for e in target.elements] for t in (target.element(0, i) for i in range(1 << len(target.thread)))]
    mixed = np.array(indices, np.int64) * _MIX
    return (mixed >> 3 & 1 if element == "i1" else mixed).astype(_HELD[element])


def _numbers(b: LaneBuilder, index: SSAValue, element: str) -> SSAValue:
    mixed = b.op("muli", index, b.constant(_MIX, index.type))
    if element == "i1":
        return b.op("nei", b.op("andi", mixed, b.constant(8, mixed.type)), b.constant(0, mixed.type))
    return b.extend(mixed, ELEMENTS[element])


def _store(b: LaneBuilder, thread: SSAValue, value: SSAValue, base: SSAValue) -> None:
    if types.is_bool(value.type):
        value = b.op("extu", value, result=types.i8)
    n, size = types.shape_of(value.type)[0], types.dtype_of(value.type).storage_bits // 8
    offset = b.extend(b.op("muli", thread, b.constant(n * size, thread.type)), types.i64)
    where = b.op("addi", b.splat(base, 1), offset)
    properties = lane.access_properties("address,value", 1, [0] * n, range(0, n * size, size), 0)
    b.insert(lane.StoreOp.create(operands=[where, value], properties=properties))
