"""Stores with masks that depend on data and stores that accumulate, arranged: what stood there before counts."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import access_map, apply, load
from stream_evaluator import StreamEvaluator

from tilefw_spatial.arrange import arrange
from tilefw_spatial.graph import AccessMap, Along, Axis, Constant, Graph, Store, Value
from tilefw_spatial.machine import load as load_machine

RNG = np.random.default_rng(3)


def masked(x: Value) -> Value:
    return apply("gtf", "int1", x, Value(Constant(np.float32(0)), (), "fp32"))


def test_a_masked_store_leaves_the_rest_as_it_was() -> None:
    i = Axis("i", 500)
    x = load("fp32", access_map(0, (i, 1)))
    graph = Graph([Store(x, access_map(1, (i, 1)), masked(x))])
    a, out = RNG.standard_normal(500).astype(np.float32), np.full(500, 7, np.float32)
    StreamEvaluator(arrange(graph, load_machine()), {0: a, 1: out})
    assert (out == np.where(a > 0, a, 7)).all()


def test_a_later_store_finds_what_an_earlier_one_left() -> None:
    i, j = Axis("i", 60), Axis("j", 20)
    first = Store(load("fp32", access_map(0, (i, 1))), access_map(1, (i, 1)))
    x = load("fp32", access_map(2, (j, 1)))
    graph = Graph([first, Store(x, access_map(1, (j, 2)), masked(x))])
    a, out, b = (RNG.standard_normal(n).astype(np.float32) for n in (60, 60, 20))
    StreamEvaluator(arrange(graph, load_machine()), {0: a, 1: out, 2: b})
    expected = a.copy()
    expected[:40:2] = np.where(b > 0, b, expected[:40:2])
    assert (out == expected).all()


@pytest.mark.parametrize("third", [1, 3])
def test_what_is_stored_twice_does_not_come_over_what_is_stored_between(third: int) -> None:
    i, j = Axis("i", 40), Axis("j", 30)
    x, y = load("int32", access_map(0, (i, 1))), load("int32", access_map(2, (j, 1)))
    x = apply("addi", "int32", x, x)
    again = access_map(third, (i, 1)) if third != 1 else AccessMap(1, 50, (Along(i, np.arange(40)),))
    graph = Graph([Store(x, access_map(1, (i, 1))), Store(y, access_map(1, (j, 2))), Store(x, again)])
    a, out, b, other = (RNG.integers(-50, 50, n).astype(np.int32) for n in (40, 90, 30, 40))
    expected, elsewhere = out.copy(), 2 * a if third == 3 else other.copy()
    expected[:40] = 2 * a
    expected[:60:2] = b
    if third == 1:
        expected[50:] = 2 * a
    StreamEvaluator(arrange(graph, load_machine()), {0: a, 1: out, 2: b, 3: other})
    assert (out == expected).all()
    assert (other == elsewhere).all()


@pytest.mark.parametrize("with_mask", [False, True])
@pytest.mark.parametrize(("row", "dtype", "combine"), [("addi", np.int32, np.add), ("maxs", np.int32, np.maximum),
                                                       ("xori", np.int32, np.bitwise_xor)])
def test_contributions_to_one_element_are_combined_first(row: str, dtype: type, combine: np.ufunc, with_mask: bool) -> None:
    p, i = Axis("program", 5), Axis("i", 8)
    x = load("int32", access_map(0, (p, 8), (i, 1)))
    mask = apply("gts", "int1", x, Value(Constant(np.int32(0)), (), "int32")) if with_mask else None
    graph = Graph([Store(x, access_map(1, (p, 3), (i, 1)), mask, accumulate=row)])
    a, out = RNG.integers(-50, 50, (5, 8)).astype(dtype), RNG.integers(-50, 50, 20).astype(dtype)
    expected = out.copy()
    at = np.arange(5)[:, None] * 3 + np.arange(8)
    taken = a > 0 if with_mask else np.ones_like(a, bool)
    combine.at(expected, at[taken], a[taken])
    StreamEvaluator(arrange(graph, load_machine()), {0: a.reshape(-1), 1: out})
    assert (out == expected).all()
