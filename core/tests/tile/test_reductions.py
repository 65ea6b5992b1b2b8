"""Reductions in the reference interpreter: exact where every order agrees, and else bounds that no order of combination leaves."""

from __future__ import annotations

import numpy as np
import pytest
from combining import in_some_order, reduced
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tilefw.api.dtypes import DTYPES
from tilefw.tile.elementwise import ROWS
from tilefw.tile.reference.accuracy import compare
from tilefw.tile.reference.combine_function import AxisCombiner
from tilefw.tile.reference.evaluate_combine import combine_by_row
from tilefw.tile.reference.value import EvaluatedValue

SUM = "    %c = tile.addf %a0, %b0 : f32\n    tile.reduce_return %c : f32"


def row(name: str, type: str) -> str:
    return f"    %c = tile.{name} %a0, %b0 : {type}\n    tile.reduce_return %c : {type}"


def argument(compare_row: str, tie: str) -> str:
    """The arg-extreme of two results, ties to the smaller index (`lts`) or the larger (`gts`)."""
    return f"""    %better = tile.{compare_row} %a0, %b0 : f32
    %equal = tile.eqf %a0, %b0 : f32
    %first = tile.{tie} %a1, %b1 : i32
    %tie = tile.andi %equal, %first : i1
    %left = tile.ori %better, %tie : i1
    %v = tile.select %left, %a0, %b0 : f32
    %i = tile.select %left, %a1, %b1 : i32
    tile.reduce_return %v, %i : f32, i32"""


# Means and squared distances of two sets as those of their union (Chan, Golub, LeVeque).
WELFORD = """    %n = tile.addf %a2, %b2 : f32
    %d = tile.subf %b0, %a0 : f32
    %w = tile.divf %b2, %n : f32
    %dw = tile.mulf %d, %w : f32
    %m = tile.addf %a0, %dw : f32
    %q = tile.addf %a1, %b1 : f32
    %dd = tile.mulf %d, %dw : f32
    %e = tile.mulf %dd, %a2 : f32
    %s = tile.addf %q, %e : f32
    tile.reduce_return %m, %s, %n : f32, f32, f32"""

SPECIALS = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 3.4e38, 1e-45], np.float32)
FLOATS = hnp.arrays(np.float32, hnp.array_shapes(min_dims=1, max_dims=3, max_side=9), elements=st.floats(width=32))
SHAPES = st.tuples(st.integers(1, 5), st.integers(1, 70))


def exact(*values: EvaluatedValue) -> bool:
    """Whether nothing is open in the values."""
    return not any(part is not None and part.any() for value in values for part in (value.err, value.free))


def within(got: np.ndarray, expected: EvaluatedValue) -> bool:
    return compare(got.reshape(-1), expected).wrong == 0


@settings(max_examples=50, deadline=None)
@given(x=FLOATS, axis=st.integers(0, 2), name=st.sampled_from(["maxf", "minf", "maxf_nan", "minf_nan"]))
def test_the_largest_and_the_smallest_are_exact_with_nan_infinities_and_signed_zeros(x, axis, name) -> None:
    axis %= x.ndim
    (found,) = reduced([x], axis, ["fp32"], row(name, "f32"))
    assert exact(found)
    numpy = {"maxf": np.fmax, "minf": np.fmin, "maxf_nan": np.maximum, "minf_nan": np.minimum}[name].reduce(x, axis=axis)
    # IEEE 754-2019: of zeros, +0 is the larger; NumPy keeps either.
    signs = np.signbit(x) & (x == 0)
    zero = signs.any(axis) if "min" in name else ~((x == 0) & ~signs).any(axis)
    assert within(np.where(numpy == 0, np.where(zero, np.float32(-0.0), np.float32(0.0)), numpy), found)


@settings(max_examples=40, deadline=None)
@given(
    x=hnp.arrays(np.int32, hnp.array_shapes(min_dims=1, max_dims=3, max_side=9)), axis=st.integers(0, 2),
    name=st.sampled_from(["addi", "muli", "andi", "ori", "xori", "mins", "maxs", "minu", "maxu"]),
)
def test_integers_are_exact_and_wrap(x, axis, name) -> None:
    axis %= x.ndim
    (found,) = reduced([x], axis, ["int32"], row(name, "i32"))
    numpy = {"addi": np.add, "muli": np.multiply, "andi": np.bitwise_and, "ori": np.bitwise_or, "xori": np.bitwise_xor,
             "mins": np.minimum, "maxs": np.maximum, "minu": np.minimum, "maxu": np.maximum}[name]
    source = x.view(np.uint32) if name.endswith("u") else x
    assert exact(found) and within(numpy.reduce(source, axis=axis, dtype=source.dtype).view(np.int32), found)


