"""Scans in the reference interpreter: exact where every grouping agrees, else bounds of each prefix that no grouping leaves."""

from __future__ import annotations

import numpy as np
import pytest
from combining import in_some_groups, scanned
from hypothesis import given, settings
from hypothesis import strategies as st

from tilefw.tile.reference.accuracy import compare
from tilefw.tile.reference.value import EvaluatedValue

SHAPES = st.tuples(st.integers(1, 4), st.integers(1, 40))


def row(name: str, type: str) -> str:
    return f"    %c = tile.{name} %a0, %b0 : {type}\n    tile.scan_return %c : {type}"


# The recurrence h = a·h + b: first the left map, then the right one.
THEN = """    %a = tile.mulf %a0, %b0 : f32
    %m = tile.mulf %a1, %b0 : f32
    %b = tile.addf %m, %b1 : f32
    tile.scan_return %a, %b : f32, f32"""

# The latest element that is not zero.
LATEST = """    %zero = tile.constant 0 : i32
    %n = tile.nei %b0, %zero : i32
    %c = tile.select %n, %b0, %a0 : i32
    tile.scan_return %c : i32"""


def exact(value: EvaluatedValue) -> bool:
    """Whether nothing is open in a value."""
    return not any(part is not None and part.any() for part in (value.err, value.free))


def within(got: np.ndarray, expected: EvaluatedValue) -> bool:
    return compare(got.reshape(-1), expected).wrong == 0


@settings(max_examples=30, deadline=None)
@given(shape=SHAPES, seed=st.integers(0, 2**32 - 1), axis=st.integers(0, 1), reverse=st.booleans(), name=st.sampled_from([
    ("addi", np.add), ("muli", np.multiply), ("xori", np.bitwise_xor), ("maxs", np.maximum), ("minf", np.fmin), ("maxf", np.fmax),
]))
def test_integers_and_extremes_are_exact_in_both_directions(shape, seed, axis, reverse, name) -> None:
    rng = np.random.default_rng(seed)
    real = name[0].endswith("f")
    x = rng.standard_normal(shape).astype(np.float32) if real else rng.integers(-(2**31), 2**31, shape).astype(np.int32)
    (found,) = scanned([x], axis, ["fp32" if real else "int32"], row(name[0], "f32" if real else "i32"), reverse)
    turned = np.flip(x, axis) if reverse else x
    wanted = name[1].accumulate(turned, axis=axis, dtype=x.dtype)
    assert exact(found) and (found.x.reshape(shape) == (np.flip(wanted, axis) if reverse else wanted)).all()


@settings(max_examples=40, deadline=None)
@given(shape=SHAPES, seed=st.integers(0, 2**32 - 1), spread=st.integers(0, 40), name=st.sampled_from(["addf", "mulf"]))
def test_no_grouping_of_a_sum_or_product_leaves_the_bound(shape, seed, spread, name) -> None:
    """With a spread of 40, products of floats leave their range on both sides."""
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal(shape) * np.exp2(rng.integers(-spread, spread + 1, shape))).astype(np.float32)
    (found,) = scanned([x], 1, ["fp32"], row(name, "f32"))
    function = (lambda a, b: (a + b,)) if name == "addf" else (lambda a, b: (a * b,))
    for _ in range(3):
        assert within(in_some_groups([x], function, rng)[0], found)


@settings(max_examples=40, deadline=None)
@given(shape=SHAPES, seed=st.integers(0, 2**32 - 1))
def test_no_grouping_of_a_recurrence_leaves_the_bound(shape, seed) -> None:
    rng = np.random.default_rng(seed)
    scale, offset = (rng.uniform(-1, 1, shape).astype(np.float32) for _ in range(2))
    found = scanned([scale, offset], 1, ["fp32", "fp32"], THEN)
    for _ in range(3):
        got = in_some_groups([scale, offset], lambda a, b, c, d: (a * c, b * c + d), rng)
        assert all(within(g, f) for g, f in zip(got, found, strict=True))


@settings(max_examples=30, deadline=None)
@given(shape=SHAPES, seed=st.integers(0, 2**32 - 1), reverse=st.booleans())
def test_elements_keep_their_order(shape, seed, reverse) -> None:
    x = np.random.default_rng(seed).integers(-1, 2, shape).astype(np.int32)
    (found,) = scanned([x], 1, ["int32"], LATEST, reverse)
    wanted = np.flip(x, 1).copy() if reverse else x.copy()
    for i in range(1, shape[1]):
        wanted[:, i] = np.where(wanted[:, i] == 0, wanted[:, i - 1], wanted[:, i])
    assert exact(found) and (found.x.reshape(shape) == (np.flip(wanted, 1) if reverse else wanted)).all()


def test_the_first_element_is_itself_and_the_second_one_operation() -> None:
    x = np.array([[0.1, 0.2, 0.3, 0.4], [1e-45, 1.0, 1.0, 1.0]], np.float32)
    for name, function in (("addf", np.add), ("mulf", np.multiply)):
        (found,) = scanned([x], 1, ["fp32"], row(name, "f32"))
        assert found.err is not None
        bounds, value = found.err.reshape(2, 4), found.x.reshape(2, 4)
        assert (bounds[:, :2] == 0).all() and (bounds[0, 2:] > 0).all()
        assert (value[:, 0] == x[:, 0]).all() and (value[:, 1] == function(x[:, 0], x[:, 1])).all()


def test_each_prefix_has_the_bound_of_its_own_length() -> None:
    """A sum of 512 terms that is a little off is seen in the first prefixes, though the last one's bound would hide it."""
    x = np.random.default_rng(1).uniform(1, 2, (1, 512)).astype(np.float32)
    (found,) = scanned([x], 1, ["fp32"], row("addf", "f32"))
    assert found.err is not None
    bounds = found.err.reshape(-1)
    assert bounds[2] * 5000 < bounds[-1]
    wrong = np.cumsum(x.astype(np.float64), axis=1)
    wrong[0, 5] += bounds[-1] / 100
    assert compare(wrong.reshape(-1), found).wrong == 1


@pytest.mark.parametrize("mistake", ["exclusive", "reversed", "dropped", "f16"])
def test_mistakes_of_scans_are_out_of_bounds(mistake: str) -> None:
    x = np.random.default_rng(2).standard_normal((16, 64)).astype(np.float32)
    (found,) = scanned([x], 1, ["fp32"], row("addf", "f32"))
    sums = np.cumsum(x, axis=1)
    wrong = {
        "exclusive": sums - x, "reversed": np.cumsum(x[:, ::-1], axis=1)[:, ::-1],
        "dropped": sums - x[:, 3:4] * (np.arange(64) >= 32), "f16": np.cumsum(x.astype(np.float16), axis=1).astype(np.float32),
    }[mistake]
    assert compare(wrong.reshape(-1), found).wrong >= 16 * 30
