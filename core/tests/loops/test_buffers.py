"""Buffers that are in use at the same time never overlap, and memory that is free again is used again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilefw.api.errors import CapacityError
from tilefw.loops.buffers import Scratch


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 400), st.integers(0, 9)), min_size=1, max_size=40))
def test_buffers_in_use_at_one_time_are_apart(wanted: list[tuple[int, int, int]]) -> None:
    scratch = Scratch()
    now, given_ = 0, []
    for later, size, lasts in wanted:
        now += later
        buffer = scratch.allocate((size,), "f32", now, now + lasts)
        given_.append((now, now + lasts, buffer))
        assert buffer.offset % 64 == 0 and buffer.offset + buffer.nbytes <= scratch.high
    for n, (begin, end, buffer) in enumerate(given_):
        for other_begin, other_end, other in given_[:n]:
            if begin <= other_end and other_begin <= end:
                assert buffer.offset + buffer.nbytes <= other.offset or other.offset + other.nbytes <= buffer.offset


def test_what_is_free_again_is_given_again() -> None:
    scratch = Scratch()
    first = scratch.allocate((64,), "f32", 0, 3)
    assert scratch.allocate((64,), "f32", 4, 5).offset == first.offset and scratch.high == 256


def test_over_capacity_names_what_is_in_use() -> None:
    scratch = Scratch(1024)
    scratch.allocate((128,), "f32", 0, 9, "acc")
    with pytest.raises(CapacityError, match="1536 bytes at once") as told:
        scratch.allocate((256,), "f32", 1, 2)
    assert told.value.code == "TFW0659" and "acc [128] of f32" in str(told.value.note)
