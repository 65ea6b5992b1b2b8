"""Conversions between any two layouts bring every element where it is wanted, without races, on every kind of chip."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from made_up import BLOCKS, PLAIN
from random_layouts import pairs
from xdsl.context import Context as XContext
from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr, UnknownLoc
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region, SSAValue

from tilefw.simt import convert, exchange, lane
from tilefw.simt.access import Addressing
from tilefw.simt.barriers import InsertBarriers
from tilefw.simt.builder import LaneBuilder
from tilefw.simt.description import ChipDescription, Machine
from tilefw.simt.layout import LinearLayout
from tilefw.simt.place_shared import PlaceShared
from tilefw.simt.shared_pattern import banks_of
from tilefw.simt.shuffle import shuffle
from tilefw.testing.lane_interpreter import run
from tilefw.tile import types

TYPES: dict[str, tuple[Attribute, Any]] = {
    "i1": (types.i1, np.uint8), "i8": (types.i8, np.int8), "i16": (types.i16, np.int16), "i32": (types.i32, np.int32),
    "i64": (types.i64, np.int64),
}


@dataclass
class Context:
    """What emitters ask of the lowering."""

    builder: LaneBuilder
    address: Addressing
    machine: Machine


def numbers_of(indices: np.ndarray, name: str) -> np.ndarray:
    """What an element holds: a number that tells its index, as far as the type can."""
    mixed = indices.astype(np.int64) * (1 if name in ("i16", "i32", "i64") else 167)
    return (mixed >> 3 & 1 if name == "i1" else mixed).astype(TYPES[name][1])


def converted(
    source: LinearLayout, target: LinearLayout, name: str, chip: ChipDescription, flip: int, plan: convert.Plan
) -> np.ndarray:
    """What the threads hold in the end, as (threads, registers)."""
    element, dtype = TYPES[name]
    chip = replace(chip, lanes=1 << len(source.lane))
    machine = Machine(chip, 1 << len(source.warp))
    block = Block(arg_types=[types.i64])
    builder = LaneBuilder(block, UnknownLoc())
    context = Context(builder, Addressing(builder, {}, None, types.i64, 16), machine)  # type: ignore[arg-type]
    index = context.address.index(source)
    value = _made(builder, index, name, element)
    result = exchange.emit(context, value, plan, source, target)
    _store(context, result, block.args[0], target.registers, np.dtype(dtype).itemsize)
    builder.insert(ReturnOp())
    function = FuncOp.create(
        properties={"sym_name": StringAttr("k"), "function_type": FunctionType.from_lists([types.i64], [])}, regions=[Region(block)]
    )
    module = ModuleOp([function])
    for step in (PlaceShared(chip.shared_bytes), InsertBarriers()):
        step.apply(XContext(), module)
    module.verify()
    out = np.zeros(machine.threads * target.registers, dtype)
    run(function, [out], (1,), machine)
    return out.reshape(machine.threads, target.registers)


def _made(b: LaneBuilder, index: SSAValue, name: str, element: Attribute) -> SSAValue:
    if name in ("i32", "i64"):
        return b.extend(index, element)
    if name == "i16":
        return b.op("trunci", index, result=element)
    mixed = b.op("muli", index, b.constant(167, index.type))
    if name == "i8":
        return b.op("trunci", mixed, result=element)
    return b.op("nei", b.op("andi", mixed, b.constant(8, mixed.type)), b.constant(0, mixed.type))


def _store(context: Context, value: SSAValue, pointer: SSAValue, registers: int, size: int) -> None:
    b = context.builder
    if types.is_bool(value.type):
        value = b.op("extu", value, result=types.i8)
    thread = context.address.thread_id()
    offset = b.extend(b.op("muli", thread, b.constant(registers * size, thread.type)), types.i64)
    address = b.op("addi", b.splat(pointer, 1), offset)
    properties = lane.access_properties("address,value", 1, [0] * registers, [r * size for r in range(registers)], 0)
    b.insert(lane.StoreOp.create(operands=[address, value], properties=properties))


def expected(target: LinearLayout, name: str, flip: int) -> np.ndarray:
    threads = 1 << len(target.thread)
    indices = np.array([[target.element(r, t) ^ flip for r in range(target.registers)] for t in range(threads)])
    return numbers_of(indices, name)


CHIPS = {
    "no shuffles": PLAIN, "shuffles": replace(BLOCKS, fragment_loads=()), "fragment loads": replace(BLOCKS, shuffles=False),
    "narrow": replace(BLOCKS, banks=16, shared_access_bytes=8),
}


@settings(max_examples=150, deadline=None)
@given(pairs((16, 32, 64)), st.sampled_from(sorted(TYPES)), st.sampled_from(sorted(CHIPS)), st.data())
def test_any_layout_becomes_any_other(layouts, name, chip, data):
    source, target = layouts
    axis = data.draw(st.none() | st.integers(0, len(source.shape) - 1))
    flip = 0 if axis is None else source.flipped(axis)
    plan = convert.plan(source, target, int(name[1:]), CHIPS[chip], flip)
    assert (converted(source, target, name, CHIPS[chip], flip, plan) == expected(target, name, flip)).all()


@settings(max_examples=100, deadline=None)
@given(pairs((16, 32, 64)), st.sampled_from(sorted(TYPES)), st.data())
def test_shuffles_are_right_where_they_are_not_the_cheapest_too(layouts, name, data):
    source, target = layouts
    flip = data.draw(st.sampled_from([0, *(source.flipped(d) for d in range(len(source.shape)))]))
    plan = shuffle(source, target, max(8, int(name[1:])), flip)
    assume(plan is not None)
    assert (converted(source, target, name, CHIPS["shuffles"], flip, plan) == expected(target, name, flip)).all()


@settings(max_examples=100, deadline=None)
@given(pairs((16, 32, 64)), st.sampled_from(["i8", "i32"]), st.sampled_from(["shuffles", "fragment loads"]), st.data())
def test_a_tile_goes_through_shared_memory_in_parts(layouts, name, chip, data):
    source, target = layouts
    flip = data.draw(st.sampled_from([0, *(source.flipped(d) for d in range(len(source.shape)))]))
    plan = convert.through_shared(source, target, int(name[1:]), flip, banks_of(CHIPS[chip]), 16)
    assume(len(plan.parts.registers) > 1)
    assert plan.bytes * len(plan.parts.registers) == int(name[1:]) // 8 << source.bits
    assert (converted(source, target, name, CHIPS[chip], flip, plan) == expected(target, name, flip)).all()
