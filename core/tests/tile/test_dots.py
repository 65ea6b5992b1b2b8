"""Dots in the reference interpreter: exact on integers, and else bounds that hold for every order and way of summing."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilefw
import tilefw.language as tl
from tilefw.api.dtypes import DTYPES, DType
from tilefw.frontend import build_module
from tilefw.passes.fold import constant_of
from tilefw.passes.manager import PassManager
from tilefw.passes.pipeline import default_passes
from tilefw.tile import numbers
from tilefw.tile.dialect.dot_op import DotOp
from tilefw.tile.nested_ops import nested_ops
from tilefw.tile.reference.accuracy import compare
from tilefw.tile.reference.evaluate_dot import dot, summed_onto
from tilefw.tile.reference.value import EvaluatedValue

SIZES = st.tuples(st.integers(1, 4), st.integers(1, 60), st.integers(1, 4))
F32 = DTYPES["fp32"]


def value(x: np.ndarray, err: np.ndarray | None = None) -> EvaluatedValue:
    return EvaluatedValue(x.astype(np.float64)[None], None if err is None else err[None])


def drawn(rng: np.random.Generator, shape: tuple[int, int], dtype: str, spread: int = 0) -> np.ndarray:
    """Normal numbers times random powers of two, rounded to the format, in f64."""
    return numbers.round_to(rng.standard_normal(shape) * np.exp2(rng.integers(-spread, spread + 1, shape)), DTYPES[dtype])


def in_some_order(products: np.ndarray, acc: np.ndarray, rng: np.random.Generator, steps: str) -> np.ndarray:
    """Products [M, K, N] and the accumulator summed in f32: products rounded first, or each fused, or cut in blocks of 8."""
    total = acc.astype(np.float32)
    order = rng.permutation(products.shape[1])
    with np.errstate(all="ignore"):
        if steps == "blocks":
            for start in range(0, len(order), 8):
                total = _cut(products[:, order[start : start + 8]].sum(1) + total.astype(np.float64))
            return total
        for k in order:
            term = products[:, k].astype(np.float32) if steps == "separate" else products[:, k]
            total = (total.astype(np.float64) + term).astype(np.float32)
    return total


def _cut(x: np.ndarray) -> np.ndarray:
    """Rounded toward zero, as matrix units do."""
    return numbers.round_to(x, F32, "rtz").astype(np.float32)


def in_a_short_sum(products: np.ndarray, acc: np.ndarray) -> np.ndarray:
    """Blocks of 32 products and the sum before, each cut 13 bits behind the leading one of the largest."""
    total = acc.astype(np.float64)
    for start in range(0, products.shape[1], 32):
        terms = np.concatenate([products[:, start : start + 32], total[:, None]], axis=1)
        largest = np.frexp(np.abs(terms).max(1, keepdims=True))[1] - 1
        total = np.ldexp(np.trunc(np.ldexp(terms, 13 - largest)), largest - 13).sum(1)
        total = _cut(total).astype(np.float64)
    return total


@settings(max_examples=80, deadline=None)
@given(sizes=SIZES, seed=st.integers(0, 2**32 - 1), dtype=st.sampled_from(["fp8e4nv", "fp8e5"]), spread=st.integers(0, 3))
def test_sums_that_are_kept_short_leave_no_bound_of_imprecise_ones(sizes, seed, dtype, spread) -> None:
    rng = np.random.default_rng(seed)
    m, k, n = sizes
    a, b, acc = drawn(rng, (m, k), dtype, spread), drawn(rng, (k, n), dtype, spread), drawn(rng, (m, n), "fp32", spread)
    expected = dot(value(a), value(b), value(acc), F32, imprecise=True)
    assert compare(in_a_short_sum(a[:, :, None] * b[None], acc), expected).wrong == 0


def test_imprecise_sums_of_small_integers_are_exact_and_those_of_larger_ones_not() -> None:
    ones, acc = value(np.ones((2, 64))), value(np.zeros((2, 2)))
    for size, exact in ((1.0, True), (448.0, True), (447.0, False)):
        factor = value(np.full((64, 2), size))
        bound = dot(ones, factor, acc, F32, imprecise=True).err
        assert (bound is None or not bound.any()) is exact
        precise = dot(ones, factor, acc, F32).err
        assert precise is None or not precise.any()


@settings(max_examples=80, deadline=None)
@given(sizes=SIZES, seed=st.integers(0, 2**32 - 1), dtype=st.sampled_from(["fp16", "bf16", "fp8e4nv", "fp8e5", "fp32"]),
       steps=st.sampled_from(["separate", "fused", "blocks"]), spread=st.integers(0, 6))
def test_no_way_of_summing_leaves_the_bound(sizes, seed, dtype, steps, spread) -> None:
    rng = np.random.default_rng(seed)
    m, k, n = sizes
    a, b, acc = drawn(rng, (m, k), dtype, spread), drawn(rng, (k, n), dtype, spread), drawn(rng, (m, n), "fp32", spread)
    expected = dot(value(a), value(b), value(acc), F32)
    got = in_some_order(a[:, :, None] * b[None], acc, rng, steps)
    assert compare(got, expected).wrong == 0


def _to_tf32(x: np.ndarray, way: str) -> np.ndarray:
    return numbers.round_to(x, _TF32, "rtz" if way == "cut" else "rtne")


_TF32 = DType("tf32", "float", 19, "tf32", None, 8, 10, 127, "ieee")


def _parts(x: np.ndarray, count: int, format, way: str) -> list[np.ndarray]:
    found = []
    for _ in range(count):
        part = numbers.round_to(x, format, "rtz" if way == "cut" else "rtne")
        found.append(part)
        x = x - part
    return found


@settings(max_examples=80, deadline=None)
@given(sizes=SIZES, seed=st.integers(0, 2**32 - 1), precision=st.sampled_from(["tf32", "tf32x3", "bf16x3", "bf16x6"]),
       way=st.sampled_from(["cut", "rounded"]), spread=st.integers(0, 40))
def test_no_way_of_taking_factors_apart_leaves_the_bound(sizes, seed, precision, way, spread) -> None:
    rng = np.random.default_rng(seed)
    m, k, n = sizes
    a, b, acc = drawn(rng, (m, k), "fp32", spread), drawn(rng, (k, n), "fp32", spread), drawn(rng, (m, n), "fp32", spread)
    format, count, most = {
        "tf32": (_TF32, 1, 0), "tf32x3": (_TF32, 2, 1), "bf16x3": (DTYPES["bf16"], 2, 1), "bf16x6": (DTYPES["bf16"], 3, 2),
    }[precision]
    left, right = _parts(a, count, format, way), _parts(b, count, format, way)
    terms = [left[i][:, :, None] * right[j][None] for i in range(count) for j in range(count) if i + j <= most]
    expected = dot(value(a), value(b), value(acc), F32, precision=precision)
    got = in_some_order(np.concatenate(terms, axis=1), acc, rng, "blocks")
    assert compare(got, expected).wrong == 0


@settings(max_examples=60, deadline=None)
@given(sizes=SIZES, seed=st.integers(0, 2**32 - 1), precision=st.sampled_from(["ieee", "tf32"]), often=st.floats(0, 0.3))
def test_infinities_and_nan_come_out_as_products_and_sums_make_them(sizes, seed, precision, often) -> None:
    rng = np.random.default_rng(seed)
    m, k, n = sizes
    special = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0])
    a, b, acc = (np.where(rng.random(s) < often, rng.choice(special, s), drawn(rng, s, "fp16"))
                 for s in ((m, k), (k, n), (m, n)))
    expected = dot(value(a), value(b), value(acc), F32, precision=precision)
    with np.errstate(all="ignore"):
        products = a[:, :, None] * b[None]
    got = in_some_order(products, acc, rng, "fused")
    found = compare(got, expected)
    assert found.wrong == 0
    assert found.free_fraction == 0.0


@pytest.mark.parametrize("unsigned", [False, True])
def test_integers_are_exact_and_wrap(unsigned: bool) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((3, 300), (300, 5)))
    acc = rng.integers(-(2**31), 2**31, (3, 5)).astype(np.int32)
    found = dot(EvaluatedValue(a[None]), EvaluatedValue(b[None]), EvaluatedValue(acc[None]), DTYPES["int32"], unsigned=unsigned)
    wide = (a.view(np.uint8), b.view(np.uint8)) if unsigned else (a, b)
    exact = wide[0].astype(np.int64) @ wide[1].astype(np.int64) + acc
    assert found.free is None and (found.x[0] == exact.astype(np.int32)).all()


def test_small_whole_numbers_are_exact() -> None:
    """No order rounds them, whatever the precision: they fit tf32 and bf16."""
    rng = np.random.default_rng(0)
    a, b, acc = (rng.integers(-8, 9, shape).astype(np.float64) for shape in ((16, 32), (32, 16), (16, 16)))
    for precision in ("ieee", "tf32", "bf16x3"):
        found = dot(value(a), value(b), value(acc), F32, precision=precision)
        assert found.free is None and (found.err is None or found.err.max() < 1e-300)  # but for the sign of a zero
        assert (found.x[0] == a @ b + acc).all()


def test_the_bound_is_tight_enough_to_miss_nothing() -> None:
    """A column left out, or an accumulator of f16, is out of bounds; so are tf32 operands where ieee was asked for."""
    rng = np.random.default_rng(0)
    a, b = drawn(rng, (32, 256), "fp16"), drawn(rng, (256, 32), "fp16")
    acc = np.zeros((32, 32))
    found = dot(value(a), value(b), value(acc), F32)
    assert compare((a[:, 1:] @ b[1:]).astype(np.float32), found).wrong > 1000
    narrow = np.zeros((32, 32), np.float16)
    for k in range(256):
        narrow += a[:, k : k + 1].astype(np.float16) * b[k].astype(np.float16)
    assert compare(narrow.astype(np.float32), found).wrong > 500
    wide_a, wide_b = drawn(rng, (32, 256), "fp32"), drawn(rng, (256, 32), "fp32")
    cut = (_to_tf32(wide_a, "cut") @ _to_tf32(wide_b, "cut")).astype(np.float32)
    assert compare(cut, dot(value(wide_a), value(wide_b), value(acc), F32)).wrong > 500
    assert compare(cut, dot(value(wide_a), value(wide_b), value(acc), F32, precision="tf32")).wrong == 0


@settings(max_examples=40, deadline=None)
@given(sizes=SIZES, seed=st.integers(0, 2**32 - 1), precision=st.sampled_from(["ieee", "tf32"]))
def test_errors_of_the_operands_are_carried(sizes, seed, precision) -> None:
    rng = np.random.default_rng(seed)
    m, k, n = sizes
    shapes = ((m, k), (k, n), (m, n))
    a, b, acc = (rng.standard_normal(shape) for shape in shapes)
    ea, eb, ec = (np.where(rng.random(shape) < 0.5, rng.random(shape) * 1e-3, 0.0) for shape in shapes)
    expected = dot(value(a, ea), value(b, eb), value(acc, ec), F32, precision=precision)
    moved = [x + rng.choice((-1.0, 1.0), x.shape) * e for x, e in ((a, ea), (b, eb), (acc, ec))]
    if precision == "tf32":
        moved[:2] = [_to_tf32(x, "cut") for x in moved[:2]]
    got = in_some_order(moved[0][:, :, None] * moved[1][None], moved[2], rng, "fused")
    assert compare(got, expected).wrong == 0


@settings(max_examples=60, deadline=None)
@given(sizes=SIZES, seed=st.integers(0, 2**32 - 1), precision=st.sampled_from(["ieee", "tf32", "tf32x3"]), often=st.floats(0, 0.1))
def test_infinities_among_inexact_factors_are_bounded_or_open(sizes, seed, precision, often) -> None:
    """Factors that may be zero or of either sign make an infinity of either sign, or NaN."""
    rng = np.random.default_rng(seed)
    m, k, n = sizes
    shapes, special = ((m, k), (k, n), (m, n)), np.array([np.inf, -np.inf, np.nan, 0.0])
    a, b, acc = (np.where(rng.random(s) < often, rng.choice(special, s), rng.standard_normal(s)) for s in shapes)
    ea, eb, ec = (np.where(np.isfinite(x) & (rng.random(x.shape) < 0.5), rng.choice([1e-3, 1.0]), 0.0) for x in (a, b, acc))
    expected = dot(value(a, ea), value(b, eb), value(acc, ec), F32, precision=precision)
    with np.errstate(all="ignore"):
        moved = [np.where(e > 0, x + rng.choice((-1.0, 1.0), x.shape) * e, x) for x, e in ((a, ea), (b, eb), (acc, ec))]
        if precision == "tf32":
            moved[:2] = [_to_tf32(x, "cut") for x in moved[:2]]
        products = moved[0][:, :, None] * moved[1][None]
    assert compare(in_some_order(products, moved[2], rng, "fused"), expected).wrong == 0


def test_an_infinity_among_inexact_factors_whose_signs_are_sure_is_exact() -> None:
    a, b = np.array([[np.inf, 2.0, 3.0], [1.0, 2.0, np.nan]]), np.array([[1.0, -1.0, 0.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    found = dot(value(a), value(b, np.full(b.shape, 1e-3)), value(np.zeros((2, 3))), F32)
    assert np.array_equal(found.x[0], [[np.inf, -np.inf, np.nan], [np.nan] * 3], equal_nan=True)
    assert found.free is not None and found.free[0].tolist() == [[False, False, True], [False] * 3]


def test_an_unbounded_operand_leaves_its_row_or_column_open() -> None:
    a, b = np.ones((3, 4)), np.ones((4, 2))
    ea, eb = np.zeros((3, 4)), np.zeros((4, 2))
    ea[1, 2], eb[0, 1] = np.inf, np.inf
    found = dot(value(a, ea), value(b, eb), value(np.zeros((3, 2))), F32)
    assert found.free is not None
    assert found.free[0].tolist() == [[False, True], [True, True], [False, True]]


def test_an_accumulator_that_some_order_overflows_is_open() -> None:
    a, b = np.array([[300.0, 300.0, 1.0]]), np.array([[200.0], [-200.0], [3.0]])
    assert dot(value(a), value(b), value(np.zeros((1, 1))), DTYPES["fp16"]).free is not None
    assert dot(value(a), value(b), value(np.zeros((1, 1))), F32).free is None


@tilefw.jit
def added_to_product(a_ptr, b_ptr, x_ptr, M: tl.constexpr, K: tl.constexpr):
    m, k = tl.arange(0, M), tl.arange(0, K)
    a, b = tl.load(a_ptr + m[:, None] * K + k), tl.load(b_ptr + k[:, None] * M + m)
    at = x_ptr + m[:, None] * M + m
    tl.store(at, tl.load(at) + tl.dot(a, b))


@pytest.mark.parametrize("steps", ["separate", "fused", "blocks"])
def test_a_product_that_is_added_to_much_larger_numbers_may_be_summed_onto_them(steps: str) -> None:
    """x + a · b is computed as a dot onto x, so that each of its additions rounds a number of the size of x."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((16, 64)).astype(np.float16) for _ in range(2))
    b, x = b.reshape(64, 16), (1e4 * rng.standard_normal((16, 16))).astype(np.float32)
    expected = tilefw.reference(added_to_product, (1,), a, b, x, M=16, K=64)["x_ptr"]
    got = in_some_order(a.astype(np.float64)[:, :, None] * b.astype(np.float64)[None], x, rng, steps)
    off = np.abs(got - expected.value)
    assert (off <= expected.bound).all() and off.max() > 2 * np.spacing(np.abs(x)).max()
    assert (expected.bound < 70 * 2.0**-23 * (np.abs(x) + 200)).all()