def test_booleans_reduce_as_integers_of_one_bit() -> None:
    x = np.array([[0, 0, 0], [0, 1, 0], [1, 1, 0], [1, 1, 1]], np.uint8)
    for name, expected in (("ori", x.any(1)), ("andi", x.all(1)), ("xori", x.sum(1) % 2 == 1)):
        (found,) = reduced([x], 1, ["int1"], row(name, "i1"))
        assert (found.x.reshape(-1) == expected).all(), name


@settings(max_examples=50, deadline=None)
@given(shape=SHAPES, seed=st.integers(0, 2**32 - 1), spread=st.integers(0, 30), name=st.sampled_from(["addf", "mulf"]))
def test_no_order_of_a_sum_or_product_leaves_the_bound(shape, seed, spread, name) -> None:
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal(shape) * np.exp2(rng.integers(-spread, spread + 1, shape))).astype(np.float32)
    (found,) = reduced([x], 1, ["fp32"], row(name, "f32"))
    function = (lambda a, b: (a + b,)) if name == "addf" else (lambda a, b: (a * b,))
    for _ in range(5):
        assert within(in_some_order([x], function, rng)[0], found)


@settings(max_examples=30, deadline=None)
@given(shape=SHAPES, seed=st.integers(0, 2**32 - 1), name=st.sampled_from(["addf", "mulf"]))
def test_infinities_and_nan_come_out_as_in_every_order(shape, seed, name) -> None:
    rng = np.random.default_rng(seed)
    x = np.where(rng.random(shape) < 0.1, rng.choice(SPECIALS, shape), rng.uniform(0.5, 2, shape)).astype(np.float32)
    (found,) = reduced([x], 1, ["fp32"], row(name, "f32"))
    function = (lambda a, b: (a + b,)) if name == "addf" else (lambda a, b: (a * b,))
    for _ in range(3):
        assert within(in_some_order([x], function, rng)[0], found)


def test_sums_that_no_order_rounds_are_exact() -> None:
    x = np.random.default_rng(0).integers(-1000, 1000, (4, 512)).astype(np.float32)
    (found,) = reduced([x], 1, ["fp32"], SUM)
    assert exact(found) and (found.x.reshape(-1) == x.sum(1)).all()
    halves = np.tile(np.float32([0.5, -0.5]), 64)[None]
    (zero,) = reduced([halves], 1, ["fp32"], SUM)
    assert exact(zero) and not np.signbit(zero.x).any()
    (negative,) = reduced([np.full((2, 8), -0.0, np.float32)], 1, ["fp32"], SUM)
    assert np.signbit(negative.x).all()


def test_the_bound_is_tight_enough_to_miss_no_column() -> None:
    """Leaving one of 512 columns out, or a running sum in f16, is out of bounds."""
    x = np.random.default_rng(1).standard_normal((64, 512)).astype(np.float32)
    (found,) = reduced([x], 1, ["fp32"], SUM)
    assert compare(x[:, 1:].sum(1), found).wrong > 60
    assert compare(np.cumsum(x.astype(np.float16), axis=1)[:, -1].astype(np.float32), found).wrong > 40


@settings(max_examples=40, deadline=None)
@given(shape=SHAPES, seed=st.integers(0, 2**32 - 1), tie=st.sampled_from(["lts", "gts"]), few=st.booleans())
def test_the_place_of_the_largest_is_exact_with_ties(shape, seed, tie, few) -> None:
    rng = np.random.default_rng(seed)
    x = (rng.integers(-2, 3, shape) if few else rng.standard_normal(shape)).astype(np.float32)
    places = np.broadcast_to(np.arange(shape[1], dtype=np.int32), shape)
    value, place = reduced([x, places], 1, ["fp32", "int32"], argument("gtf", tie))
    first = x.argmax(1) if tie == "lts" else shape[1] - 1 - x[:, ::-1].argmax(1)
    assert exact(value, place)
    assert (value.x.reshape(-1) == x.max(1)).all() and (place.x.reshape(-1) == first).all()


