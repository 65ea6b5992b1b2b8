"""Plans of conversions: the cheapest kind that serves, as few shuffles as data allows, costs and reasons."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import BLOCKS
from random_layouts import pairs

from tilefw.api.errors import InternalError
from tilefw.simt.layout import LinearLayout, blocked, convert
from tilefw.simt.layout.convert import RegisterMove, ThroughShared
from tilefw.simt.layout.shuffle import Shuffle


def accumulator(rows: int, columns: int) -> LinearLayout:
    """Tiles of 16x8: lane bits 0-1 pairs along a row, bits 2-4 rows; further tiles along the row in registers."""
    row = columns
    more = tuple(8 << i for i in range((columns // 8).bit_length() - 1))
    return LinearLayout((rows, columns), (1, 8 * row, *more), (2, 4, row, 2 * row, 4 * row), (16 * row, 32 * row))


def operand(rows: int, columns: int) -> LinearLayout:
    """The left operand of an atom of 16x8x16: as two tiles of the accumulator side by side, in the order of its registers."""
    return replace(accumulator(rows, columns), register=(1, 8 * columns, *accumulator(rows, columns).register[2:]))


def test_an_accumulator_is_an_operand_without_leaving_its_thread():
    plan = convert.plan(accumulator(64, 32), operand(64, 32), 16, BLOCKS)
    assert isinstance(plan, RegisterMove) and plan.cost == 0 and plan.indices == tuple(range(16))


def test_registers_of_small_elements_are_renamed_for_free_in_pairs_only():
    layout = blocked((16, 64), (1, 0), 8, 32, 1)
    swapped = replace(layout, register=(layout.register[0], *layout.register[:0:-1]))
    torn = replace(layout, register=layout.register[::-1])
    assert convert.plan(layout, swapped, 16, BLOCKS).cost == 0
    assert convert.plan(layout, torn, 16, BLOCKS).cost == layout.registers // 2
    assert convert.plan(layout, torn, 32, BLOCKS).cost == 0


@pytest.mark.parametrize("bits", [16, 32])
def test_lanes_that_trade_places_take_one_shuffle_a_register(bits):
    source = blocked((8, 64), (1, 0), 2, 32, 1)
    target = replace(source, lane=(*source.lane[1:], source.lane[0]))
    plan = convert.plan(source, target, bits, BLOCKS)
    assert isinstance(plan, Shuffle) and not any(plan.send) and not any(plan.receive)
    assert plan.instructions(bits) == source.registers * bits // 32


def test_what_stays_in_its_lane_is_not_shuffled():
    """One register bit against one lane bit: half of the registers stay."""
    source = blocked((16, 32), (1, 0), 1, 32, 1)
    target = replace(source, register=(source.lane[0], *source.register[1:]), lane=(source.register[0], *source.lane[1:]))
    plan = convert.plan(source, target, 32, BLOCKS)
    assert isinstance(plan, Shuffle) and plan.exact
    assert plan.instructions(32) == source.registers // 2


def test_a_flip_is_a_renaming_along_registers_and_a_shuffle_along_lanes():
    layout = blocked((4, 128), (1, 0), 4, 32, 1)
    rows, columns = (convert.plan(layout, layout, 32, BLOCKS, layout.flipped(d)) for d in (0, 1))
    assert isinstance(rows, RegisterMove) and rows.indices[:4] == (12, 13, 14, 15)
    assert isinstance(columns, Shuffle) and columns.exact and [r.lane for r in columns.rounds] == [31]
    assert columns.instructions(32) == layout.registers


def test_what_crosses_waves_goes_through_shared_memory_and_says_so():
    source, target = blocked((64, 64), (1, 0), 8, 32, 4), blocked((64, 64), (0, 1), 8, 32, 4)
    plan = convert.plan(source, target, 16, BLOCKS)
    assert isinstance(plan, ThroughShared) and plan.bytes == 8192
    assert plan.reason == "rows and columns move across waves; through 8192 bytes of shared memory"


def test_elements_that_nobody_holds_cannot_be_had():
    half = LinearLayout((2, 32), (), (1, 2, 4, 8, 16), ())
    with pytest.raises(InternalError):
        convert.plan(half, LinearLayout((2, 32), (32,), (1, 2, 4, 8, 16), ()), 32, BLOCKS)


@settings(max_examples=200, deadline=None)
@given(pairs(), st.sampled_from([8, 16, 32, 64]))
def test_a_plan_fits_its_kind_and_costs_no_more_than_shared_memory(layouts, bits):
    source, target = layouts
    plan = convert.plan(source, target, bits, BLOCKS)
    without = convert.plan(source, target, bits, replace(BLOCKS, shuffles=False))
    assert plan.cost <= without.cost
    assert isinstance(plan, RegisterMove) == (convert.register_map(source, target) is not None)
    if source.canonical == target.canonical:
        assert isinstance(plan, RegisterMove)
    if isinstance(plan, Shuffle):
        assert sorted(r for round in plan.rounds for r in round.taken) == list(range(target.registers))
