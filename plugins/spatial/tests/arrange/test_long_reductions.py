"""Reductions longer than one instruction can combine are right, in the kernel's own order where they have one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from graphs import access_map, apply, load, reduce
from stream_evaluator import StreamEvaluator

from tilefw_spatial.arrange import arrange
from tilefw_spatial.arrange.long_reductions import LONGEST
from tilefw_spatial.graph import Axis, Constant, Graph, Reduce, ReductionKind, Store, Value
from tilefw_spatial.machine import load as load_machine
from tilefw_spatial.stream_program import VectorStreamOp

RNG = np.random.default_rng(1)


def run(graph: Graph, *buffers: np.ndarray) -> None:
    """The graph's stores, as stream operations that hardware can run; into `buffers`."""
    stream_program = arrange(graph, load_machine())
    stream_ops = [stream_op for stream_op in stream_program.stream_ops if isinstance(stream_op, VectorStreamOp)]
    assert all(step.every <= LONGEST for stream_op in stream_ops for step in stream_op.steps)
    StreamEvaluator(stream_program, dict(enumerate(buffers)))


@pytest.mark.parametrize("rows", [LONGEST, LONGEST + 1, 10_007])
def test_a_long_column_is_summed(rows: int) -> None:
    r, c = Axis("row", rows), Axis("column", 40)
    x = load("int32", access_map(0, (r, 40), (c, 1)))
    data, out = RNG.integers(-999, 999, (rows, 40), np.int32), np.zeros(40, np.int32)
    run(Graph([Store(reduce(ReductionKind.ADDI, apply("muli", "int32", x, x), r), access_map(1, (c, 1)))]), data.reshape(-1), out)
    assert (out == (data * data).sum(axis=0, dtype=np.int32)).all()


def test_order_and_start_are_kept() -> None:
    rows = 5000
    r, c = Axis("row", rows), Axis("column", 33)
    x = load("fp32", access_map(0, (r, 33), (c, 1)))
    start = Value(Constant(np.float32(3.5)), (), "fp32")
    summed = replace_op(reduce(ReductionKind.ADDF, x, r), r, start)
    data, out = RNG.standard_normal((rows, 33)).astype(np.float32), np.zeros(33, np.float32)
    run(Graph([Store(summed, access_map(1, (c, 1)))]), data.reshape(-1), out)
    expected = np.full(33, 3.5, np.float32)
    for row in data:
        expected = expected + row
    assert (out == expected).all()


def replace_op(value: Value, ordered: Axis, initial: Value) -> Value:
    assert isinstance(value.op, Reduce)
    return Value(replace(value.op, ordered=ordered, initial=initial), value.axes, value.dtype)


def test_two_axes_are_longer_than_each() -> None:
    a, b, c = Axis("a", 90), Axis("b", 70), Axis("c", 50)
    x = load("fp32", access_map(0, (a, 3500), (b, 50), (c, 1)))
    data, out = RNG.standard_normal((90, 70, 50)).astype(np.float32), np.zeros(50, np.float32)
    run(Graph([Store(reduce(ReductionKind.MAXF, x, a, b), access_map(1, (c, 1)))]), data.reshape(-1), out)
    assert (out == data.max(axis=(0, 1))).all()
