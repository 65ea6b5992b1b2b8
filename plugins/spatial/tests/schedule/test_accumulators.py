"""Rows of accumulators belong to one stream operation from its first product to its drain, and what is given back can be had
again."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tilefw_spatial.machine import load
from tilefw_spatial.schedule.accumulators import Accumulators
from tilefw_spatial.schedule.intervals import Intervals

MACHINE = replace(load(), accumulator_rows=16)

sums = st.tuples(st.integers(1, 16), st.integers(0, 60), st.integers(1, 30), st.sampled_from((("a",), ("b",), ("a", "b"))))


@given(st.lists(sums, max_size=20))
def test_no_row_is_held_twice(wanted: list[tuple[int, int, int, tuple[str, ...]]]) -> None:
    accumulators = Accumulators(MACHINE)
    held: set[tuple[str, int, int]] = set()
    for rows, since, length, planes in wanted:
        until = since + length
        address = accumulators.take(planes, rows, since, until)
        if address is None:
            assert since < accumulators.next_end(planes, since, until)
            continue
        assert address // 16 == (address + rows - 1) // 16
        cells = {(plane, row, cycle) for plane in planes for row in range(address, address + rows) for cycle in range(since, until)}
        assert not held & cells
        held |= cells


@given(st.lists(sums, max_size=8), sums)
def test_what_is_released_is_free(before: list, wanted: tuple[int, int, int, tuple[str, ...]]) -> None:
    accumulators = Accumulators(MACHINE)
    for rows, since, length, planes in before:
        accumulators.take(planes, rows, since, since + length)
    rows, since, length, planes = wanted
    address = accumulators.take(planes, rows, since, since + length)
    if address is not None:
        accumulators.release(planes)
        assert accumulators.take(planes, rows, since, since + length) == address


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 8)), min_size=1, max_size=12))
def test_intervals_that_are_taken_out_are_as_if_never_put_in(spans: list[tuple[int, int]]) -> None:
    kept, all_of_them = Intervals(), Intervals()
    free = [(begin, begin + length) for begin, length in spans]
    chosen: list[tuple[int, int]] = []
    for begin, end in free:
        if not all_of_them.overlaps(begin, end):
            all_of_them.add(begin, end)
            chosen.append((begin, end))
    for number, (begin, end) in enumerate(chosen):
        if number % 2:
            all_of_them.remove(begin, end)
        else:
            kept.add(begin, end)
    assert (all_of_them.begins, all_of_them.ends) == (kept.begins, kept.ends)
