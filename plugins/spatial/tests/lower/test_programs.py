"""Programs of a grid become a product of axes, however ids are numbered, and stay one axis where they are none."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tilefw_spatial.lower.programs import factored, flat


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(2, 5), min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_independent_numbers_are_the_axes(extents: list[int], random: Random) -> None:
    count = int(np.prod(extents))
    order = np.random.default_rng(random.randrange(2**32)).permutation(count)
    places = np.unravel_index(order, extents)
    programs = factored(flat((count, 1, 1), np.arange(count)), [place * 64 for place in places])
    assert sorted(axis.extent for axis in programs.axes) == sorted(extents)
    assert np.array_equal(np.sort(programs.numbers.ravel()), np.arange(count))
    for place in places:
        found = place[programs.numbers]
        varies = [bool((found != found.take([0], axis=dim)).any()) for dim in range(found.ndim)]
        assert varies.count(True) == 1, "each number changes along its own axis alone"


def test_a_number_that_refines_another_is_split_by_it() -> None:
    """Heads that share keys in pairs: which pair, and which of the two."""
    head = np.arange(12)
    programs = factored(flat((12, 1, 1), head), [head, head // 2])
    assert [axis.extent for axis in programs.axes] == [6, 2]


def test_uneven_numbers_leave_the_programs_on_one_axis() -> None:
    number = np.asarray([0, 0, 0, 1, 1])
    programs = factored(flat((5, 1, 1), np.arange(5)), [number])
    assert [axis.extent for axis in programs.axes] == [5]
    assert programs.id_along(0).data.tolist() == [0, 1, 2, 3, 4]
