"""The graph dialect: its text reads back, its verifier names what is wrong, its builder means what NumPy means."""

from __future__ import annotations

import numpy as np
import pytest

from tilefw.api.errors import IRError
from tilefw.graph.builder import ModuleBuilder, shape_of
from tilefw.graph.dialect.text import parse_graph
from tilefw.graph.index_maps import linear_map
from tilefw.graph.meaning import run
from tilefw.graph.ordering import order_key, places_in_order

RNG = np.random.default_rng(7)


def outputs(builder, *inputs):
    """The outputs in NumPy, of the module and of the one that its text reads back as."""
    module = builder.module()
    text = str(module)
    again = parse_graph(text)
    assert str(again) == text
    found = run(again, inputs)
    for left, right in zip(run(module, inputs), found, strict=True):
        np.testing.assert_array_equal(left, right)
    return found


def test_a_layer_means_what_numpy_computes():
    b = ModuleBuilder()
    x, w = b.input("x", "fp64", (2, 3, 8)), RNG.integers(-9, 9, (8, 6)).astype(np.float64)  # sums of integers are exact
    y = b.matmul(x, b.constant(w, "fp64"))
    held = b.map("exp", b.map("subf", y, b.reduce("maxf", y, [-1], keep=True)))
    b.output("p", b.map("divf", held, b.reduce("addf", held, [-1], keep=True)))
    b.output("top", places_in_order(b, [order_key(b, y, "fp64", falling=True)], 2, 2))
    b.output("taken", b.take(y, b.constant(np.array([[5, -3], [1, 99]]), "int64"), 2))  # indices are clamped
    b.output("sums", b.scan("addf", y, 1, reverse=True))
    given = RNG.integers(-9, 9, (2, 3, 8)).astype(np.float64)
    p, top, taken, sums = outputs(b, given)
    wanted = given @ w
    e = np.exp(wanted - wanted.max(-1, keepdims=True))
    np.testing.assert_allclose(p, e / e.sum(-1, keepdims=True), rtol=1e-14)
    np.testing.assert_array_equal(top, np.argsort(-wanted, -1, kind="stable")[..., :2])
    np.testing.assert_array_equal(taken, wanted[..., [[5, 0], [1, 5]]])
    np.testing.assert_array_equal(sums, wanted[:, ::-1].cumsum(1)[:, ::-1])