def test_the_place_of_the_largest_is_open_where_the_order_decides() -> None:
    """Ties that no rule breaks, and NaN in a function that does not ask for it."""
    fast = "    %g = tile.gtf %a0, %b0 : f32\n    %v = tile.select %g, %a0, %b0 : f32\n"
    fast += "    %i = tile.select %g, %a1, %b1 : i32\n    tile.reduce_return %v, %i : f32, i32"
    x = np.array([[1, 2, 3, 0], [3, 1, 0, 3], [1, np.nan, 2, 3]], np.float32)
    places = np.broadcast_to(np.arange(4, dtype=np.int32), x.shape)
    value, place = reduced([x, places], 1, ["fp32", "int32"], fast)
    assert place.free is not None and place.free.reshape(-1).tolist() == [False, True, True]
    assert place.x.reshape(-1)[0] == 2 and value.x.reshape(-1)[0] == 3 and value.x.reshape(-1)[1] == 3
    assert value.free is not None and value.free.reshape(-1).tolist() == [False, False, True]


@settings(max_examples=50, deadline=None)
@given(shape=st.tuples(st.integers(1, 3), st.integers(1, 70)), seed=st.integers(0, 2**32 - 1), shift=st.floats(-100, 100))
def test_no_order_of_a_running_mean_and_variance_leaves_the_bound(shape, seed, shift) -> None:
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal(shape) + shift).astype(np.float32)
    start = [x, np.zeros(shape, np.float32), np.ones(shape, np.float32)]
    found = reduced(start, 1, ["fp32"] * 3, WELFORD)

    def united(ma, sa, na, mb, sb, nb):
        n = na + nb
        d = mb - ma
        dw = d * (nb / n)
        return ma + dw, sa + sb + d * dw * na, n

    for _ in range(5):
        for got, expected in zip(in_some_order(start, united, rng), found, strict=True):
            assert within(got, expected)
    assert exact(found[2])
    assert within(x.astype(np.float64).mean(1).reshape(found[0].x.shape), found[0])


@settings(max_examples=20, deadline=None)
@given(length=st.sampled_from([2, 3, 7, 8, 31, 33, 100]), seed=st.integers(0, 2**32 - 1))
def test_an_associative_function_of_integers_is_exact_at_any_length(length, seed) -> None:
    """Products of 2 by 2 upper triangular matrices with ones would not commute; saturating addition does both."""
    x = np.random.default_rng(seed).integers(0, 100, (2, length)).astype(np.int32)
    body = "    %s = tile.addi %a0, %b0 : i32\n    %t = tile.constant 500 : i32\n    %c = tile.mins %s, %t : i32\n"
    (found,) = reduced([x], 1, ["int32"], body + "    tile.reduce_return %c : i32")
    assert exact(found) and (found.x.reshape(-1) == np.minimum(x.sum(1), 500)).all()


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_each_axis_goes(axis: int) -> None:
    x = np.random.default_rng(axis).integers(-50, 50, (3, 4, 5)).astype(np.float32)
    (found,) = reduced([x], axis, ["fp32"], SUM)
    assert (found.x.reshape(-1) == x.sum(axis).reshape(-1)).all()


def test_errors_of_the_elements_reach_the_result() -> None:
    """exp is within 3 + 2|x| ulp; a sum of 64 of them is within the sum of those bounds and its own."""
    text = """func.func @f(%p: !tile.ptr<f32>, %o: !tile.ptr<f32>) {
  %i = tile.iota 0 to 64
  %x = tile.load %p[%i] : !tile.ptr<f32>[tensor<64xi32>]
  %e = tile.exp %x : tensor<64xf32>
  %s = tile.reduce %e axis 0 : tensor<64xf32> {
  ^bb0(%a: f32, %b: f32):
""" + SUM.replace("%a0", "%a").replace("%b0", "%b") + "\n  }\n  tile.store %o, %s : !tile.ptr<f32>\n  func.return\n}"
    from launching import launch

    x = np.random.default_rng(0).standard_normal(64).astype(np.float32)
    _, (_, out) = launch(text, [x, (4,)])
    found = out.read_reference()
    exact = np.exp(x.astype(np.float64))
    assert found.err is not None
    assert 2 * 2**-24 * exact.sum() < found.err.reshape(-1)[0] < 200 * 2**-24 * exact.sum()


