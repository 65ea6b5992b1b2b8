"""Lanes of reindexed values: the same positions are one order, whichever values are seen by them."""

from __future__ import annotations

import numpy as np

from tilefw_spatial.arrange.lanes import LaneProduct, Renamed
from tilefw_spatial.arrange.reindexing import AxisIndex
from tilefw_spatial.graph import Axis
from tilefw_spatial.link.compose import steady_part

WHOLE, HALF = Axis("whole", 8), Axis("half", 4)


def renamed(table: np.ndarray) -> Renamed:
    return Renamed(LaneProduct((WHOLE,), 320), {HALF: AxisIndex((WHOLE,), table)})


def test_equal_tables_give_equal_lanes() -> None:
    first, again, other = (renamed(table) for table in (np.arange(8) % 4, np.arange(8) % 4, np.arange(8) // 2))
    assert first.key == again.key != other.key
    assert np.array_equal(first.index[HALF], again.index[HALF])


def test_both_halves_of_a_row_are_seen_along_the_same_lanes() -> None:
    low, high = steady_part(np.arange(4), 8), steady_part(np.arange(4, 8), 8)
    assert np.array_equal(low, np.arange(8) % 4) and np.array_equal(high - 4, low)


def test_beyond_a_block_that_does_not_divide_an_axis_its_nearest_index_goes_on() -> None:
    assert steady_part(np.arange(1, 4), 8).tolist() == [1, 1, 2, 3, 3, 3, 3, 3]
