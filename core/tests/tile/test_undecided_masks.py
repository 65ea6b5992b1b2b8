"""Masks that rounding decides: the reference does what its own value says, and knows that a chip may do the other."""

from __future__ import annotations

import numpy as np
import pytest

import tilefw
import tilefw.language as tl


@tilefw.jit
def histogram(x, counts, ones, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    cell = tl.floor((tl.load(x + at) + 80.0) / 5.0).to(tl.int32)
    tl.atomic_add(counts + cell, 1, mask=cell < 32)
    tl.store(ones + cell, 1.0, mask=cell < 32)


@tilefw.jit
def halves(x, o, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    low = tl.load(x + at) / 3.0 < 1 / 3.0
    tl.store(o + at, 1.0, mask=low)
    tl.store(o + at, 2.0, mask=~low)
    tl.atomic_add(o + at, 10.0, mask=low)


def test_what_is_masked_off_is_in_no_bounds() -> None:
    """Element 40 of 32, or 39 with another rounding: neither is accessed."""
    x, counts, ones = np.full(16, 120.000015, np.float32), np.zeros(32, np.int32), np.zeros(32, np.float32)
    x[1] = 3
    with tilefw.target("reference"):
        result = histogram[(1,)](x, counts, ones, BLOCK=16)
    assert {finding.severity for finding in result.diagnostics} <= {"warning"}
    assert np.flatnonzero(counts).tolist() == np.flatnonzero(ones).tolist() == [16]


def test_one_side_of_a_condition_is_stored() -> None:
    x = (1 + np.arange(-8, 8) * 2.0**-23).astype(np.float32)
    o = np.zeros(16, np.float32)
    with tilefw.target("reference"):
        halves[(1,)](x, o, BLOCK=16)
    assert set(o.tolist()) == {11, 2}


def test_the_bound_covers_both_sides() -> None:
    found = tilefw.reference(halves, (1,), np.ones(1, np.float32), np.zeros(1, np.float32), BLOCK=1)["o"]
    assert abs(found.value - 11) <= found.bound
    assert abs(found.value - 2) <= found.bound


@tilefw.jit
def one_of_two(x, o):
    at = tl.arange(0, 2)
    undecided = ~(tl.load(x + at * 0) / 3.0 < 1 / 3.0)
    tl.store(o + at * 0, 100.0 - 99.0 * at, mask=undecided)


@tilefw.jit
def counted_before(x, counter, o):
    at = tl.arange(0, 2)
    undecided = ~(tl.load(x) / 3.0 < 1 / 3.0)
    number = tl.atomic_add(counter + at * 0, 1, mask=undecided | (at == 1))
    tl.store(o + at, number, mask=at == 1)


@tilefw.jit
def kept_or_stored(x, o):
    undecided = tl.load(x) / 3.0 < 1 / 3.0
    tl.store(o, tl.where(undecided, 1, 2))
    tl.store(o, 1, mask=undecided)


@tilefw.jit
def read_back(x, unwritten, o):
    undecided = tl.load(x) / 3.0 < 1 / 3.0
    tl.store(unwritten, 1.0, mask=~undecided)
    tl.store(o, tl.load(unwritten))


def test_all_that_may_be_stored_to_one_element_is_in_its_bound() -> None:
    found = tilefw.reference(one_of_two, (1,), np.ones(1, np.float32), np.zeros(1, np.float32))["o"]
    assert all(abs(found.value - each) <= found.bound for each in (0, 1, 100))


def test_nobody_knows_what_an_atomic_finds_behind_one_that_may_be_left_out() -> None:
    counter, o = np.zeros(1, np.int32), np.zeros(2, np.int32)
    assert tilefw.reference(counted_before, (1,), np.ones(1, np.float32), counter, o)["o"].free.tolist() == [False, True]


def test_what_was_not_known_before_is_not_known_where_it_may_be_kept() -> None:
    assert tilefw.reference(kept_or_stored, (1,), np.ones(1, np.float32), np.zeros(1, np.int32))["o"].free.all()


def test_what_may_be_stored_and_is_not_leaves_memory_unwritten() -> None:
    with pytest.raises(tilefw.CheckError, match="nothing has written"), tilefw.target("reference"):
        read_back[(1,)](
            np.ones(1, np.float32), tilefw.empty(2, np.float32), np.zeros(1, np.float32), checks="uninitialised_host"
        )