def combined(name: str, x: np.ndarray, err: np.ndarray | None = None) -> EvaluatedValue:
    """The last axis of `x`, whose elements are known to within `err`, combined by one row on f32."""
    value = EvaluatedValue(x.astype(np.float64), None if err is None else err.astype(np.float64))
    found = combine_by_row(ROWS[name], value, AxisCombiner(x.ndim - 1), DTYPES["fp32"], fusion=False)
    assert found is not None
    return found


@settings(max_examples=60, deadline=None)
@given(
    shape=SHAPES, seed=st.integers(0, 2**32 - 1), name=st.sampled_from(["addf", "mulf"]), scale=st.sampled_from([0, 90, 126, -130]),
    one_sign=st.booleans(), often=st.sampled_from([0.0, 0.02, 0.2]), blur=st.sampled_from([0.0, 2.0**-20, 0.5, 2.0]),
)
def test_no_order_of_inexact_terms_leaves_the_bound_with_infinities_and_overflow(
    shape, seed, name, scale, one_sign, often, blur
) -> None:
    """Terms near the ends of the format, of one sign or both, some infinite, some NaN, each anywhere within its error."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.5, 2, shape) * np.exp2(rng.integers(scale - 2, scale + 2, shape))
    x = x if one_sign else x * rng.choice([1, -1], shape)
    x = np.where(rng.random(shape) < often, rng.choice([np.inf, -np.inf, np.nan, 0.0], shape), x).astype(np.float32)
    size = np.abs(np.where(np.isfinite(x), x, 0.0).astype(np.float64))
    err = np.where(rng.random(shape) < 0.5, blur * size, 0.0)
    found = combined(name, x, err)
    function = (lambda a, b: (a + b,)) if name == "addf" else (lambda a, b: (a * b,))
    for _ in range(4):
        with np.errstate(all="ignore"):
            actual = np.where(err > 0, x + err * rng.uniform(-1, 1, shape), x)
            inside = np.abs(actual.astype(np.float32) - x) <= err
            actual = np.where((err > 0) & inside, actual, x).astype(np.float32)
        assert within(in_some_order([actual], function, rng)[0], found)


def test_a_zero_times_what_may_have_either_sign_may_be_either_zero() -> None:
    x = np.array([0, 1, -2], np.float32)
    either, negative = (combined("mulf", x, np.array([0, blur, 0])) for blur in (2.0, 0.5))
    assert [within(np.array([zero], np.float32), either) for zero in (0.0, -0.0)] == [True, True]
    assert [within(np.array([zero], np.float32), negative) for zero in (0.0, -0.0)] == [False, True]


INF, NAN = np.inf, np.nan
TOP = float(np.finfo(np.float32).max)


@pytest.mark.parametrize(("name", "x", "result"), [
    ("addf", [1, INF, -2], INF), ("addf", [1, INF, NAN], NAN), ("addf", [INF, -INF, 3], NAN), ("addf", [TOP, TOP, INF], INF),
    ("addf", [-TOP, -TOP, 1], -INF), ("addf", [TOP, TOP, 1], INF), ("addf", [TOP, -TOP, TOP, -TOP, NAN], NAN),
    ("mulf", [2, -INF, 3], -INF), ("mulf", [2, NAN, 3], NAN), ("mulf", [TOP, TOP, -3], -INF), ("mulf", [TOP, TOP, INF], INF),
])
def test_what_infinities_nan_and_overflow_make_in_every_order_is_exact_though_other_terms_are_not(name, x, result) -> None:
    x = np.array([x], np.float32)
    found = combined(name, x, np.where(np.isfinite(x), np.abs(x) * 2.0**-20, 0.0))
    assert exact(found) and np.array_equal(found.x, [result], equal_nan=True)


@pytest.mark.parametrize(("name", "x"), [
    ("addf", [-TOP, -TOP, INF]), ("addf", [TOP, TOP, -TOP]), ("mulf", [INF, 1e-30, 1e-30]), ("mulf", [TOP, TOP, 1e-20, 1e-20]),
])
def test_what_some_order_makes_infinite_or_nan_and_another_does_not_is_open(name, x) -> None:
    found = combined(name, np.array([x], np.float32))
    assert found.free is not None and found.free.all()


def test_an_infinity_that_may_be_a_number_and_a_factor_that_may_be_zero_leave_the_result_open() -> None:
    for name, err in (("addf", [INF, 0.0]), ("mulf", [0.0, 2.0])):
        found = combined(name, np.array([[INF, 1.0]]), np.array([err]))
        assert found.free is not None and found.free.all(), name
