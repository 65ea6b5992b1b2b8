"""Quotients, remainders and wide shifts by constants are those of the reference, for lanes and for what is equal in all of them."""

from __future__ import annotations

import numpy as np
import pytest

from rules.expected import patterns_of, verdict
from rules.one_row import Column, run

_SIZES = [1, 2, 3, 5, 6, 7, 10, 64, 100, 641, 1 << 16, 1 << 30, (1 << 31) - 1]


def divisors(bits: int, signed: bool) -> list[int]:
    """Small ones, powers of two, random ones, and the largest; of both signs where there are two."""
    half = 1 << (bits - 1)
    some = [d for d in _SIZES if d < half] + [int(d) for d in np.random.default_rng(7).integers(2, half - 1, 4)] + [half - 1]
    return [*some, *(-d for d in some), -half] if signed else [*some, half, half + 1, 2 * half - 1]


@pytest.mark.parametrize("row", ["divs", "divu", "rems", "remu"])
@pytest.mark.parametrize(("type_", "uniform"), [("i8", False), ("i16", False), ("i32", False), ("i64", False), ("i32", True)])
def test_by_a_constant(row: str, type_: str, uniform: bool) -> None:
    bits = int(type_[1:])
    dividends = patterns_of(type_, 8 if uniform else 320, 3)
    for divisor in divisors(bits, row.endswith("s")):
        constant = np.array([divisor % (1 << bits)], np.uint64)
        found = run(f"{row}.{type_}", type_, [Column(type_, dividends), Column(type_, constant, constant=True)], uniform)
        operands = [(type_, np.resize(dividends, len(found))), (type_, np.resize(constant, len(found)))]
        outcome = verdict(f"{row}.{type_}", type_, operands, found)
        assert not outcome.wrong, (divisor, str(outcome))


@pytest.mark.parametrize("row", ["shl", "shru", "shrs"])
def test_64_bits_are_shifted_by_a_constant(row: str) -> None:
    """By as many bits as a half has, one less and one more."""
    for amount in (31, 32, 33, 47, 63):
        patterns, constant = patterns_of("i64", 64, 3), np.array([amount], np.uint64)
        found = run(f"{row}.i64", "i64", [Column("i64", patterns), Column("i64", constant, constant=True)], False)
        operands = [("i64", np.resize(patterns, len(found))), ("i64", np.resize(constant, len(found)))]
        assert not verdict(f"{row}.i64", "i64", operands, found).wrong, amount
