"""What registers stand for where writes under several masks meet: a lane has its last integer, or none that is known."""

from __future__ import annotations

import numpy as np

from tilefw.sim.tracking.integers import Held, merged, of_lanes

LANES = 4
FAR = 1 << 33  # apart: 32 bits do not tell which


def held(numbers: list[int]) -> Held:
    integers = np.array(numbers, np.int64).reshape(1, 1, LANES)
    return of_lanes((integers & 0xFFFFFFFF).astype(np.uint32), integers, 32)


def lanes(*which: bool) -> np.ndarray:
    return np.array(which).reshape(1, 1, LANES)


def test_lanes_outside_of_a_mask_keep_their_integers() -> None:
    found = merged(held([1, 2, 3, FAR]), held([5, 6, 7, FAR + 8]), lanes(True, True, False, False)).of(None)
    assert found.where is None and found.integers().reshape(-1).tolist() == [5, 6, 3, FAR]


def test_a_lane_of_the_mask_of_whose_new_integer_nothing_is_known_has_not_the_old_one() -> None:
    new = held([5, 6, 7, FAR + 8]).only(lanes(True, False, True, True))
    found = merged(held([1, 2, 3, FAR]), new, lanes(True, True, False, False)).of(None)
    assert found.where is not None and found.where.reshape(-1).tolist() == [True, False, True, True]
    assert found.integers().reshape(-1)[[0, 2, 3]].tolist() == [5, 3, FAR]
