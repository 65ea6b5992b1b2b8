"""Reads of shared memory are noted by groups of equal ones: each granule has the set that it would have had alone."""

from __future__ import annotations

import numpy as np
import pytest

from tilefw.sim.memory.regions import Region
from tilefw.sim.tracking import agent_accesses
from tilefw.sim.tracking.agent_accesses import NOBODY, AccessRecords, PlaceAccesses, ReadGroups

AGENTS, GRANULES, SITE = 12, 40, (0, 3)


def members(records: AccessRecords, number: int) -> set[tuple[int, int]]:
    return {(records.record(n).agent, records.record(n).epoch) for n in records.sets[number].tolist()}


@pytest.mark.parametrize("seed", range(6))
def test_groups_leave_each_granule_with_its_own_readers(seed):
    random, records = np.random.default_rng(seed), AccessRecords()
    reads, known = np.zeros(GRANULES, np.int32), np.zeros((AGENTS, AGENTS), np.int64)
    expected: list[set[tuple[int, int]]] = [set() for _ in range(GRANULES)]
    for epoch in range(1, 5):
        acting = random.permutation(AGENTS)[: random.integers(1, AGENTS + 1)]
        numbers = records.numbers(acting, np.full(len(acting), epoch), SITE, 0)
        lane = random.integers(0, len(acting), 64)
        granules = random.integers(0, GRANULES, 64)[:, None]
        groups = ReadGroups(granules, numbers[lane], reads)
        reads[groups.granules] = groups.behind(records, known)
        for agent, granule in zip(acting[lane].tolist(), granules[:, 0].tolist(), strict=True):
            old = {one for one in expected[granule] if one[0] != agent}  # its own later read stands for its earlier one
            expected[granule] = {*old, (agent, epoch)}
        assert [members(records, number) for number in reads.tolist()] == expected


def test_sets_that_no_place_has_any_more_are_let_go_and_the_others_are_as_they_were(monkeypatch):
    monkeypatch.setattr(agent_accesses, "_FEW_SETS", 8)
    records, known = AccessRecords(), np.zeros((1, 1), np.int64)
    records._most_sets = 8
    places = PlaceAccesses(Region(1 << 20, 16 * GRANULES))
    for epoch in range(1, 200):
        numbers = records.numbers(np.array([0]), np.array([epoch]), SITE, 0)
        granules = np.array([[0], [epoch % GRANULES]])
        groups = ReadGroups(granules, np.repeat(numbers, 2), places.reads)
        places.reads[groups.granules] = groups.behind(records, known)
        records.sweep([places])
        assert members(records, places.reads[0]) == {(0, epoch)}
    assert len(records.sets) <= 2 * GRANULES + 2
    newest = [max(epoch for epoch in range(1, 200) if epoch % GRANULES == granule) for granule in range(1, GRANULES)]
    assert [members(records, number) for number in places.reads[1:].tolist()] == [{(0, epoch)} for epoch in newest]


def test_a_read_that_another_is_ordered_behind_is_left_out_unless_its_scope_is_narrower():
    records, known = AccessRecords(), np.zeros((2, 2), np.int64)
    known[1, 0] = 4  # agent 1 knows what agent 0 did up to its event 4
    for scope, left in ((0, 0), (3, 1)):
        first = records.numbers(np.array([0]), np.array([4]), SITE, 0)
        second = records.numbers(np.array([1]), np.array([1]), SITE, scope)
        both = records.with_reads(records.with_reads(NOBODY, first, known), second, known)
        assert len(members(records, both)) == 1 + left


def test_a_strong_read_stands_for_none_of_another_agent_whose_scope_has_other_writers():
    """Two ranks read in the device's scope, one behind the other; a store of the second one's device races with the first."""
    records, known = AccessRecords(), np.zeros((3, 3), np.int64)
    known[1, 0] = 4
    first, second = (records.numbers(np.array([agent]), np.array([4]), SITE, 2) for agent in (0, 1))
    reads = records.with_reads(records.with_reads(NOBODY, first, known), second, known)
    assert records.unordered(reads, 2, known[2], 3, np.array([3, 2, 1])) == first[0]


def test_a_write_races_with_reads_that_its_agent_does_not_know():
    records, known = AccessRecords(), np.zeros((3, 3), np.int64)
    reads = records.with_reads(NOBODY, records.numbers(np.array([0, 1]), np.array([2, 5]), SITE, 0), known)
    meets = np.full(3, 3)
    assert records.record(records.unordered(reads, 2, np.array([2, 4, 0]), 0, meets)).agent == 1
    assert records.unordered(reads, 2, np.array([2, 5, 0]), 0, meets) == NOBODY
