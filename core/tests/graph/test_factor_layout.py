"""Constant factors of contractions are turned where that brings what is summed side by side, and mean what they meant."""

from __future__ import annotations

import numpy as np
import pytest

from tilefw.graph.builder import ModuleBuilder
from tilefw.graph.certificate import certified
from tilefw.graph.compile_graph import compile_graph
from tilefw.graph.dialect.pointwise_ops import GraphConstantOp
from tilefw.graph.emit.model import kernel_graph
from tilefw.graph.meaning import model_function, run
from tilefw.graph.normalise.factor_layout import lay_factors_out
from tilefw.graph.product_tiles import ProductExtents
from tilefw.graph.session import Session
from tilefw.tile import types


def convolution(filters, twice=False, image=(5, 6)):
    """A module whose filters are a constant; `twice` reads them a second time."""
    b = ModuleBuilder()
    w = b.constant(filters, "fp32")
    b.output("y", b.convolve(b.input("x", "fp32", (1, filters.shape[1], *image)), w, (1, 1), (1, 1), (1, 1), (1, 1), 1))
    if twice:
        b.output("w", b.map("negf", w))
    return b.module()


def filters(*shape):
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(("shape", "twice", "stored"), [
    ((6, 8, 3, 3), False, (6, 3, 3, 8)),  # eight channels are more than three taps
    ((6, 2, 3, 3), False, (6, 2, 3, 3)),
    ((6, 8, 1, 1), False, (6, 8, 1, 1)),
    ((6, 8, 3, 3), True, (6, 8, 3, 3)),
])
def test_the_longest_dim_of_the_sum_is_the_last_of_a_constant(shape, twice, stored):
    modules = [convolution(filters(*shape), twice) for _ in range(2)]
    lay_factors_out(modules[1])
    modules[1].verify()
    block = model_function(modules[1]).body.block
    (found,) = (types.shape_of(op.result.type) for op in block.ops if isinstance(op, GraphConstantOp) and len(op.value.data) > 4)
    assert found == stored
    x = np.random.default_rng(6).standard_normal((1, shape[1], 5, 6))
    wanted, given = (run(module, [x])[0] for module in modules)
    np.testing.assert_array_equal(given, wanted)


def test_a_target_says_how_large_its_tiles_of_products_are():
    extents = ProductExtents(2, 300, 100, 576)
    assert extents.grid(extents.tile({})) == (2 * 5 * 2, 1, 1)
    own = extents.tile({"product_rows": 300, "product_columns": 128, "product_depth": 128})
    assert (own.rows, own.columns, own.depth) == (256, 128, 128) and extents.grid(own) == (2 * 2 * 1, 1, 1)
    assert ProductExtents(1, 1, 1000, 2048).tile({"product_columns": 512}).columns == 64


def test_a_convolution_in_large_tiles_is_within_its_bounds():
    graph = kernel_graph(convolution(filters(130, 40, 3, 3), image=(9, 9)))
    with Session(compile_graph(graph, "cpu")) as session:
        certificate = certified(session, {"x": filters(1, 40, 9, 9)})
    assert certificate.ok and session.plan.steps[0].grid == (1, 1, 1) != graph.calls[0].grid
