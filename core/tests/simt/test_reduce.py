"""A reduction combines every element of the axis exactly once, in any layout."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import UnknownLoc
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region

from tilefw.simt import lane
from tilefw.simt.description import ChipDescription, Machine
from tilefw.simt.lane.builder import LaneBuilder
from tilefw.simt.layout import LinearLayout
from tilefw.simt.lower import reduce
from tilefw.simt.lower.access import Addressing
from tilefw.testing.lane_interpreter import run
from tilefw.tile import types
from tilefw.tile.elementwise import build
from tilefw.tile.ops import ConstantOp as TileConstantOp
from tilefw.tile.reduce_op import ReduceOp, ReduceReturnOp

SHAPES = [(8,), (4, 8), (2, 4, 4), (1, 4), (16, 2)]


@st.composite
def layouts(draw: Any, lanes: int = 3, warps: int = 2) -> LinearLayout:
    """A layout of a small tile that covers it, with copies and bases that mix dims."""
    shape = draw(st.sampled_from(SHAPES))
    size = int(np.prod(shape)).bit_length() - 1
    vectors = draw(st.permutations(range(size)))
    mixed: list[int] = []
    for i, bit in enumerate(vectors):  # unit triangular in some order: invertible
        mixed.append(1 << bit | sum(1 << b for b in vectors[:i] if draw(st.booleans())))
    places = [draw(st.integers(0, 2)) for _ in mixed]
    register = tuple(b for b, p in zip(mixed, places, strict=True) if p == 0)
    thread = [[b for b, p in zip(mixed, places, strict=True) if p == k][:most] for k, most in ((1, lanes), (2, warps))]
    left = [b for k, most in ((1, lanes), (2, warps)) for b in [b for b, p in zip(mixed, places, strict=True) if p == k][most:]]
    copies = [draw(st.sampled_from([0, *mixed])) for _ in range(lanes + warps)]
    lane_bases = tuple(thread[0] + copies[: lanes - len(thread[0])])
    warp_bases = tuple(thread[1] + copies[lanes : lanes + warps - len(thread[1])])
    return LinearLayout(shape, register + tuple(left), lane_bases, warp_bases)


@given(layouts(), st.data())
def test_directions_reach_each_element_of_the_axis_once(layout: LinearLayout, data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(layout.shape) - 1))
    found = reduce.directions(layout, axis).found
    reached = set()
    for chosen in product((0, 1), repeat=len(found)):
        register = thread = 0
        for take, d in zip(chosen, found, strict=True):
            if take:
                register ^= d.register
                thread ^= d.lane | d.warp << len(layout.lane)
        where = layout.coordinates(layout.element(register, thread))
        assert all(c == 0 for d, c in enumerate(where) if d != axis)
        reached.add(where[axis])
    assert reached == set(range(layout.shape[axis])) and 1 << len(found) == layout.shape[axis]


def _combine(row: str, element: Any) -> Region:
    block = Block(arg_types=[element, element])
    op = build(row, *block.args)
    block.add_ops([op, ReduceReturnOp([op.results[0]])])
    return Region(block)


def build_tile(shape: tuple[int, ...], element: Any) -> Any:
    """A tile value that nothing computes: the op only says its type."""
    return TileConstantOp(0, types.tile(shape, element)).result


def _load(builder: LaneBuilder, address: Addressing, source: Any, layout: LinearLayout, element: Any, size: int) -> Any:
    n = layout.registers
    at = builder.op("addi", builder.splat(source, n), address.scaled(address.index(layout), size))
    load = lane.LoadOp.create(
        operands=[at], result_types=[lane.vector(n, element)], properties=lane.access_properties("address", 1, range(n), [0] * n, 0)
    )
    return builder.insert(load).results[0]


def _reduced(layout: LinearLayout, axis: int, row: str, element: Any, values: np.ndarray, shuffles: bool) -> np.ndarray:
    """The result that every place holds, as a function of (register, thread); `values` are the tile's elements, flat."""
    chip = ChipDescription("test", 1 << len(layout.lane), 64, 16, shared_bytes=4096, shuffles=shuffles)
    machine = Machine(chip, 1 << len(layout.warp))
    block = Block(arg_types=[types.pointer(element), types.pointer(element)])
    builder = LaneBuilder(block, UnknownLoc())
    source, target = (builder.op("ptr_to_int", a, result=types.i64) for a in block.args)
    address = Addressing(builder, {}, None, types.i64, 16)  # type: ignore[arg-type]
    context: Any = SimpleNamespace(builder=builder, address=address, machine=machine)
    size = types.dtype_of(element).storage_bits // 8
    value = _load(builder, address, source, layout, element, size)
    op = ReduceOp([build_tile(layout.shape, element)], axis, _combine(row, element))
    (result,) = reduce.lower(context, op, [value], layout)
    if not types.shape_of(result.type):
        result = builder.splat(result, 1)
    n = types.shape_of(result.type)[0]
    place = address.scaled(address.thread_id(), n * size)
    at = builder.op("addi", builder.splat(target, 1), place)
    properties = lane.access_properties("address,value", 1, [0] * n, [size * i for i in range(n)], 1)
    builder.insert(lane.StoreOp.create(operands=[at, result], properties=properties))
    builder.insert(ReturnOp())
    out = np.zeros(machine.threads * n, values.dtype)
    run(_with_barriers(FuncOp("test", ([a.type for a in block.args], []), Region(block))), [values.copy(), out], (1,), machine)
    return out.reshape(machine.threads, n)


