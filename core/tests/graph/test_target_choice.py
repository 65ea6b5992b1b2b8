"""A target's costs decide between ways to fuse: a backend with other costs gets other launches, which compute the same."""

from __future__ import annotations

import numpy as np
import pytest

from tilefw.api import CostRates, InternalError, LaunchWork, TargetInfo, UnsupportedError
from tilefw.graph.builder import ModuleBuilder
from tilefw.graph.compile_graph import compile_graph
from tilefw.graph.emit.model import kernel_graph
from tilefw.graph.fuse.groups import TwoGroups
from tilefw.graph.meaning import run
from tilefw.graph.session import Session
from tilefw.graph.target_choice import TargetChoice
from tilefw.runtime.plugins import loader
from tilefw.tile.reference.backend import ReferenceBackend

rng = np.random.default_rng(0)


class PricedBackend(ReferenceBackend):
    """The interpreter, with costs that a test says."""

    seen: list[LaunchWork] = []
    price = staticmethod(lambda launches: launches.work.launches)

    def launch_cost(self, launches):
        self.seen.append(launches.work)
        return self.price(launches)


@pytest.fixture
def priced(monkeypatch):
    """A target `priced-1`; gives the function that says its costs."""
    info = TargetInfo(
        "priced-1", "priced", "1", "costs of a test", f"{__name__}:PricedBackend", frozenset({"emit", "simulate"}),
        capabilities=frozenset({"*"}),
    )
    target = loader.Target(info, None)
    target._backend = PricedBackend(info)
    real = loader.Registry.find
    monkeypatch.setitem(loader.registry()._targets, info.name, target)
    monkeypatch.setattr(loader.Registry, "find", lambda self, name: target if name == info.name else real(self, name))
    monkeypatch.setattr(PricedBackend, "seen", [])
    return lambda price: monkeypatch.setattr(PricedBackend, "price", staticmethod(price))


def labels(write, target="priced-1", **inputs):
    """The launches that a target chooses for a model, whose outputs are NumPy's."""
    b = ModuleBuilder()
    b.output("y", write(b, *(b.input(name, "fp32", one.shape) for name, one in inputs.items())))
    module = b.module()
    (wanted,) = run(module, [one.astype(np.float64) for one in inputs.values()])
    graph = kernel_graph(module, choice=TargetChoice(target))
    with Session(compile_graph(graph, target)) as session:
        np.testing.assert_allclose(session.run(inputs)["y"], wanted, rtol=1e-5, atol=1e-5)
    return [call.label for call in graph.calls]


def array(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def attention(b, q, k, v):
    scores = b.matmul(q, b.transpose(k, [1, 0]))
    weights = b.map("exp", b.map("subf", scores, b.reduce("maxf", scores, [1], keep=True)))
    return b.matmul(b.map("divf", weights, b.reduce("addf", weights, [1], keep=True)), v)


def projections(b, x):
    """Three products of one tensor, read apart."""
    found = [b.matmul(x, b.constant(array(16, 16), "fp32")) for _ in range(3)]
    return b.reduce("addf", b.concat(found, 1), [0])


def gated(b, x):
    gate, up = (b.matmul(x, b.constant(array(16, 24), "fp32")) for _ in range(2))
    return b.map("mulf", b.map("maxf", gate, 0.0), up)


def spread_sine(b, x):
    """A sine of each row, which each of 64 columns reads."""
    return b.map("addf", b.map("sin", b.slice(x, [0, 0], [8, 1])), b.slice(x, [0, 1], [8, 64]))


def mean_of_windows(b, x):
    """Each channel's mean of what a convolution of it alone gives."""
    y = b.convolve(x, b.constant(array(6, 1, 3, 3), "fp32"), (1, 1), (1, 1), (1, 1), (1, 1), groups=6)
    return b.map("divf", b.reduce("addf", y, [2, 3]), 63.0)


@pytest.mark.parametrize("write, inputs, few, many", [
    (attention, {"q": (8, 16), "k": (8, 16), "v": (8, 16)}, 1, 3), (projections, {"x": (8, 16)}, 2, 4),
    (gated, {"x": (8, 16)}, 1, 2), (spread_sine, {"x": (8, 65)}, 1, 2),
    (mean_of_windows, {"x": (1, 6, 9, 7)}, 1, 2),
])
def test_a_backend_that_likes_launches_gets_more_of_them(priced, write, inputs, few, many):
    given = {name: array(*shape) for name, shape in inputs.items()}
    assert len(labels(write, **given)) == few
    priced(lambda launches: -launches.work.launches)
    assert len(labels(write, **given)) == many
    assert len(labels(write, "cpu", **given)) == few  # by the costs of a backend that says none


def test_work_is_counted_as_the_kernels_do_it(priced):
    labels(attention, q=array(8, 16), k=array(8, 16), v=array(8, 16))
    together, apart = PricedBackend.seen
    matrix = 4 * 8 * 16
    assert (together.launches, together.bytes_moved, together.multiply_adds) == (1, 4 * matrix, 2 * 8 * 8 * 16)
    scores = 4 * 8 * 8
    assert (apart.launches, apart.bytes_moved, apart.multiply_adds) == (3, 4 * matrix + 4 * scores, 2 * 8 * 8 * 16)
    PricedBackend.seen.clear()
    labels(spread_sine, x=array(8, 65))
    together, apart = PricedBackend.seen
    assert together.operations > 16 * 8 * 64 > 2 * apart.operations
    rates = CostRates(launch=0, operation=1)
    assert rates.cost(together) > rates.cost(apart)


def test_costs_may_be_those_of_compiled_code_and_of_layers_alike_are_asked_once(priced):
    artifacts = []

    def price(launches):
        made = launches.compiled()
        artifacts.append((launches.work.launches, len(made), {one.target for one in made}))
        return len(made)

    priced(price)
    labels(lambda b, q, k, v: attention(b, attention(b, q, k, v), k, v), q=array(8, 16), k=array(8, 16), v=array(8, 16))
    assert artifacts == [(1, 1, {"priced-1"}), (3, 3, {"priced-1"})]


def test_a_way_that_a_target_cannot_go_is_not_taken(priced):
    def price(launches):
        if launches.work.launches == 1:
            raise UnsupportedError("no room", code="TFW0610")
        return 0.0

    priced(price)
    assert len(labels(attention, q=array(8, 16), k=array(8, 16), v=array(8, 16))) == 3


def test_ways_of_one_class_that_differ_are_decided_apart(priced):
    b = ModuleBuilder()
    b.output("y", b.map("addf", *(b.map("sin", b.input(name, "fp32", (8, 8))) for name in "xz")))
    part, choice = b.module(), TargetChoice("priced-1")
    for first, asked in ((0, 2), (1, 2), (0, 0)):
        PricedBackend.seen.clear()
        choice.best(part.clone, (TwoGroups(first), TwoGroups(first)))
        assert len(PricedBackend.seen) == asked


@pytest.mark.parametrize("price", [lambda launches: float("nan"), lambda launches: 1 // 0])
def test_a_cost_that_is_none_is_the_backend_s_bug(priced, price):
    priced(price)
    with pytest.raises(InternalError, match="launch_cost of priced-1"):
        labels(attention, q=array(8, 16), k=array(8, 16), v=array(8, 16))
