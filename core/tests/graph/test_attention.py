"""Attention is one launch, however models write it, and every launch of it is within its bounds."""

from __future__ import annotations

import numpy as np
import pytest

from tilefw.graph.builder import ModuleBuilder, shape_of
from tilefw.graph.certificate import certified
from tilefw.graph.compile_graph import compile_graph
from tilefw.graph.emit.model import kernel_graph
from tilefw.graph.fuse.attention import fuse_attention
from tilefw.graph.fuse.softmax import softmax_of
from tilefw.graph.index_maps import linear_map
from tilefw.graph.meaning import run
from tilefw.graph.session import Session

RNG = np.random.default_rng(7)


def softmax(b, scores):
    held = b.map("exp", b.map("subf", scores, b.reduce("maxf", scores, [-1], keep=True)))
    return b.map("divf", held, b.reduce("addf", held, [-1], keep=True))


def tensors(b, queries, keys, heads=2, groups=2, width=6, kind="fp32"):
    """Inputs for queries of `heads`, keys and values of `groups` heads, and random elements for them."""
    shapes = {"q": (2, heads, queries, width), "k": (2, groups, keys, width), "v": (2, groups, keys, width)}
    stored = np.float16 if kind == "fp16" else np.float32
    given = {name: RNG.standard_normal(shape).astype(stored) for name, shape in shapes.items()}
    return [b.input(name, kind, shape) for name, shape in shapes.items()], given


def causal(b, length=20):
    """Two heads of queries for each of keys, as broadcast views; a constant mask that is added."""
    (q, k, v), given = tensors(b, length, length, heads=4)
    k, v = (
        b.reshape(b.broadcast(b.reshape(one, (2, 2, 1, length, 6)), (2, 2, 2, length, 6)), (2, 4, length, 6)) for one in (k, v)
    )
    mask = b.constant(np.triu(np.full((length, length), np.float32(-3e38)), 1), "fp32")
    b.output("y", b.matmul(softmax(b, b.map("addf", b.matmul(b.map("mulf", q, 0.4), b.transpose(k, [0, 1, 3, 2])), mask)), v))
    return given


