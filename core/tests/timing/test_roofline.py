"""The roofline of a page: each roof rises by its level's rate, with and without a matrix unit's own rate above it."""

import math
import re

import pytest

from tilefw.timing.page.roofline import roofline

LEVELS = [
    {"level": "L1", "achieved": 3e12, "attainable": 19e12},
    {"level": "L2", "achieved": 2e12, "attainable": 5e12},
    {"level": "memory", "achieved": 1e12, "attainable": 1.4e12},
]


@pytest.mark.parametrize("peak", [None, 312e12])
def test_roofs_rise_as_steeply_and_as_far_apart_as_their_levels_rates(peak: float | None) -> None:
    drawn = roofline({"operations_per_second": 1e12, "peak": peak, "levels": LEVELS})
    roofs = [
        [tuple(map(float, point.split(","))) for point in points.split()] for points in re.findall(r'points="([^"]+)"', drawn)
    ]
    slopes = [(roof[1][1] - roof[0][1]) / (roof[1][0] - roof[0][0]) for roof in roofs]
    assert slopes == pytest.approx([slopes[0]] * 3, rel=0.01)
    starts = [roof[0][1] - slope * roof[0][0] for roof, slope in zip(roofs, slopes, strict=True)]
    first, second = (starts[place] - starts[place + 1] for place in (0, 1))
    assert first / second == pytest.approx(math.log(19 / 5) / math.log(5 / 1.4), rel=0.05)
