"""Clocks of many agents are arrays: they tell what tuples tell, and those who know the same share one."""

from __future__ import annotations

import numpy as np
import pytest

from tilefw.sim.memory.views.knowledge import Knowledge, first_clock, later
from tilefw.sim.memory.views.wide_clock import WideClock


def test_few_agents_have_tuples_and_many_have_arrays():
    assert first_clock(4) == (0,) * 4
    assert isinstance(first_clock(500), WideClock)


@pytest.mark.parametrize("seed", range(5))
def test_arrays_know_what_tuples_know(seed):
    random = np.random.default_rng(seed)
    one, other = (random.integers(0, 9, 60) for _ in range(2))
    wide, narrow = later(WideClock(one), WideClock(other)), later(tuple(one.tolist()), tuple(other.tolist()))
    assert [wide[agent] for agent in range(60)] == list(narrow)
    moved = Knowledge(WideClock(one)).after(7, 99).clock
    assert [moved[agent] for agent in range(60)] == list(Knowledge(tuple(one.tolist())).after(7, 99).clock)
    assert int(one[7]) != 99


def test_who_learns_nothing_keeps_a_clock_and_equal_ones_are_equal():
    less, more = WideClock(np.zeros(60, np.int64)), WideClock(np.arange(60))
    assert later(less, more) is more and later(more, less) is more
    assert more == WideClock(np.arange(60)) and hash(more) == hash(WideClock(np.arange(60))) and more != less
