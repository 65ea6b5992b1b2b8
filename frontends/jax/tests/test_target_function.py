"""A function on a target gives what JAX gives, is compiled once for each kind of arguments, and works within transformations."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed")
pytest.importorskip("tilefw_jax", reason="tilefw-jax is not installed")

import jax
import tilefw_jax
from jax import numpy as jnp

import tilefw
from tilefw.api.errors import UnsupportedError, UsageError

X = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
PARAMETERS = {"w": np.eye(8, dtype=np.float32) * 0.5, "b": jnp.ones(8)}


def layers(parameters, x, count, *, activation="relu"):
    for _ in range(count):
        x = getattr(jax.nn, activation)(x @ parameters["w"] + parameters["b"])
    return {"y": x, "sum": x.sum()}


def test_trees_and_static_arguments_and_one_compilation_for_a_kind_of_arguments():
    found = tilefw_jax.jit(layers, target="reference", static_argnums=2, static_argnames="activation")
    for x, count, variants in ((X, 2, 1), (X + 1, 2, 1), (X[:2], 2, 2), (X, 1, 3)):
        y, due = found(PARAMETERS, x, count, activation="tanh"), layers(PARAMETERS, x, count, activation="tanh")
        assert jax.tree.structure(y) == jax.tree.structure(due)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), y, due)
        assert found.compiled == variants
    for wrong in (("p", X, 2), (PARAMETERS, X, (1, []))):
        with pytest.raises(UsageError, match="TFW0366"):
            found(*wrong)


@pytest.mark.parametrize("target", ["nvidia-sm80", "amd-cdna3", "spatial-sdm1"])
def test_a_layer_on_each_target(target):
    def layer(w, x):
        return jax.nn.softmax(x @ w)

    w = PARAMETERS["w"]
    np.testing.assert_allclose(tilefw_jax.jit(layer, target=target)(w, X), layer(w, X), rtol=1e-5)


def test_equal_static_arguments_of_two_types_are_two_variants():
    found = tilefw_jax.jit(lambda x, n: x * n, target="reference", static_argnums=1)
    assert [str(found(np.arange(3, dtype=np.int32), n).dtype) for n in (2, 2.0, np.float16(2))] == ["int32", "float32", "float16"]


def test_settings_of_jax_and_of_tilefw_make_variants():
    found = tilefw_jax.jit(lambda x: x * jax.random.key_data(jax.random.key(0)).size, target="reference")
    ones = np.ones(2, np.float32)
    assert found(ones)[0] == 2
    with jax.default_prng_impl("rbg"):
        assert found(ones)[0] == 4
    with tilefw.target("reference", checks="none"):
        assert found(ones)[0] == 2 and found.compiled == 3


def test_results_that_are_no_floats_are_beside_those_with_a_gradient():
    found = tilefw_jax.jit(lambda x: (x.argmax(), (x * x).sum()), target="reference")
    np.testing.assert_allclose(jax.grad(lambda x: found(x)[1])(X[0]), 2 * X[0], rtol=1e-6)


def test_within_jit_grad_and_vmap_it_is_a_callback():
    def energy(x, scale):
        return (jnp.sin(x) * scale).sum()

    found = tilefw_jax.jit(energy, target="cpu")
    within = jax.jit(lambda x: found(x, 2.0) + 1)
    for _ in range(2):  # JAX keeps what it traced; the callback compiles again
        np.testing.assert_allclose(within(X), energy(X, 2.0) + 1, rtol=1e-5)
        found.clear_cache()
    np.testing.assert_allclose(jax.grad(found)(X, 2.0), jax.grad(energy)(X, 2.0), rtol=1e-5)
    np.testing.assert_allclose(jax.vmap(found, (0, None))(X, 2.0), jax.vmap(energy, (0, None))(X, 2.0), rtol=1e-5)


def test_all_operators_without_a_rule_are_told_at_once():
    with pytest.raises(UnsupportedError) as told:
        tilefw_jax.jit(lambda x: (jnp.linalg.qr(x), jax.scipy.special.gammaln(x), jnp.fft.fft(x)), target="reference")(X)
    message = str(told.value)
    assert all(word in message for word in ("TFW0992", "chlo.lgamma", "complex", "test_target_function.py:")), message


def test_the_largest_are_those_of_jax_down_to_the_sign_of_nan():
    given = np.array([-0.0, 0.0, -np.nan, np.nan, -np.inf, 2.0, -0.0, -np.nan], np.float32)
    found = tilefw_jax.jit(lambda x: jax.lax.top_k(x, 8), target="cpu")(given)
    for one, due in zip(found, jax.lax.top_k(given, 8), strict=True):
        np.testing.assert_array_equal(np.asarray(one).view(np.int32), np.asarray(due).view(np.int32))


def test_a_masked_array_is_refused_behind_an_array_of_the_same_shape():
    found = tilefw_jax.jit(jnp.negative, target="reference")
    found(X)
    with pytest.raises(UsageError, match="type MaskedArray is no array of JAX"):
        found(np.ma.array(X, mask=X > 0))


def test_results_need_no_copy_that_a_transfer_guard_forbids():
    given = jax.device_put(X)
    with jax.transfer_guard("disallow"):
        found = tilefw_jax.jit(jnp.negative, target="reference")(given)
    np.testing.assert_array_equal(found, -X)
