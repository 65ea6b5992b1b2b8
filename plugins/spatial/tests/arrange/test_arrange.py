"""Graphs arranged and evaluated operation by operation give what NumPy gives, however their axes fall along lanes and time."""

from __future__ import annotations

import numpy as np
import pytest
from bounded import applied, assert_within, combined, exactly
from bounded import softmax as expected_softmax
from graphs import access_map, apply, load, reduce
from stream_evaluator import StreamEvaluator

from tilefw_spatial.arrange import arrange
from tilefw_spatial.graph import Axis, Constant, Graph, ReductionKind, Store, Value
from tilefw_spatial.machine import load as load_machine
from tilefw_spatial.stream_program import LaneStreamOp


def run(graph: Graph, *buffers: np.ndarray) -> StreamEvaluator:
    return StreamEvaluator(arrange(graph, load_machine()), dict(enumerate(buffers)))


RNG = np.random.default_rng(1)


def draw(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize(("programs", "block"), [(1, 16), (5, 128), (40, 64)])
def test_an_elementwise_kernel_fills_the_lanes(programs: int, block: int) -> None:
    p, i = Axis("program", programs), Axis("i", block)
    x, y = (load("fp32", access_map(n, (p, block), (i, 1))) for n in range(2))
    graph = Graph([Store(apply("addf", "fp32", x, y), access_map(2, (p, block), (i, 1)))])
    a, b, out = draw(programs * block), draw(programs * block), np.zeros(programs * block, np.float32)
    found = run(graph, a, b, out)
    assert (out == a + b).all()
    assert found.points == -(-programs * block // 320)


def softmax(r: Axis, c: Axis, columns: int) -> Graph:
    x = load("fp32", access_map(0, (r, columns), (c, 1), extent={c: columns}), fill=0xFF800000)
    numerator = apply("exp", "fp32", apply("subf", "fp32", x, reduce(ReductionKind.MAXNUM, x, c)))
    result = apply("divf", "fp32", numerator, reduce(ReductionKind.ADDF, numerator, c))
    return Graph([Store(result, access_map(1, (r, columns), (c, 1), extent={c: columns}))])


@pytest.mark.parametrize(("rows", "columns"), [(1, 70), (7, 50), (400, 20), (33, 128)])
def test_softmax_reduces_in_time(rows: int, columns: int) -> None:
    graph = softmax(Axis("row", rows), Axis("column", 1 << (columns - 1).bit_length()), columns)
    x, out = draw(rows * columns), np.zeros(rows * columns, np.float32)
    run(graph, x, out)
    assert_within(out.reshape(rows, columns), expected_softmax(exactly(x.reshape(rows, columns))))


def test_values_of_several_domains_meet() -> None:
    r, c, rows, columns = Axis("row", 50), Axis("column", 64), 50, 64
    x = load("fp32", access_map(0, (r, columns), (c, 1)))
    weight, bias = load("fp32", access_map(1, (c, 1))), load("fp32", access_map(2, (c, 1)))
    size = Value(Constant(np.float32(columns)), (), "fp32")
    mean = apply("divf", "fp32", reduce(ReductionKind.ADDF, x, c), size)
    centred = apply("subf", "fp32", x, mean)
    variance = apply("divf", "fp32", reduce(ReductionKind.ADDF, apply("mulf", "fp32", centred, centred), c), size)
    deviation = apply("sqrt", "fp32", variance)
    y = apply("addf", "fp32", apply("mulf", "fp32", apply("divf", "fp32", centred, deviation), weight), bias)
    graph = Graph([Store(y, access_map(3, (r, columns), (c, 1))), Store(mean, access_map(4, (r, 1)))])
    xs, w, b = draw(rows, columns), draw(columns), draw(columns)
    out, means = np.zeros(rows * columns, np.float32), np.zeros(rows, np.float32)
    run(graph, xs.reshape(-1), w, b, out, means)
    wide, count = exactly(xs), exactly(np.full((1, 1), columns))
    average = applied("divf", "fp32", combined("addf", "fp32", wide), count)
    off = applied("subf", "fp32", wide, average)
    squares = applied("mulf", "fp32", off, off)
    deviations = applied("sqrt", "fp32", applied("divf", "fp32", combined("addf", "fp32", squares), count))
    scaled = applied("mulf", "fp32", applied("divf", "fp32", off, deviations), exactly(w[None]))
    assert_within(out.reshape(rows, columns), applied("addf", "fp32", scaled, exactly(b[None])))
    assert_within(means[:, None], average)


@pytest.mark.parametrize(("rows", "columns"), [(1, 4096), (3, 2000), (12, 1000)])
def test_few_long_rows_are_reduced_across_lanes(rows: int, columns: int) -> None:
    graph = softmax(Axis("row", rows), Axis("column", 1 << (columns - 1).bit_length()), columns)
    x, out = draw(rows * columns), np.zeros(rows * columns, np.float32)
    stream_program = arrange(graph, load_machine())
    found = StreamEvaluator(stream_program, {0: x, 1: out})
    assert_within(out.reshape(rows, columns), expected_softmax(exactly(x.reshape(rows, columns))))
    assert any(isinstance(stream_op, LaneStreamOp) for stream_op in stream_program.stream_ops)
    assert found.points < columns
