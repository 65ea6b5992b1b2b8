"""Masks of lanes as words and as predicates: each is the other's inverse, bit for bit, of the poison too."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.algebra.shadow import Shadowed
from tilefw.testing.executing import executing_lanes


def lanes_of(width: int, waves: int = 3) -> NumpyLanes:
    return executing_lanes(width, waves, follow_undefined=True)


def words(values: list[int]) -> tuple[np.ndarray, np.ndarray]:
    low, high = (np.array([v >> shift & 0xFFFFFFFF for v in values], np.uint32) for shift in (0, 32))
    return low.reshape(1, -1, 1), high.reshape(1, -1, 1)


@pytest.mark.parametrize("width", [8, 32, 64])
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_words_and_predicates_are_inverse(width, data):
    ones = (1 << width) - 1
    masks = st.one_of(st.sampled_from([0, ones]), st.integers(0, ones))
    values = data.draw(st.lists(masks, min_size=3, max_size=3))
    lanes = lanes_of(width)
    predicate = np.broadcast_to(lanes.unballot(*words(values)), (1, 3, width))
    assert [[bool(v >> lane & 1) for lane in range(width)] for v in values] == predicate[0].tolist()
    low, high = lanes.ballot(predicate)
    assert [int(a) | int(b) << 32 for a, b in zip(low.flat, high.flat, strict=True)] == values
    assert (lanes.unballot(low, high) == predicate).all()


def test_bits_beyond_the_wave_are_ignored_and_what_agrees_is_one_value():
    lanes = lanes_of(8)
    assert lanes.unballot(*words([0xFFFFFFFF, 0xFF, 0xABFF])) is lanes.const(1, 1)
    assert lanes.unballot(*words([0xFF00, 0, 0])) is lanes.const(0, 1)


@settings(max_examples=40, deadline=None)
@given(bits=st.integers(0, 2**64 - 1), poison=st.integers(0, 2**64 - 1), acting=st.integers(1, 2**64 - 1))
def test_poison_of_a_mask_is_that_of_its_lanes(bits, poison, acting):
    lanes = lanes_of(64, waves=1)
    predicate, undefined = (np.array([v >> i & 1 for i in range(64)], np.bool_).reshape(1, 1, 64) for v in (bits, poison))
    lanes.mask = np.array([acting >> i & 1 for i in range(64)], np.bool_).reshape(1, 1, 64)
    halves = lanes.shadow.ballot(Shadowed(predicate, undefined))
    assert sum(int(h.poison.flat[0]) << 32 * i for i, h in enumerate(halves)) == poison & acting
    back = lanes.shadow.unballot(*halves)
    assert (np.broadcast_to(back.poison, (1, 1, 64)) == undefined & lanes.mask).all()


def test_a_lane_that_is_off_has_a_value_where_that_is_asked_for():
    lanes = lanes_of(8, waves=1)
    lanes.mask = np.array([[[True] + [False] * 7]])
    a = np.arange(8, dtype=np.uint32).reshape(1, 1, 8)
    assert int(lanes.read_lane(a, lanes.const(5, 32), inactive="value").flat[0]) == 5 and not lanes.tainted
    lanes.read_lane(a, lanes.const(5, 32))
    assert lanes.tainted
