"""Quotients and remainders by constants are those of the reference, for lanes and for what is equal in all of them."""

from __future__ import annotations

import numpy as np
import pytest

from rules.expected import patterns_of, verdict
from rules.one_row import Column, run

_RANDOM = [int(d) for d in np.random.default_rng(7).integers(2, 1 << 31, 6)]
DIVISORS = [1, 2, 3, 5, 6, 7, 10, 64, 100, 641, 1 << 16, 1 << 30, (1 << 31) - 1, *_RANDOM]
_SIGNED = [-d for d in DIVISORS] + [-(1 << 31)]
_UNSIGNED = [1 << 31, (1 << 31) + 1, (1 << 32) - 1]


@pytest.mark.parametrize("row", ["divs", "divu", "rems", "remu"])
@pytest.mark.parametrize("uniform", [False, True])
def test_by_a_constant(row: str, uniform: bool) -> None:
    dividends = patterns_of("i32", 8 if uniform else 320, 3)
    for divisor in (*DIVISORS, *(_SIGNED if row.endswith("s") else _UNSIGNED)):
        constant = np.array([divisor % (1 << 32)], np.uint64)
        found = run(f"{row}.i32", "i32", [Column("i32", dividends), Column("i32", constant, constant=True)], uniform)
        operands = [("i32", np.resize(dividends, len(found))), ("i32", np.resize(constant, len(found)))]
        outcome = verdict(f"{row}.i32", "i32", operands, found)
        assert not outcome.wrong, (divisor, str(outcome))
