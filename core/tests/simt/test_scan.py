"""A scan puts before each element all that come before it along the axis, in their order, in any layout."""

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
from xdsl.ir import Block, Region

from tilefw.simt import lane
from tilefw.simt.description import ChipDescription, LaneMachine
from tilefw.simt.lane.builder import LaneBuilder
from tilefw.simt.layout import LinearLayout
from tilefw.simt.lower import scan
from tilefw.simt.lower.access import Addressing
from tilefw.tile import types
from tilefw.tile.dialect.combine_op import ScanOp, ScanReturnOp
from tilefw.tile.dialect.elementwise_op import build


@given(layouts(), st.data(), st.booleans())
def test_a_flip_changes_one_bit_of_the_index_and_nothing_else(layout: LinearLayout, data: st.DataObject, shuffles: bool) -> None:
    axis = data.draw(st.integers(0, len(layout.shape) - 1))
    found = scan.flips(layout, axis, shuffles)
    assert 1 << len(found) == layout.shape[axis]
    for bit, flip in enumerate(found):
        where = layout.coordinates(layout.element(flip.register, flip.lane | flip.wave << len(layout.lane)))
        assert where == tuple(1 << bit if d == axis else 0 for d in range(len(layout.shape)))
        assert (flip.how is scan.How.SHARED) == bool(flip.wave or (flip.lane and not shuffles))


@pytest.mark.parametrize("shuffles", [True, False])
@pytest.mark.parametrize("row, element, dtype", CASES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_every_place_ends_with_the_prefix_of_its_element(
    row: str, element: Any, dtype: type, shuffles: bool, data: st.DataObject
) -> None:
    layout, reverse = data.draw(layouts()), data.draw(st.booleans())
    axis = data.draw(st.integers(0, len(layout.shape) - 1))
    values = np.random.default_rng(0).integers(0, 2 if dtype is np.bool_ else 100, int(np.prod(layout.shape))).astype(dtype)
    op = ScanOp([build_tile(layout.shape, element)], axis, by_row(row, element, ScanReturnOp), reverse)
    (found,) = at_every_place(op, scan.lower, layout, [values], shuffles)
    tile = values.reshape(layout.shape)
    tile = np.flip(tile, axis) if reverse else tile
    wanted = MEANINGS[row].accumulate(tile, axis=axis, dtype=dtype)
    wanted = (np.flip(wanted, axis) if reverse else wanted).reshape(-1)
    for thread, register in product(range(len(found)), range(layout.registers)):
        assert found[thread, register] == wanted[layout.element(register, thread)], (layout, axis, reverse, thread, register)


def _affine(element: Any) -> Region:
    """The composition of two maps x -> a·x + b, first the left one: associative on integers, and far from commutative."""
    block = Block(arg_types=[element] * 4)
    a, b, c, d = block.args
    scale, moved = build("muli", a, c), build("muli", b, c)
    total = build("addi", moved.results[0], d)
    block.add_ops([scale, moved, total, ScanReturnOp([scale.results[0], total.results[0]])])
    return Region(block)


@pytest.mark.parametrize("shuffles", [True, False])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_elements_keep_their_order(shuffles: bool, data: st.DataObject) -> None:
    layout, reverse = data.draw(layouts()), data.draw(st.booleans())
    exchanges = data.draw(st.sampled_from([(), (1, 2, 3), (1, 3, 7)]))
    axis = data.draw(st.integers(0, len(layout.shape) - 1))
    _check_maps(layout, axis, reverse, shuffles, exchanges, ())


FOLLOWING = [  # layouts whose lanes follow one another along an axis
    (LinearLayout((8,), (), (1, 2, 4), ()), 0), (LinearLayout((16,), (1,), (2, 4, 8), ()), 0),
    (LinearLayout((32,), (1,), (2, 4, 8), (16,)), 0), (LinearLayout((32,), (16,), (1, 2, 4), (8,)), 0),
    (LinearLayout((4, 8), (), (1, 8, 16), (2, 4)), 0), (LinearLayout((4, 8), (8, 16), (1, 2, 4), ()), 1),
    (LinearLayout((8, 2), (1,), (0, 2, 4), (8,)), 0),
]


@pytest.mark.parametrize("modes", [(), ("up", "down"), ("lower", "upper")])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("layout", "axis"), FOLLOWING)
def test_lanes_that_follow_one_another_keep_their_order(layout: LinearLayout, axis: int, reverse: bool, modes: Any) -> None:
    _check_maps(layout, axis, reverse, True, (), modes)


