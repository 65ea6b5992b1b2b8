"""Products of one tensor by several constants become one, with their biases; what reads them reads slices and means the same."""

from __future__ import annotations

import numpy as np
import pytest

from tilefw.graph.builder import ModuleBuilder
from tilefw.graph.certificate import certified
from tilefw.graph.compile_graph import compile_graph
from tilefw.graph.dialect.combining_ops import ContractOp
from tilefw.graph.dialect.grouping_ops import FusedOp
from tilefw.graph.emit.model import kernel_graph
from tilefw.graph.fuse.contract import fuse_contractions
from tilefw.graph.fuse.siblings import merge_siblings
from tilefw.graph.meaning import model_function, run
from tilefw.graph.session import Session

RNG = np.random.default_rng(5)


def attention_scores(turned, biased, widths=(8, 8, 12)):
    """Scores of two heads from queries and keys, and a third product beside them; weights stand as (out, in) where `turned`."""
    rng, b = np.random.default_rng(1), ModuleBuilder()
    x = b.input("x", "fp64", (2, 5, 6))
    made = []
    for width in widths:
        w = b.constant(rng.standard_normal((width, 6) if turned else (6, width)), "fp64")
        y = b.matmul(x, b.transpose(w, [1, 0]) if turned else w)
        made.append(b.map("addf", y, b.constant(rng.standard_normal(width), "fp64")) if biased else y)
    q, k = (b.transpose(b.reshape(one, (2, 5, 2, 4)), [0, 2, 1, 3]) for one in made[:2])
    b.output("scores", b.matmul(q, b.transpose(k, [0, 1, 3, 2])))
    b.output("third", made[2])
    return b.module()


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_three_products_of_one_tensor_are_one(turned, biased):
    module, given = attention_scores(turned, biased), [RNG.standard_normal((2, 5, 6))]
    wanted = run(module, given)
    merge_siblings(module)
    module.verify()
    assert next(op.extents for op in model_function(module).body.block.ops if isinstance(op, ContractOp)) == (2, 5, 28, 6)
    fuse_contractions(module)
    module.verify()
    for one, other in zip(run(module, given), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)
    groups = [op for op in model_function(module).body.block.ops if isinstance(op, FusedOp)]
    assert len(groups) == 2
    assert len(groups[1].operands) == 1, "the scores read queries and keys where the merged product lies"


def test_they_are_one_launch_within_its_bounds():
    graph = kernel_graph(attention_scores(turned=True, biased=True))
    assert len(graph.calls) == 3, "the merged product, the scores, and the slice that is an output"
    with Session(compile_graph(graph, "reference")) as session:
        assert certified(session, {"x": RNG.standard_normal((2, 5, 6))}).ok


def gated(stored):
    """A gate with a bias, and what it lets through; the gate is an output too where it is `stored`."""
    rng, b = np.random.default_rng(3), ModuleBuilder()
    x = b.input("x", "fp64", (2, 5, 6))
    gate, through = (b.matmul(x, b.constant(rng.standard_normal((6, 20)), "fp64")) for _ in range(2))
    gate = b.map("addf", gate, b.constant(rng.standard_normal(20), "fp64"))
    gate = b.map("divf", gate, b.map("addf", b.map("exp", b.map("negf", gate)), 1.0))
    b.output("y", b.map("mulf", gate, through))
    if stored:
        b.output("gate", gate)
    return b.module()


@pytest.mark.parametrize("stored", [False, True])
def test_a_gate_and_what_it_lets_through_are_one_launch_unless_others_read_one(stored):
    module, given = gated(stored), RNG.standard_normal((2, 5, 6))
    wanted = run(module, [given])
    graph = kernel_graph(module)
    for one, other in zip(run(module, [given]), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)
    assert (len(graph.calls) == 1) != stored
    with Session(compile_graph(graph, "reference")) as session:
        certificate = certified(session, {"x": given})
    assert certificate.ok
    for due, found in zip(wanted, certificate.outputs.values(), strict=True):
        np.testing.assert_allclose(found, due, rtol=1e-12)


def test_products_of_other_tensors_or_other_sizes_stay_apart():
    b = ModuleBuilder()
    x, y = (b.input(name, "fp64", (4, 6)) for name in "xy")
    weights = [b.constant(RNG.standard_normal((6, 3)), "fp64") for _ in range(3)]
    b.output("a", b.matmul(x, weights[0]))
    b.output("b", b.matmul(y, weights[1]))
    b.output("c", b.map("addf", b.matmul(x, weights[2]), b.constant(RNG.standard_normal(3), "fp64")))
    module = b.module()
    before = str(module)
    merge_siblings(module)
    assert str(module) == before