@pytest.mark.parametrize(("strides", "pads", "dilations", "groups"), [((1, 1), (0, 0), (1, 1), 1), ((2, 1), (1, 2), (1, 2), 2)])
def test_a_convolution_is_a_contraction_over_windows(strides, pads, dilations, groups):
    b = ModuleBuilder()
    given, weights = (RNG.integers(-9, 9, shape).astype(np.float64) for shape in ((2, 4, 7, 6), (6, 4 // groups, 3, 2)))
    x, w = b.input("x", "fp64", given.shape), b.constant(weights, "fp64")
    b.output("y", b.convolve(x, w, strides, pads, pads, dilations, groups))
    (found,) = outputs(b, given)
    padded = np.pad(given, [(0, 0), (0, 0), (pads[0],) * 2, (pads[1],) * 2])
    wanted = np.zeros_like(found)
    for n, f, y, x in np.ndindex(found.shape):
        g = f // (6 // groups)
        window = padded[
            n, g * (4 // groups) : (g + 1) * (4 // groups),
            y * strides[0] : y * strides[0] + 3 * dilations[0] : dilations[0],
            x * strides[1] : x * strides[1] + 2 * dilations[1] : dilations[1],
        ]
        wanted[n, f, y, x] = (window[:, :3, :2] * weights[f]).sum()
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("seed", range(6))
def test_random_views_are_numpys(seed):
    rng = np.random.default_rng(seed)
    b = ModuleBuilder()
    given = rng.integers(-9, 9, tuple(rng.integers(1, 5, 3))).astype(np.int32)
    value, wanted = b.input("x", "int32", given.shape), given
    for step in rng.integers(0, 6, 8):
        rank = wanted.ndim
        if step == 0:
            order = rng.permutation(rank)
            value, wanted = b.transpose(value, [int(k) for k in order]), wanted.transpose(order)
        elif step == 1:
            value, wanted = b.reshape(value, (wanted.size,)), wanted.reshape(-1)
        elif step == 2:
            value, wanted = b.broadcast(value, (2, *wanted.shape)), np.broadcast_to(wanted, (2, *wanted.shape))
        elif step == 3:
            value = b.slice(value, [n - 1 for n in wanted.shape], wanted.shape, [-1] * rank)
            wanted = np.flip(wanted)
        elif step == 4:
            value, wanted = b.pad(value, [1] * rank, [0] * rank, 3), np.pad(wanted, [(1, 0)] * rank, constant_values=3)
        else:
            value, wanted = b.concat([value, value], rank - 1), np.concatenate([wanted, wanted], -1)
        assert shape_of(value) == wanted.shape
    b.output("y", value)
    np.testing.assert_array_equal(outputs(b, given)[0], wanted)


def test_updates_outside_a_scatter_are_dropped():
    b = ModuleBuilder()
    x, i = b.input("x", "fp32", (4,)), b.input("i", "int64", (3,))
    u = b.constant(np.array([1, 2, 4], np.float32), "fp32")
    b.output("y", b.scatter(x, u, [i], [0], linear_map([[0]], [0], 1), "addf"))
    np.testing.assert_array_equal(outputs(b, np.zeros(4), np.array([2, 9, 2]))[0], [0, 0, 5, 0])


WRONG = {
    "leaves": "%v = graph.view %x [affine_map<(d0) -> (d0 + 1, 0)>] : tensor<4x8xf32> to tensor<4xf32>",
    "not linear": "%v = graph.view %x [affine_map<(d0) -> (d0 floordiv 2, 0)>] : tensor<4x8xf32> to tensor<4xf32>",
    "not as many elements": "%v = graph.reshape %x : tensor<4x8xf32> to tensor<4x7xf32>",
    "combines at least one": "%v = graph.reduce (%e) axes [0] : (tensor<0xf32>) -> (tensor<f32>) {\n^bb0(%a : f32, %b : f32):\n"
    "graph.yield %a : f32\n}",
    "is no scalar op": "%v = graph.map (%x) : (tensor<4x8xf32>) -> (tensor<4x8xf32>) {\n^bb0(%a : f32):\n"
    "%c = tile.constant 1.0 : tensor<2xf32>\ngraph.yield %a : f32\n}",
    "not the first of the sizes": "%v = graph.contract %x [affine_map<(d0, d1) -> (d0, d1)>], %x [affine_map<(d0, d1) -> (d0, d1)>]"
    " sizes [3, 8] : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4xf32>",
    "no axis 2": "%v = graph.sort %i axis 2 : i64 : tensor<4x6xi32> -> tensor<4x6xi32>",
    "whole numbers": "%v = graph.sort %x axis 1 : i64 : tensor<4x8xf32> -> tensor<4x8xf32>",
    "are not bitonic": "%v = graph.sort %i axis 1 : i64 bitonic : tensor<4x6xi32> -> tensor<4x6xi32>",
    "combines 32 or 64 bits": '%v = graph.scatter %x, %x [affine_map<(d0, d1) -> (0, d1)>] at (%j) axes [0] by "maxf" : '
    "tensor<4x8xf32>, tensor<4x8xf32> (tensor<4x8xi32>) -> tensor<4x8xf32>",
    "has 4 bytes": '%v = graph.constant <"0000"> : tensor<1xf32>',
}


@pytest.mark.parametrize("words", WRONG)
def test_the_verifier_says_in_words_what_is_wrong(words):
    arguments = "%x : tensor<4x8xf32>, %e : tensor<0xf32>, %i : tensor<4x6xi32>, %j : tensor<4x8xi32>"
    text = f"func.func @model({arguments}) {{\n{WRONG[words]}\nfunc.return\n}}"
    with pytest.raises(IRError, match=words) as caught:
        parse_graph(text)
    assert caught.value.code == "TFW0402"
