"""Roots of all halves: what they compute in f32 is an ulp off there at most, which must move none over a tie."""

from __future__ import annotations

import numpy as np
import pytest

from rules.expected import verdict
from rules.one_row import Column, run

EVERY_HALF = np.arange(1 << 16, dtype=np.uint64)


@pytest.mark.parametrize("row", ["sqrt_rn", "sqrt"])
def test_the_root_of_every_half(row: str) -> None:
    found = run(f"{row}.f16", "f16", [Column("f16", EVERY_HALF)])
    outcome = verdict(f"{row}.f16", "f16", [("f16", EVERY_HALF)], found)
    assert not outcome.wrong, str(outcome)