def masked(b, queries=5, keys=9):
    """A mask from outside that hides all of a row, whose weights, NaN, become 0; capped scores; heads side by side."""
    (q, k, v), given = tensors(b, queries, keys)
    given["mask"] = RNG.random((2, 1, queries, keys)) < 0.6
    given["mask"][:, :, queries // 2] = queries == 1
    scores = b.map("mulf", b.map("tanh", b.map("mulf", b.matmul(q, b.transpose(k, [0, 1, 3, 2])), 0.1)), 4.0)
    weights = softmax(b, b.map("select", b.input("mask", "int1", given["mask"].shape), scores, float("-inf")))
    found = b.matmul(b.map("select", b.map("isnan", weights), 0.0, weights), v)
    b.output("y", b.reshape(b.transpose(found, [0, 2, 1, 3]), (2, queries, 12)))
    return given


def grouped(b):
    """Two heads of queries for each of keys, as an index of their own, written in Einstein's notation."""
    shapes = {"q": (2, 5, 3, 2, 4), "k": (2, 7, 3, 4), "v": (2, 7, 3, 4)}
    given = {name: RNG.standard_normal(shape) for name, shape in shapes.items()}
    q, k, v = (b.input(name, "fp64", one.shape) for name, one in given.items())
    found = b.einsum(softmax(b, b.einsum(q, k, "bqhgd,bkhd->bhgqk")), v, "bhgqk,bkhd->bhqgd")
    b.output("y", b.transpose(b.transpose(found, [0, 2, 1, 3, 4]), [1, 0, 2, 3, 4]))
    return given


def rotated(b):
    """Queries and keys turned by halves, from one product for queries, keys and values."""
    given = {"x": RNG.standard_normal((1, 8, 6)).astype(np.float32)}
    x = b.input("x", "fp32", (1, 8, 6))
    weights = [b.constant(RNG.standard_normal((6, 8)).astype(np.float32), "fp32") for _ in range(3)]
    turns = [b.constant(RNG.standard_normal((8, 4)).astype(np.float32), "fp32") for _ in range(2)]
    q, k, v = (b.transpose(b.reshape(b.matmul(x, one), (1, 8, 2, 4)), [0, 2, 1, 3]) for one in weights)

    def turned(one):
        low, high = (b.slice(one, [0, 0, 0, start], [1, 2, 8, 2]) for start in (0, 2))
        return b.map("addf", b.map("mulf", one, turns[0]), b.map("mulf", b.concat([b.map("negf", high), low], 3), turns[1]))

    scores = b.matmul(turned(q), b.transpose(turned(k), [0, 1, 3, 2]))
    places = b.fused_map(lambda s: s("les", s.index(1), s.index(0)), shape=(8, 8))[0]
    b.output("y", b.matmul(softmax(b, b.map("select", places, scores, float("-inf"))), v))
    return given


def halves(b):
    """fp16 whose softmax is computed in fp32."""
    (q, k, v), given = tensors(b, 5, 9, kind="fp16")
    weights = softmax(b, b.cast(b.matmul(q, b.transpose(k, [0, 1, 3, 2])), "fp32"))
    b.output("y", b.matmul(b.cast(weights, "fp16"), v))
    return given


def one_query(b):
    return masked(b, 1, 9)


def long(b):
    return masked(b, 3, 150)


def long_causal(b):
    return causal(b, 140)


CASES = {
    "causal": (causal, 1), "masked": (masked, 1), "grouped": (grouped, 1), "rotated": (rotated, 2),
    "halves": (halves, 1), "one_query": (one_query, 1), "long": (long, 1), "long_causal": (long_causal, 1),
}


def check(make, most, target, tolerance):
    """The model is at most so many launches, within their bounds on a target, and gives what NumPy does."""
    b = ModuleBuilder()
    given = make(b)
    module = b.module()
    wanted = run(module, [one if one.dtype == bool else one.astype(np.float64) for one in given.values()])
    graph = kernel_graph(module)
    assert [call.label for call in graph.calls] == ["contract1"] * (most - 1) + ["attention1"]
    with Session(compile_graph(graph, target)) as session:
        certificate = certified(session, given)
    assert certificate.ok
    for due, found in zip(wanted, certificate.outputs.values(), strict=True):
        np.testing.assert_allclose(np.asarray(found, np.float64), due, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("case", CASES)
def test_attention_is_one_launch_within_its_bounds(case):
    check(*CASES[case], "cpu", 4e-3 if case == "halves" else 1e-5)


@pytest.mark.parametrize("case, target", [("rotated", "nvidia-sm80"), ("masked", "amd-cdna3")])
def test_chips_with_matrix_units_run_it(case, target):
    check(*CASES[case], target, 1e-5)


def test_a_group_means_what_its_ops_meant():
    for make, _ in (CASES["causal"], CASES["grouped"]):
        b = ModuleBuilder()
        given = [one.astype(np.float64) for one in make(b).values()]
        module = b.module()
        before = run(module, given)
        fuse_attention(module)
        module.verify()
        assert str(module).count('graph.fused "attention"') == 1
        np.testing.assert_array_equal(run(module, given)[0], before[0])


def test_scores_and_keys_that_others_read_are_stored():
    b = ModuleBuilder()
    (q, k, v), given = tensors(b, 4, 4)
    kept = b.map("negf", k)
    scores = b.matmul(q, b.transpose(kept, [0, 1, 3, 2]))
    b.output("y", b.matmul(softmax(b, scores), v))
    b.output("keys", kept)
    labels = [call.label for call in kernel_graph(b.module()).calls]
    assert sorted(labels) == ["attention1", "pointwise1"]
    b = ModuleBuilder()
    (q, k, v), given = tensors(b, 4, 4)
    scores = b.matmul(q, b.transpose(k, [0, 1, 3, 2]))
    assert shape_of(scores) == (2, 2, 4, 4)
    b.output("y", b.matmul(softmax(b, scores), v))
    b.output("scores", scores)
    assert len(kernel_graph(b.module()).calls) == 3 and given


def labels_of(b):
    return [call.label for call in kernel_graph(b.module()).calls]


def test_values_of_a_product_of_their_own_are_read_as_they_are():
    b = ModuleBuilder()
    x, places = (b.input(name, "fp32", (2, 9, 6)) for name in ("x", "places"))
    placed = b.map("addf", x, places)
    weights = (b.constant(RNG.standard_normal((6, 6)).astype(np.float32), "fp32") for _ in range(3))
    q, k, v = (b.matmul(one, w) for one, w in zip((placed, placed, x), weights, strict=True))
    b.output("y", b.matmul(softmax(b, b.matmul(q, b.transpose(k, [0, 2, 1]))), b.map("addf", v, 1.0)))
    assert labels_of(b)[-1] == "attention1"


def test_one_query_meets_keys_that_a_tensor_of_one_element_scales():
    b = ModuleBuilder()
    (q, k, v), _ = tensors(b, 1, 9)
    k = b.map("mulf", k, b.input("scale", "fp32", ()))
    b.output("y", b.matmul(softmax(b, b.matmul(q, b.transpose(k, [0, 1, 3, 2]))), v))
    assert labels_of(b) == ["attention1"]


def test_one_element_of_each_batch_is_no_tile():
    b = ModuleBuilder()
    (q, k, v), given = tensors(b, 1, 9)
    v = b.slice(v, [0, 0, 0, 0], [2, 2, 9, 1])
    b.output("y", b.matmul(softmax(b, b.matmul(q, b.transpose(k, [0, 1, 3, 2]))), v))
    module = b.module()
    (due,) = run(module, [one.astype(np.float64) for one in given.values()])
    with Session(compile_graph(kernel_graph(module), "reference")) as session:
        np.testing.assert_allclose(session.run(given)["y"], due, rtol=1e-5, atol=1e-5)


def test_a_product_of_a_part_of_a_row_is_not_that_of_a_softmax():
    b = ModuleBuilder()
    q, k, v = (b.input(name, "fp32", shape) for name, shape in (("q", (4, 6)), ("k", (6, 280)), ("v", (2, 140, 5))))
    part = linear_map([[0, 1, 0, 0], [140, 0, 0, 1]], [0, 0], 4)
    values = linear_map([[1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]], [0, 0, 0], 4)
    b.output("y", b.contract(softmax(b, b.matmul(q, k)), v, (part, values), [2, 4, 5, 140], 3))
    assert "attention1" not in labels_of(b)


def test_a_softmax_is_scaled_by_its_own_rows():
    b = ModuleBuilder()
    x = b.input("x", "fp32", (4, 4))
    held = b.map("exp", b.map("subf", x, b.reduce("maxf", x, [-1], keep=True)))
    inverse = b.map("divf", b.full(1.0, x), b.reduce("addf", held, [-1], keep=True))
    found = softmax_of(b.map("mulf", held, inverse))
    assert found is not None and found.axis == 1 and found.scores is x
    assert softmax_of(b.map("mulf", held, b.transpose(inverse, [1, 0]))) is None
