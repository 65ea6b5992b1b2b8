"""Conversions between any two layouts bring every element where it is wanted, without races, on every kind of chip."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from made_up import BLOCKS, PLAIN
from random_layouts import pairs
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from tilefw.simt.description import ChipDescription, LaneMachine
from tilefw.simt.layout import LinearLayout, convert
from tilefw.simt.layout.convert import Plan
from tilefw.simt.layout.pattern import banks_of
from tilefw.simt.layout.shuffle import shuffle
from tilefw.simt.shared_memory.barriers import InsertBarriers
from tilefw.simt.shared_memory.placement import PlaceShared
from tilefw.testing.conversion_kernel import ELEMENTS, conversion_kernel, converted
from tilefw.testing.lane_interpreter import run

TYPES = st.sampled_from(sorted(ELEMENTS))
WAVES = (16, 32, 64)
CHIPS = {
    "no shuffles": PLAIN, "shuffles": replace(BLOCKS, fragment_loads=()), "fragment loads": replace(BLOCKS, shuffles=False),
    "narrow": replace(BLOCKS, banks=16, shared_access_bytes=8),
}


def check(plan: Plan, layouts: tuple[LinearLayout, LinearLayout], name: str, chip: ChipDescription, flip: int) -> None:
    """The plan's code, executed, leaves every element where it is wanted."""
    source, target = layouts
    machine = LaneMachine(replace(chip, lanes=1 << len(source.lane)), 1 << len(source.wave))
    function = conversion_kernel(plan, source, target, name, machine)
    module = ModuleOp([function])
    for step in (PlaceShared(chip.shared_bytes), InsertBarriers()):
        step.apply(Context(), module)
    module.verify()
    wanted = converted(target, name, flip)
    out = np.zeros_like(wanted)
    run(function, [out], (1,), machine)
    assert (out == wanted).all()


def flips(layout: LinearLayout) -> st.SearchStrategy[int]:
    return st.sampled_from([0, *(layout.flipped(d) for d in range(len(layout.shape)))])


@settings(max_examples=150, deadline=None)
@given(pairs(WAVES), TYPES, st.sampled_from(sorted(CHIPS)), st.data())
def test_any_layout_becomes_any_other(layouts, name, chip, data):
    flip = data.draw(flips(layouts[0]))
    check(convert.plan(*layouts, int(name[1:]), CHIPS[chip], flip), layouts, name, CHIPS[chip], flip)


@settings(max_examples=100, deadline=None)
@given(pairs(WAVES), TYPES, st.data())
def test_shuffles_are_right_where_they_are_not_the_cheapest_too(layouts, name, data):
    flip = data.draw(flips(layouts[0]))
    plan = shuffle(*layouts, max(8, int(name[1:])), flip)
    assume(plan is not None)
    check(plan, layouts, name, CHIPS["shuffles"], flip)


def stacked(layout: LinearLayout, at: int) -> LinearLayout:
    """Four such tiles one above the other, each in registers of its own: two more register bits, from bit `at` on."""
    new = (1 << layout.bits, 2 << layout.bits)
    register = (*layout.register[:at], *new, *layout.register[at:])
    return LinearLayout((4, *layout.shape), register, layout.lane, layout.wave)


@settings(max_examples=100, deadline=None)
@given(pairs(WAVES, most_waves=2), st.sampled_from(["i8", "i32"]), st.sampled_from(["shuffles", "fragment loads"]), st.data())
def test_a_tile_goes_through_shared_memory_in_parts(layouts, name, chip, data):
    source, target = (stacked(layout, data.draw(st.integers(0, len(layout.register)))) for layout in layouts)
    flip, bits = data.draw(flips(source)), int(name[1:])
    limit = max(1, min((bits // 8 << source.bits) // 4, CHIPS[chip].shared_bytes))
    plan = convert.through_shared(source, target, bits, flip, banks_of(CHIPS[chip]), limit)
    assert plan.bytes <= limit
    check(plan, (source, target), name, CHIPS[chip], flip)
