"""A reduction combines every element of the axis exactly once, in any layout."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from combining_lanes import CASES, MEANINGS, at_every_place, build_tile, by_row, layouts
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import UnknownLoc
from xdsl.ir import Block

from tilefw.simt import lane
from tilefw.simt.description import ChipDescription, LaneMachine
from tilefw.simt.lane.builder import LaneBuilder
from tilefw.simt.layout import LinearLayout
from tilefw.simt.lower import reduce
from tilefw.tile import types
from tilefw.tile.dialect.combine_op import ReduceOp, ReduceReturnOp
from tilefw.tile.dialect.constant_op import ConstantOp
from tilefw.tile.dialect.elementwise_op import build
from tilefw.tile.dialect.ops import BroadcastOp, ExpandDimsOp, IotaOp


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
                thread ^= d.lane | d.wave << len(layout.lane)
        where = layout.coordinates(layout.element(register, thread))
        assert all(c == 0 for d, c in enumerate(where) if d != axis)
        reached.add(where[axis])
    assert reached == set(range(layout.shape[axis])) and 1 << len(found) == layout.shape[axis]


@given(layouts(), st.data())
def test_a_lone_index_is_in_no_register_but_those_taken(layout: LinearLayout, data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(layout.shape) - 1))
    index = data.draw(st.integers(0, layout.shape[axis] - 1))
    taken = reduce.lone_registers(layout, axis, index)
    local = [d for d in reduce.directions(layout, axis).found if d.local]
    threads = 1 << len(layout.lane) + len(layout.wave)
    holders = {
        register for register, thread in product(range(layout.registers), range(threads))
        if layout.coordinates(layout.element(register, thread))[axis] == index
    }
    if taken is None:  # of registers that are combined some lanes have it in one, others in another
        assert len({_left(register, local) for register in holders}) < len(holders)
    else:
        assert holders <= set(taken.values()) and len(taken) == layout.registers >> len(local)
        assert all(_left(taken[register], local) == register for register in taken)


@pytest.mark.parametrize("row, element, neutral, dtype", [("maxs", types.i32, 5, np.int32), ("addf", types.f32, 0.0, np.float32)])
def test_a_lone_element_is_combined_with_the_neutral_ones_that_its_lane_has_too(
    row: str, element: Any, neutral: float, dtype: type
) -> None:
    """A maximum with fives is 5 at least, and -0 beside zeros +0, where no other lane has the axis."""
    layout = LinearLayout((8, 4), (1, 2), (4, 8, 16), (0, 0))
    along = ExpandDimsOp(IotaOp(0, 4).results[0], 0).results[0]
    mask = BroadcastOp(build("eqi", along, ConstantOp(1, along.type).result).results[0], types.tile((8, 4), types.i1)).results[0]
    tile = build_tile((8, 4), element)
    picked = build("select", mask, tile, ConstantOp(neutral, tile.type).result).results[0]
    values = np.full((8, 4), neutral, dtype)
    values[:, 1] = [-0.0, 1, 2, 9, -3, 4, 5, 6]
    op = ReduceOp([picked], 1, by_row(row, element, ReduceReturnOp))
    (found,) = at_every_place(op, reduce.lower, layout, [values.reshape(-1)], shuffles=True)
    wanted = np.maximum(values[:, 1], 5) if row == "maxs" else values[:, 1] + np.float32(0)
    assert [found[lane, 0].tobytes() for lane in range(8)] == [each.tobytes() for each in wanted]


def _left(register: int, local: list[reduce.Direction]) -> int:
    """The register that is left of those which are combined with this one within a lane."""
    for direction in reversed(local):
        if register >> direction.pivot & 1:
            register ^= direction.register
    return register


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
    op = ReduceOp([build_tile(layout.shape, element)], axis, by_row(row, element, ReduceReturnOp))
    (found,) = at_every_place(op, reduce.lower, layout, [values], shuffles)
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
    context: Any = SimpleNamespace(builder=builder, machine=LaneMachine(chip, 4))
    op = ReduceOp([build_tile((64,), types.f32)], 0, by_row("addf", types.f32, ReduceReturnOp))
    value = builder.insert(lane.ThreadIdOp.create(result_types=[lane.vector(64, types.f32)])).results[0]
    (result,) = reduce.lower(context, op, [value], layout)
    sizes = [types.shape_of(o.results[0].type)[0] for o in block.ops if o.name == "lane.addf"]
    assert sizes == [4] * 15 + [2, 1] and types.shape_of(result.type) == ()
