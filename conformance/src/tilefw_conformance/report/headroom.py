"""Which passes deserve a second look: an error that comes near its bound, unless rounding the output alone brings it there.

A bound is half a step of the output's format plus what the kernel's own arithmetic may be off. In fp16 the first part is nearly all
of it, and a perfectly rounded result then reaches error over bound of up to 1. Such a result is as near as its format has.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

TIGHT = 0.7  # of the bound; bounds of sums are statistical (2√K), so a pass above this is worth looking at


def is_tight(one: Mapping[str, Any]) -> bool:
    """Whether the result passed, near its bound, for another reason than rounding."""
    return one["outcome"] == "pass" and _near(one) and not is_rounding(one)


def is_rounding(one: Mapping[str, Any]) -> bool:
    """Whether the worst element is near its bound and is what rounding alone makes of the expected value.

    The bound then is hardly more than a power of two, half the step of the format's grid; the value lies on that grid, and no
    further from the expected one than half a step.
    """
    if not _near(one) or one["worst"] is None:
        return False
    value, bound = one["worst"]["value"], one["worst"]["bound"]
    if not all(isinstance(number, int | float) and math.isfinite(number) for number in (value, bound)) or bound <= 0:
        return False
    half = 2.0 ** math.floor(math.log2(bound))
    return math.fmod(value, 2 * half) == 0 and one["error_over_bound"] * bound <= 1.01 * half


def _near(one: Mapping[str, Any]) -> bool:
    ratio = one["error_over_bound"]
    return isinstance(ratio, int | float) and TIGHT < ratio <= 1
