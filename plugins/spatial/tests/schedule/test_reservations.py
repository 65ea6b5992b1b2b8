"""What is taken is never given again, and a stream operation begins as early as what it needs is free."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilefw_spatial.schedule.intervals import KEPT, Intervals, merged, overlap
from tilefw_spatial.schedule.reservations import Demand, Exhausted, Pool, ReservationTable

spans = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 6)).map(lambda p: (p[0], p[0] + p[1])), min_size=1, max_size=4)


def _members(found: list[tuple[int, int]]) -> set[int]:
    return {at for begin, end in found for at in range(begin, end)}


@given(spans, st.integers(0, 60), st.integers(1, 8))
def test_the_next_gap_is_the_first(taken: list[tuple[int, int]], begin: int, length: int) -> None:
    intervals = Intervals()
    for low, high in taken:
        intervals.add(low, high)
    members = _members(taken)
    assert _members([*zip(intervals.begins, intervals.ends, strict=True)]) == members
    expected = next(at for at in range(begin, 200) if not members & {*range(at, at + length)})
    assert intervals.earliest(begin, length) == expected
    assert intervals.overlaps(begin, begin + length) == bool(members & {*range(begin, begin + length)})


@given(spans, spans)
def test_merged_spans_have_the_same_members(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> None:
    found = merged(left)
    assert _members(found) == _members(left)
    assert all(a[1] < b[0] for a, b in pairwise(found))
    assert overlap(left, right) == bool(_members(left) & _members(right))


def test_many_gaps_are_given_up_but_nothing_is_given_twice() -> None:
    intervals = Intervals()
    for at in range(0, 4 * KEPT, 2):
        assert intervals.earliest(at, 1) == at
        intervals.add(at, at + 1)
    assert len(intervals.begins) <= KEPT
    assert intervals.earliest(0, 1) < 4 * KEPT - 1


@given(st.lists(st.tuples(spans, spans, st.integers(0, 30)), min_size=1, max_size=6))
def test_stream_operations_share_nothing_and_begin_as_early_as_they_can(cases: list) -> None:
    reservations = ReservationTable()
    taken: dict[str, set[int]] = {name: set() for name in ("a", "p", "q")}
    for fixed, pooled, least in cases:
        demand = Demand({"a": merged(fixed)}, [Pool([[(name, merged(pooled))] for name in "pq"])], least)

        def fits(begin: int, fixed: list = fixed, pooled: list = pooled) -> bool:
            here = {begin + at for at in _members(pooled)}
            return not taken["a"] & {begin + at for at in _members(fixed)} and any(not taken[name] & here for name in "pq")

        expected = next(begin for begin in range(least, 2000) if fits(begin))
        reservation = reservations.reserve(demand)
        assert reservation.begin == expected
        name = "pq"[reservation.choices[0]]
        for resource, members in (("a", _members(fixed)), (name, _members(pooled))):
            moved = {reservation.begin + at for at in members}
            assert not taken[resource] & moved
            taken[resource] |= moved


def test_pools_that_are_too_small_are_told() -> None:
    pool = Pool([[(name, [(0, 4)])] for name in "pq"])
    with pytest.raises(Exhausted) as error:
        ReservationTable().reserve(Demand({}, [pool, pool, pool]))
    assert error.value.pool == 2
