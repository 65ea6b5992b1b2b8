"""What passes between lanes, and which lanes write: readlane, readfirstlane, writelane, swap, and comparisons' masks."""

from __future__ import annotations

import numpy as np
import pytest

from cdna3.lanes import lanes, meaning
from cdna3.vector import VECTOR, run

LANES = np.arange(64, dtype=np.uint32).reshape(1, 1, 64) + np.uint32(1000)


@pytest.mark.parametrize(
    ("on", "lane"), [(0, 0), (1, 0), (1 << 63, 63), (0xFFFFFFFF00000000, 32), (0b1011000, 3), ((1 << 64) - 1, 0)]
)
def test_the_first_lane_that_is_on_is_read(on: int, lane: int) -> None:
    found = meaning("v_readfirstlane_b32")(lanes(), LANES, np.full((1, 1, 1), on, np.uint64))
    assert found.shape == (1, 1, 1)
    assert found[0, 0, 0] == 1000 + lane


@pytest.mark.parametrize("lane", [0, 5, 63, 64, 69, 0xFFFFFFFF])
def test_readlane_and_writelane_take_six_bits(lane: int) -> None:
    number = np.full((1, 1, 1), lane, np.uint32)
    assert meaning("v_readlane_b32")(lanes(), LANES, number)[0, 0, 0] == 1000 + lane % 64
    written = meaning("v_writelane_b32")(lanes(), np.full((1, 1, 1), 7, np.uint32), number, LANES)
    wanted = LANES.copy()
    wanted[0, 0, lane % 64] = 7
    assert (written == wanted).all()


def test_rows_that_act_in_all_lanes_say_so() -> None:
    ignoring = {name for name, row in VECTOR.items() if "ignores exec" in row.facts}
    assert ignoring == {"v_readfirstlane_b32", "v_readlane_b32", "v_writelane_b32"}


def test_swap_exchanges() -> None:
    a, b = np.arange(64, dtype=np.uint32), np.arange(64, dtype=np.uint32) + np.uint32(500)
    first, second = run("v_swap_b32", a, b)
    assert (first == b).all() and (second == a).all()


def test_a_comparison_gives_off_lanes_zero() -> None:
    a = np.arange(64, dtype=np.uint32).reshape(1, 1, 64)
    wave = lanes()
    wave.mask = (a % 2 == 0)
    holds, on = meaning("v_cmpx_lt_u32")(wave, a, np.full((1, 1, 1), 10, np.uint32))
    assert int(on.reshape(-1)[0]) == sum(1 << lane for lane in range(0, 10, 2))
    low, high = wave.ballot(holds)
    assert (int(low.reshape(-1)[0]), int(high.reshape(-1)[0])) == (0b101010101, 0)
