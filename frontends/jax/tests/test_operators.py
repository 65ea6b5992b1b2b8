"""What operators of StableHLO become means what they mean to JAX: graph modules in NumPy beside JAX's own results."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed")
pytest.importorskip("tilefw_jax", reason="tilefw-jax is not installed")

import jax
from jax import lax
from jax import numpy as jnp
from tilefw_jax.element_types import kind_of
from tilefw_jax.reader import ModuleReading
from tilefw_jax.rules import indexing

from tilefw.api.dtypes import dtype
from tilefw.graph import ordering, prefixes
from tilefw.graph.meaning import run, values_of

_R = np.random.default_rng(0)
X, IMAGE, KERNEL = (_R.standard_normal(shape).astype(np.float32) for shape in ((4, 8), (2, 5, 5, 4), (3, 3, 4, 6)))
I, U = _R.integers(-99, 99, 6).astype(np.int32), _R.integers(0, 1 << 32, 6).astype(np.uint32)
PLACES = np.array([3, 1, 1], np.int32)
ENDS = np.array(
    [0.0, -0.0, 1.0, -2.5, 300.7, 447.0, 448.0, -464.0, 465.0, 57343.0, -61000.0, 61440.0, 65519.0, 65520.0, 3.3e38, -1e6, 6e-5,
     6.2e-5, -1e-7, 2e-3, 1e-39, 239.0, 250.0, np.inf, -np.inf, np.nan], np.float32,
)
LONG = np.round(_R.standard_normal(300) * 8).astype(np.float32)  # with many equal elements
LONG[[5, 77, 290]], LONG[[6, 200]], LONG[9] = np.nan, -0.0, -np.inf
SIGNS = np.array([-0.0, 0.0, -0.0, 0.0, np.nan, -np.inf, 2.0, np.nan, -1e-30], np.float32)
INTEGERS = _R.integers(-80, 80, 300).astype(np.int32)
_NHWC = ("NHWC", "HWIO", "NHWC")


def convolutions(x, w):
    def one(w, strides, padding, **how):
        return lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=_NHWC, **how)

    return (
        one(w, (2, 1), [(1, 2), (0, 1)]), one(w, (1, 1), [(2, 2), (2, 2)], rhs_dilation=(2, 2)),
        one(w, (1, 1), [(1, 1), (-1, 1)], lhs_dilation=(2, 3)), one(w[:, :, :2], (1, 1), "SAME", feature_group_count=2),
        one(w, (1, 1), "SAME", batch_group_count=2), jax.grad(lambda w: (one(w, (2, 2), "SAME") ** 2).sum())(w),
    )


def pools(x):
    def most(x):
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")

    return most(x), jax.grad(lambda x: (most(x) ** 2).sum())(x), jnp.cumsum(x, 1), lax.cumsum(x, 2, reverse=True)


def neighbours(x, y):
    found = jnp.nextafter(x, y)
    return lax.bitcast_convert_type(jnp.where(jnp.isnan(found), 0, found), f"int{8 * x.dtype.itemsize}")


CASES = {
    "pointwise": (lambda x: (
        jnp.sinh(x), jnp.arctan2(x, x[::-1]), jax.nn.sigmoid(x), jnp.cbrt(x), jnp.isfinite(x), jnp.round(x), jnp.sign(x),
        jax.scipy.special.erfinv(jnp.tanh(x)), jax.scipy.special.erfc(x), jnp.arccosh(1 + jnp.abs(x)), jnp.mod(x, 0.7),
        x.astype(jnp.bfloat16), lax.round(x), jnp.clip(x, -1, 1), jnp.array([1.5, jnp.inf], jnp.bfloat16),
    ), X),
    "integers": (lambda i, u: (
        i // 3, i % 7, i >> 1, i << 33, lax.population_count(i), lax.clz(u), u // 3, u > jnp.uint32(1 << 31), u.astype(jnp.float32),
        jnp.max(u), i.astype(jnp.uint8), jnp.sort(u), ~i, jnp.any(i > 3), lax.shift_right_logical(i, i),
    ), I, U),
    "ends of formats": (lambda x: (
        *(lax.reduce_precision(x.astype(kind), *bits) for kind in ("float32", "bfloat16", "float16")
          for bits in ((5, 10), (8, 7), (4, 3))),
        *(x.astype(kind) for kind in ("float8_e4m3fn", "float8_e5m2", "uint8", "int8")), lax.acosh(x), lax.clamp(2.0, x, 1.0),
        *(neighbours(x.astype(kind), y.astype(kind)) for kind in ("float32", "bfloat16") for y in (x[::-1], jnp.full_like(x, 2))),
        lax.is_finite(x.astype("float8_e5m2")), lax.is_finite(jnp.clip(x, -448, 448).astype("float8_e4m3fn")),
    ), ENDS),
    "of nothing and other beginnings": (lambda x, i: (
        lax.reduce(x[:3], 5.0, lax.add, (0,)), lax.reduce(x, 0.5, lax.mul, (1,)), jnp.sort(x[:0]), jnp.sort(x[:1], 0), x[:0].sum(0),
        lax.dynamic_update_slice(x, x[:0], (i[0], i[1])), lax.conv(x[None, None, :2], x[None, None], (1, 1), "VALID"),
    ), X, PLACES),
    "long order": (lambda x, i, u: (
        lax.sort((x.astype(jnp.bfloat16), i % 3, i), num_keys=2), jnp.argsort(i, descending=True), jnp.sort(u > 99),
        lax.top_k(x, 7), jnp.lexsort((x, i % 5)), lax.top_k(i.astype(jnp.int8), 250), jnp.unique(i, size=9),
        jnp.searchsorted(i, x[:3]),
        lax.sort((jnp.abs(i) * x, x), is_stable=True, num_keys=1)[1], jnp.sort(u.reshape(4, -1), 0, descending=True),
    ), LONG, INTEGERS, INTEGERS.view(np.uint32)),
    "prefixes": (lambda x, i: (
        jnp.cumsum(i), lax.cummax(x), lax.cumprod(i.astype(jnp.uint8), reverse=True), jnp.cumsum(i[:, None] > 0, 0),
        lax.cumlogsumexp(x[:100]), jnp.cumsum(i[:0]), lax.cummin(jnp.repeat(x, 3)),
    ), LONG, INTEGERS),
    "many updates": (lambda x, i: (
        jnp.zeros(64).at[i].add(x), jnp.zeros(64, jnp.int8).at[i].add(3),
        jnp.ones(64, jnp.uint16).at[i].max((jnp.arange(i.size) % 997).astype(jnp.uint16)),
        jnp.zeros(64, bool).at[i].set(x > 0), jnp.zeros((9, 64)).at[i % 9, i].min(x), jnp.zeros(64).at[i].set(x, mode="drop"),
        jnp.bincount(i % 64, length=64), jax.ops.segment_max(x, i % 64, 64), jnp.ones((64, 2)).at[i].max(x[:, None]),
        jax.grad(lambda table: (table[i % 64] * x[:, None]).sum())(jnp.ones((64, 3))), jnp.zeros(64).at[i[:40]].mul(2.0),
        jax.vmap(lambda row, k: row.at[k].add(1.0))(jnp.zeros((3, 64)), i.reshape(3, -1)),
    ), LONG, INTEGERS),
    "order": (lambda x: (jnp.sort(x, 0), jnp.argsort(x, 1), lax.top_k(x, 3), jnp.argmax(x[:, :5], 1), jnp.argmin(x)), X),
    "order of signs": (lambda x: (
        lax.top_k(x, 9), lax.top_k(x.astype(jnp.bfloat16), 9), jnp.sort(x), jnp.argsort(x), jnp.argsort(x, descending=True),
    ), SIGNS),
    "places": (lambda x, i: (
        x[i], jnp.take(x, i, 1), x[i, i], x.at[i].set(x[:3]), x.at[i].add(x[:3]), x.at[:, 2:4].max(1.0), x.at[1, 3].set(9.0),
        lax.dynamic_slice(x, (i[1], 6), (2, 3)), lax.dynamic_update_slice(x, x[:2, :3] * 2, (i[0], i[1])),
        jax.vmap(lambda row, k: row.at[k].add(1.0))(x[:3], i), jax.vmap(lambda row, k: row[k])(x[:3], i),
    ), X, PLACES),
    "moves": (lambda x: (
        lax.pad(x, 0.0, ((1, 2, 1), (-1, 2, 0))), jnp.roll(x, 3, 1), x[::2, ::-3], jnp.tile(x, (2, 2)), jnp.eye(3), x[:, :0].sum(1),
    ), X),
    "products": (lambda x, y: (
        jnp.einsum("abic,abcd->abid", x[None, None], y), jnp.tensordot(x, x), x[0] @ x[1], jnp.einsum("ij,kj->jki", x, x),
        x.astype(jnp.bfloat16) @ x.T.astype(jnp.bfloat16), (x > 1) @ (x.T > 0),
    ), X, _R.standard_normal((2, 1, 8, 3)).astype(np.float32)),
    "convolutions": (convolutions, IMAGE, KERNEL),
    "pools": (pools, IMAGE),
    "control": (lambda x: (
        lax.scan(lambda c, a: (c + a, c * a), x[0], x), lax.fori_loop(0, 5, lambda i, c: c * 0.5 + i, x),
        lax.switch(x[0, 0].astype(int) + 1, [lambda y: y, lambda y: y * 2, lambda y: y * 3], x),
    ), X),
    "random": (lambda key: (jax.random.normal(key, (3,)), jax.random.randint(key, (5,), 0, 10)), np.array([1, 2], np.uint32)),
}


@pytest.fixture(autouse=True)
def _short_parts(monkeypatch):
    """Few elements have the ways of many: parts that are merged, and updates that memory combines."""
    monkeypatch.setattr(ordering, "_PART", 32)
    monkeypatch.setattr(prefixes, "_LONGEST", 64)
    monkeypatch.setattr(indexing, "_FEW", 256)


@pytest.mark.parametrize("name", CASES)
def test_a_graph_means_what_jax_computes(name):
    function, *arguments = CASES[name]
    compiled = jax.jit(function, keep_unused=True)
    reading = ModuleReading(compiled.lower(*arguments).compiler_ir("stablehlo"))
    reading.read()
    kinds = [kind_of(one.type) for one in reading.functions["main"].regions[0].blocks[0].arguments]
    found = run(reading.builder.module(), [values_of(one, dtype(kind)) for one, kind in zip(arguments, kinds, strict=True)])
    due = jax.tree.leaves(compiled(*arguments))
    for place, (one, other) in enumerate(zip(found, map(np.asarray, due), strict=True)):
        assert one.shape == other.shape
        if other.dtype.kind in "biu":
            np.testing.assert_array_equal(one.astype(other.dtype), other, str(place))
        else:
            allowed = 1e-2 if other.dtype.itemsize == 2 else 2e-5
            np.testing.assert_allclose(one, other.astype(np.float64), rtol=allowed, atol=allowed, err_msg=str(place))
