"""Bounds admit every choice of which products a compiler fuses into the sums that take them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilefw.api.dtypes import DTYPES, DType
from tilefw.tile import numbers
from tilefw.tile.elementwise import ROWS
from tilefw.tile.elementwise import meaning as m
from tilefw.tile.reference.evaluate import evaluate
from tilefw.tile.reference.value import EvaluatedValue

CHAINS, LENGTH = 64, 12


def _chain(a: np.ndarray, b: np.ndarray, dtype: DType) -> EvaluatedValue:
    """The running sum of products as the reference bounds it."""
    total = EvaluatedValue(np.zeros(CHAINS))
    for x, y in zip(a, b, strict=True):
        product = evaluate(ROWS["mulf"], [EvaluatedValue(x), EvaluatedValue(y)], dtype, dtype)
        total = evaluate(ROWS["addf"], [total, product], dtype, dtype)
    return total


def _machine(a: np.ndarray, b: np.ndarray, fuse: np.ndarray, dtype: DType) -> np.ndarray:
    """The same where step i of chain j is one rounding if `fuse[i, j]`, else two."""
    total = np.zeros(CHAINS)
    for x, y, fused in zip(a, b, fuse, strict=True):
        product = np.where(fused, x * y, numbers.round_to(x * y, dtype))
        total = numbers.round_to(m.add_odd(product, total), dtype)
    return total


@pytest.mark.parametrize("name", ["fp32", "fp16", "bf16"])
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), share=st.sampled_from([0.0, 0.3, 0.7, 1.0]))
def test_any_mixture_of_fused_and_separate_steps_is_within_the_bound(name: str, seed: int, share: float) -> None:
    dtype = DTYPES[name]
    rng = np.random.default_rng(seed)
    a, b = (numbers.round_to(rng.standard_normal((LENGTH, CHAINS)), dtype) for _ in range(2))
    expected = _chain(a, b, dtype)
    found = _machine(a, b, rng.random((LENGTH, CHAINS)) < share, dtype)
    bound = np.zeros(CHAINS) if expected.err is None else expected.err
    assert (np.abs(found - expected.x) <= bound).all()


@pytest.mark.parametrize("name", ["fp32", "fp16", "bf16"])
@pytest.mark.parametrize("row", ["addf", "subf"])
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_product_of_inexact_factors_may_be_fused_though_all_of_them_round_to_one_number(row: str, name: str, seed: int) -> None:
    """A narrow interval of products rounds to one number, with no error left; unrounded it may still move the sum."""
    dtype = DTYPES[name]
    rng = np.random.default_rng(seed)
    a, b, c = (numbers.round_to(rng.standard_normal(CHAINS), dtype) for _ in range(3))
    err = np.abs(b) * 2.0 ** -(dtype.mantissa_bits + rng.integers(1, 6, CHAINS))
    product = evaluate(ROWS["mulf"], [EvaluatedValue(a), EvaluatedValue(b, err)], dtype, dtype)
    expected = evaluate(ROWS[row], [EvaluatedValue(c), product], dtype, dtype)
    assert expected.err is not None
    for share in (-0.9, -0.5, 0.0, 0.5, 0.9):
        exact = a * (b + share * err)
        found = numbers.round_to(m.add_odd(c, exact if row == "addf" else -exact), dtype)
        assert (np.abs(found - expected.x) <= expected.err).all()