def _with_barriers(function: FuncOp) -> FuncOp:
    """Straight-line code with a barrier on both sides of every trip's stores: more than are needed."""
    block = function.body.block
    for op in list(block.ops):
        if isinstance(op, lane.StoreOp) and op.shared:
            block.insert_op_before(lane.BarrierOp.create(), op)
            block.insert_op_after(lane.BarrierOp.create(), op)
    return function


CASES = [("addi", types.i32, np.int32), ("maxs", types.i32, np.int32), ("xori", types.i1, np.bool_), ("addi", types.i64, np.int64),
         ("maxf", types.f16, np.float16), ("addi", types.i8, np.int8)]
MEANINGS: dict[str, Any] = {"addi": np.add, "maxs": np.maximum, "xori": np.bitwise_xor, "maxf": np.maximum}


@pytest.mark.parametrize("shuffles", [True, False])
@pytest.mark.parametrize("row, element, dtype", CASES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_every_place_ends_with_the_whole_reduction(
    row: str, element: Any, dtype: type, shuffles: bool, data: st.DataObject
) -> None:
    layout = data.draw(layouts())
    axis = data.draw(st.integers(0, len(layout.shape) - 1))
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2 if dtype is np.bool_ else 100, int(np.prod(layout.shape))).astype(dtype)
    found = _reduced(layout, axis, row, element, values, shuffles)
    wanted = MEANINGS[row].reduce(values.reshape(layout.shape), axis=axis, dtype=dtype).reshape(-1)
    target, _ = layout.slice(axis)
    for thread, register in product(range(len(found)), range(target.registers)):
        assert found[thread, register] == wanted[target.element(register, thread)], (layout, axis, thread, register)


def test_a_lane_runs_over_its_elements_with_few_accumulators() -> None:
    """64 elements in one lane: each is combined into one of four running values as it comes."""
    block = Block()
    builder = LaneBuilder(block, UnknownLoc())
    layout = LinearLayout((64,), tuple(1 << i for i in range(6)), (0,) * 5, (0,) * 2)
    chip = ChipDescription("test", 32, 64, 16, shared_bytes=4096, shuffles=True)
    context: Any = SimpleNamespace(builder=builder, machine=Machine(chip, 4))
    op = ReduceOp([build_tile((64,), types.f32)], 0, _combine("addf", types.f32))
    value = builder.insert(lane.ThreadIdOp.create(result_types=[lane.vector(64, types.f32)])).results[0]
    (result,) = reduce.lower(context, op, [value], layout)
    sizes = [types.shape_of(o.results[0].type)[0] for o in block.ops if o.name == "lane.addf"]
    assert sizes == [4] * 15 + [2, 1] and types.shape_of(result.type) == ()