def _check_maps(layout: LinearLayout, axis: int, reverse: bool, shuffles: bool, exchanges: Any, modes: tuple[str, ...]) -> None:
    size = int(np.prod(layout.shape))
    rng = np.random.default_rng(1)
    scales, offsets = rng.integers(-9, 10, size).astype(np.int32), rng.integers(-9, 10, size).astype(np.int32)
    op = ScanOp([build_tile(layout.shape, types.i32)] * 2, axis, _affine(types.i32), reverse)
    found = at_every_place(op, scan.lower, layout, [scales, offsets], shuffles, exchanges, modes)
    turn = (lambda x: np.flip(x, axis)) if reverse else (lambda x: x)
    scale, offset = turn(scales.reshape(layout.shape)).copy(), turn(offsets.reshape(layout.shape)).copy()
    for i in range(1, layout.shape[axis]):
        here, before = [tuple(at if d == axis else slice(None) for d in range(scale.ndim)) for at in (i, i - 1)]
        with np.errstate(over="ignore"):
            offset[here] += offset[before] * scale[here]
            scale[here] *= scale[before]
    for got, wanted in zip(found, (turn(scale).reshape(-1), turn(offset).reshape(-1)), strict=True):
        for thread, register in product(range(len(got)), range(layout.registers)):
            assert got[thread, register] == wanted[layout.element(register, thread)], (layout, axis, reverse)


def _steps(layout: LinearLayout, waves: int = 1) -> dict[str, int]:
    """How many lane ops of each kind a running sum of f32 takes."""
    block = Block()
    builder = LaneBuilder(block, UnknownLoc())
    chip = ChipDescription("test", 32, 64, 16, shared_bytes=4096, shuffles=True)
    address = Addressing(builder, {}, None, types.i64, 16)  # type: ignore[arg-type]
    context: Any = SimpleNamespace(builder=builder, machine=LaneMachine(chip, waves), address=address)
    op = ScanOp([build_tile(layout.shape, types.f32)], 0, by_row("addf", types.f32, ScanReturnOp))
    value = builder.insert(lane.ThreadIdOp.create(result_types=[lane.vector(layout.registers, types.f32)])).results[0]
    scan.lower(context, op, [value], layout)
    counts: dict[str, int] = {}
    for made in block.ops:
        size = types.shape_of(made.results[0].type)[0] if made.results and types.shape_of(made.results[0].type) else 1
        counts[made.name] = counts.get(made.name, 0) + size
    return counts


def test_a_scan_of_a_wave_takes_one_step_a_bit_of_the_lane() -> None:
    """5 shuffles for 32 lanes, each step with one sum: what is before an upper half stands in one lane of the lower half."""
    counts = _steps(LinearLayout((32,), (), (1, 2, 4, 8, 16), ()))
    assert counts["lane.shuffle"] == 5 and counts["lane.select"] == 5 and counts["lane.addf"] == 5


def test_lanes_that_do_not_follow_one_another_take_totals_as_well() -> None:
    """Each step but the last has the sum of the block besides that of the prefix."""
    counts = _steps(LinearLayout((32,), (), (16, 8, 4, 2, 1), ()))
    assert counts["lane.shuffle"] == 5 and counts["lane.select"] == 5 and counts["lane.addf"] == 5 + 4 - 1


def test_a_lane_runs_over_its_elements_once() -> None:
    """32 lanes with 8 elements each: 7 sums of the run, 5 steps for its total, one shuffle to the next lane, and one sum an element
    for what comes before."""
    counts = _steps(LinearLayout((256,), (1, 2, 4), (8, 16, 32, 64, 128), ()))
    assert counts["lane.shuffle"] == 5 + 1 and counts["lane.addf"] == 7 + 5 + 8


def test_several_flips_of_waves_share_one_trip() -> None:
    layout = LinearLayout((128,), (), (1, 2, 4, 8, 16), (32, 64))
    counts = _steps(layout, 4)
    assert counts["lane.alloc"] == counts["lane.store"] == 1 and counts["lane.load"] == 4