@tilefw.jit
def added_to_imprecise_product(a_ptr, b_ptr, x_ptr, M: tl.constexpr, K: tl.constexpr):
    m, k = tl.arange(0, M), tl.arange(0, K)
    a, b = tl.load(a_ptr + m[:, None] * K + k), tl.load(b_ptr + k[:, None] * M + m)
    at = x_ptr + m[:, None] * M + m
    tl.store(at, tl.load(at) + tl.dot(a, b, max_num_imprecise_acc=K))


def test_imprecise_products_are_added_in_full_to_what_is_no_accumulator_of_theirs() -> None:
    """The author allows short sums of K products, and no shorter sum with a much larger number."""
    factor = np.ones((16, 16), ml_dtypes.float8_e4m3fn)
    expected = tilefw.reference(added_to_imprecise_product, (1,), factor, factor, np.full((16, 16), 1e6, np.float32), M=16, K=16)
    assert (expected["x_ptr"].bound <= np.spacing(np.float32(1e6))).all()
    signature = {"a_ptr": "*fp8e4nv", "b_ptr": "*fp8e4nv", "x_ptr": "*fp32"}
    module = build_module(added_to_imprecise_product, signature, {"M": 16, "K": 16})
    PassManager(default_passes()).run(module)
    (product,) = [op for op in nested_ops(module) if isinstance(op, DotOp)]
    assert product.imprecise and constant_of(product.acc) == 0


