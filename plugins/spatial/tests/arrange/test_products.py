"""Products of matrices arranged and evaluated operation by operation: sums, sides, tails of every axis, epilogues, attention."""

from __future__ import annotations

from functools import partial

import ml_dtypes
import numpy as np
import pytest
from bounded import applied, assert_within, combined, exactly, product
from graphs import access_map, apply, load, reduce
from stream_evaluator import StreamEvaluator

from tilefw.api import UnsupportedError
from tilefw_spatial.arrange import arrange
from tilefw_spatial.arrange.arranger import Arranger
from tilefw_spatial.arrange.item import Items
from tilefw_spatial.arrange.lanes import LaneProduct
from tilefw_spatial.arrange.normal import normal
from tilefw_spatial.chain import chain
from tilefw_spatial.graph import Axis, Constant, Dot, Graph, ReductionKind, Store, Value
from tilefw_spatial.machine import load as load_machine
from tilefw_spatial.stream_program import MatrixStreamOp, StreamProgram

NUMPY = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16, "fp8e4nv": ml_dtypes.float8_e4m3fn, "int8": np.int8, "fp32": np.float32}
RNG = np.random.default_rng(2)


def draw(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    if dtype == "int8":
        return RNG.integers(-128, 128, shape).astype(np.int8)
    return RNG.standard_normal(shape).astype(NUMPY[dtype])


def dot(a: Value, b: Value, *contracted: Axis, dtype: str = "fp32") -> Value:
    axes = tuple(dict.fromkeys(axis for axis in (*a.axes, *b.axes) if axis not in contracted))
    return Value(Dot(a, b, contracted), axes, dtype)


def matmul(m: Axis, n: Axis, k: tuple[Axis, ...], dtype: str, out: str) -> Graph:
    """Of k in blocks: the outer axis is a loop's."""
    depth = int(np.prod([axis.extent for axis in k]))
    inner = [(axis, int(np.prod([later.extent for later in k[place + 1 :]]))) for place, axis in enumerate(k)]
    a = load(dtype, access_map(0, (m, depth), *inner))
    b = load(dtype, access_map(1, *((axis, stride * n.extent) for axis, stride in inner), (n, 1)))
    bias = load("fp32", access_map(2, (n, 1)))
    total = dot(a, b, *k, dtype="int32" if dtype == "int8" else "fp32")
    if dtype == "int8":
        total = apply("s2f", "fp32", total)
    result = apply("addf", "fp32", total, bias)
    result = result if out == "fp32" else apply("castf", out, result)
    return Graph([Store(result, access_map(3, (m, n.extent), (n, 1)))])


def products(stream_program: StreamProgram) -> list[MatrixStreamOp]:
    return [stream_op for stream_op in stream_program.stream_ops if isinstance(stream_op, MatrixStreamOp)]


@pytest.mark.parametrize(("m", "n", "k", "dtype", "out"), [
    (5, 70, (3, 32), "fp16", "fp16"), (340, 33, (2, 100), "bf16", "fp32"), (64, 700, (17, 20), "fp8e4nv", "fp32"),
    (100, 90, (25, 17), "int8", "fp32"), (1, 1, (1, 1), "fp16", "fp32"),
])
def test_products_of_any_shape(m: int, n: int, k: tuple[int, int], dtype: str, out: str) -> None:
    graph = matmul(Axis("m", m), Axis("n", n), (Axis("step", k[0]), Axis("k", k[1])), dtype, out)
    a, b, bias = draw((m, k[0] * k[1]), dtype), draw((k[0] * k[1], n), dtype), draw((n,), "fp32")
    found = np.zeros(m * n, NUMPY[out])
    StreamEvaluator(arrange(graph, load_machine()), dict(enumerate((a.reshape(-1), b.reshape(-1), bias, found))))
    total = product(exactly(a), exactly(b), "int32" if dtype == "int8" else "fp32")
    total = applied("s2f", "fp32", total, of="int32") if dtype == "int8" else total
    expected = applied("addf", "fp32", total, exactly(bias[None]))
    assert_within(found.reshape(m, n), expected if out == "fp32" else applied("castf", out, expected, of="fp32"))


def test_the_cheaper_side_is_the_weights_and_both_sides_work_alike() -> None:
    """The published sweep's first point: 8 tiles of weights made of the left operand beat 5 made of the right one."""
    graph = matmul(Axis("m", 2304), Axis("n", 1376), (Axis("step", 128), Axis("k", 32)), "fp16", "fp16")
    stream_ops = products(arrange(graph, load_machine()))
    busy = {
        side: sum(stream_op.rows * len(stream_op.products) for stream_op in stream_ops if stream_op.side == side)
        for side in ("W", "E")
    }
    assert busy == {"W": 4 * 26 * 1376, "E": 4 * 26 * 1376}


def test_an_odd_tile_is_split_over_both_sides() -> None:
    graph = matmul(Axis("m", 1000), Axis("n", 300), (Axis("k", 640),), "fp16", "fp16")
    stream_ops = products(arrange(graph, load_machine()))
    assert [(stream_op.side, len(stream_op.products)) for stream_op in stream_ops] == [("W", 2), ("E", 2)]


def test_a_batch_has_weights_of_its_own() -> None:
    z, m, n, k = Axis("z", 3), Axis("m", 20), Axis("n", 40), Axis("k", 50)
    a, b = load("fp16", access_map(0, (z, 1000), (m, 50), (k, 1))), load("fp16", access_map(1, (z, 2000), (k, 40), (n, 1)))
    graph = Graph([Store(dot(a, b, k), access_map(2, (z, 800), (m, 40), (n, 1)))])
    x, y, out = draw((3, 20, 50), "fp16"), draw((3, 50, 40), "fp16"), np.zeros(2400, np.float32)
    StreamEvaluator(arrange(graph, load_machine()), {0: x.reshape(-1), 1: y.reshape(-1), 2: out})
    assert_within(out.reshape(3, 20, 40), product(exactly(x), exactly(y)))


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_attention_has_its_queries_along_lanes(dtype: str) -> None:
    heads, queries, keys, size = 2, 40, 48, 32
    h, q, k, d, e = Axis("h", heads), Axis("q", queries), Axis("k", keys), Axis("d", size), Axis("e", size)
    query = load(dtype, access_map(0, (h, queries * size), (q, size), (d, 1)))
    key = load(dtype, access_map(1, (h, keys * size), (k, size), (d, 1)))
    value = load(dtype, access_map(2, (h, keys * size), (k, size), (e, 1)))
    scale = Value(Constant(np.float32(size**-0.5)), (), "fp32")
    scores = apply("mulf", "fp32", dot(query, key, d), scale)
    weights = apply("exp", "fp32", apply("subf", "fp32", scores, reduce(ReductionKind.MAXNUM, scores, k)))
    mixed = dot(apply("castf", dtype, weights), value, k)
    result = apply("divf", "fp32", mixed, reduce(ReductionKind.ADDF, weights, k))
    graph = Graph([Store(result, access_map(3, (h, queries * size), (q, size), (e, 1)))])
    qs, ks, vs = (draw((heads, length, size), dtype) for length in (queries, keys, keys))
    out = np.zeros(heads * queries * size, np.float32)
    stream_program = arrange(graph, load_machine())
    StreamEvaluator(stream_program, {0: qs.reshape(-1), 1: ks.reshape(-1), 2: vs.reshape(-1), 3: out})
    factor = exactly(np.full((1, 1, 1), size**-0.5, np.float32))
    scaled = applied("mulf", "fp32", product(exactly(qs), exactly(ks.swapaxes(1, 2))), factor)
    powers = applied("exp", "fp32", applied("subf", "fp32", scaled, combined("maxf", "fp32", scaled)))
    above = product(applied("castf", dtype, powers, of="fp32"), exactly(vs))
    expected = applied("divf", "fp32", above, combined("addf", "fp32", powers))
    assert_within(out.reshape(heads, queries, size), expected)
    assert len(products(stream_program)) <= 4 * heads


def test_weights_that_do_not_depend_on_a_contracted_axis() -> None:
    m, n, k = Axis("m", 10), Axis("n", 20), Axis("k", 24)
    a, b = load("fp16", access_map(0, (m, 24), (k, 1))), load("fp32", access_map(1, (n, 1)))
    alike = apply("castf", "fp16", apply("exp", "fp32", apply("addf", "fp32", b, b)))
    graph = Graph([Store(dot(a, alike, k), access_map(2, (m, 20), (n, 1)))])
    x, y, out = draw((10, 24), "fp16"), draw((20,), "fp32"), np.zeros(200, np.float32)
    StreamEvaluator(arrange(graph, load_machine()), {0: x.reshape(-1), 1: y, 2: out})
    once = exactly(np.broadcast_to(y, (24, 20)))
    column = applied("castf", "fp16", applied("exp", "fp32", applied("addf", "fp32", once, once)), of="fp32")
    assert_within(out.reshape(10, 20), product(exactly(x), column))


def test_one_computed_tile_in_two_orders_is_refused() -> None:
    z, m, n, k = Axis("z", 3), Axis("m", 20), Axis("n", 400), Axis("k", 20)
    x = load("fp32", access_map(0, (z, 8000), (k, 400), (n, 1)))
    tile = apply("castf", "fp16", apply("exp", "fp32", apply("mulf", "fp32", x, apply("exp", "fp32", x))))
    a, b = load("fp16", access_map(1, (m, 20), (k, 1))), load("fp16", access_map(2, (m, 60), (z, 20), (k, 1)))
    stores = [Store(dot(a, tile, k), access_map(3, (z, 8000), (m, 400), (n, 1))),
              Store(dot(b, tile, z, k), access_map(4, (m, 400), (n, 1)))]
    targets, items = normal(Graph(stores)), Items(load_machine())
    roots = [items.item(target.value, LaneProduct((n,), load_machine().lanes)) for target in targets]
    with pytest.raises(UnsupportedError) as caught:
        Arranger(load_machine(), partial(chain, machine=load_machine()), targets, roots)
    assert caught.value.code == "TFW0670"