def test_small_whole_numbers_are_exact_wherever_they_are_added() -> None:
    a, b = np.full((16, 64), 3, np.float16), np.full((64, 16), 5, np.float16)
    expected = tilefw.reference(added_to_product, (1,), a, b, np.full((16, 16), 7, np.float32), M=16, K=64)["x_ptr"]
    assert (expected.value == 967).all() and (expected.bound < 1e-300).all()


@pytest.mark.parametrize("steps", ["separate", "fused", "blocks"])
def test_products_that_add_up_exactly_may_be_rounded_where_they_are_summed_onto_a_fraction(steps: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-30, 31, (16, 64)).astype(np.float16) for _ in range(2))
    b, x = b.reshape(64, 16), rng.random((16, 16)).astype(np.float32)
    expected = tilefw.reference(added_to_product, (1,), a, b, x, M=16, K=64)["x_ptr"]
    got = in_some_order(a.astype(np.float64)[:, :, None] * b.astype(np.float64)[None], x, rng, steps)
    off = np.abs(got - expected.value)
    assert (off <= expected.bound).all() and off.max() > 130 * 2.0**-23
    assert (expected.bound < 70 * 2.0**-23 * 900 * 64).all()


def test_a_sum_that_some_order_overflows_on_its_way_onto_a_number_is_open() -> None:
    a, b = np.array([[1e19, 1e19]]), np.array([[1e19], [-1e19]])
    zero, found = value(np.zeros((1, 1))), {}
    for x in (1.0, 3e38, np.inf):
        found[x] = summed_onto(value(np.full((1, 1), x)), (value(a), value(b)), zero, F32, "ieee")
    assert found[1.0] is not None and np.isfinite(found[1.0]).all() and found[np.inf] is None
    assert found[3e38] is not None and np.isinf(found[3e38]).all()


def test_batches_and_programs_are_independent() -> None:
    rng = np.random.default_rng(0)
    a, b, acc = (rng.standard_normal(shape) for shape in ((2, 3, 4, 8), (1, 3, 8, 5), (2, 3, 4, 5)))
    found = dot(EvaluatedValue(a), EvaluatedValue(b), EvaluatedValue(acc), F32)
    np.testing.assert_allclose(found.x, np.einsum("pbmk,qbkn->pbmn", a, b) + acc, rtol=1e-12)
