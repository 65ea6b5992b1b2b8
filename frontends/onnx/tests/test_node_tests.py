"""What only whole models have: convolutions, pools, gathers by elements and by tuples, against onnx's evaluator and node tests."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

pytest.importorskip("tilefw_onnx", reason="tilefw-onnx is not installed")

from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.reference import ReferenceEvaluator

from tilefw.graph.certificate import certified
from tilefw.graph.compile_graph import compile_graph
from tilefw.graph.session import Session
from tilefw_onnx.lowerings import gathers, windows
from tilefw_onnx.reader import graph_of

OPERATORS = {*windows.LOWERINGS, *gathers.LOWERINGS}
# Operator, attributes, shapes of the inputs: the corners of each.
SAMPLE = [
    ("Conv", {"pads": [1, 0, 1, 2], "strides": [2, 1], "dilations": [1, 2], "group": 2}, [(2, 4, 7, 6), (6, 2, 3, 2), (6,)]),
    ("Conv", {"auto_pad": "SAME_LOWER", "strides": [2, 2]}, [(1, 3, 5, 6), (4, 3, 3, 2)]),
    ("Conv", {"pads": [2, 2]}, [(2, 3, 9), (5, 3, 4)]),
    ("MaxPool", {"kernel_shape": [2, 3, 2], "dilations": [2, 1, 1], "pads": [0, 1, 0, 0, 1, 1]}, [(1, 2, 5, 4, 5)]),
    ("AveragePool", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "count_include_pad": 1}, [(1, 2, 6, 7)]),
    ("AveragePool", {"kernel_shape": [3, 2], "strides": [2, 2], "ceil_mode": 1, "pads": [1, 0, 1, 0]}, [(1, 2, 6, 7)]),
    ("GlobalAveragePool", {}, [(2, 3, 5, 4)]), ("GlobalMaxPool", {}, [(2, 3, 5, 4)]),
]
GATHERED = [
    ("GatherElements", {"axis": -2}, (3, 4, 5), np.random.default_rng(0).integers(-4, 4, (3, 2, 5))),
    ("GatherND", {"batch_dims": 1}, (2, 3, 4, 5), np.random.default_rng(1).integers(-3, 3, (2, 6, 2))),
]


@pytest.mark.parametrize("operator, attributes, shapes", SAMPLE)
def test_a_window_has_the_values_of_onnxs_evaluator(operator, attributes, shapes):
    rng = np.random.default_rng(2)
    _agrees(operator, attributes, [rng.standard_normal(shape).astype(np.float32) for shape in shapes])


@pytest.mark.parametrize("operator, attributes, shape, indices", GATHERED)
def test_a_gather_has_the_values_of_onnxs_evaluator(operator, attributes, shape, indices):
    data = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    _agrees(operator, attributes, [data, indices])


def _agrees(operator, attributes, arrays):
    names = "xyz"[: len(arrays)]
    kinds = [helper.np_dtype_to_tensor_dtype(array.dtype) for array in arrays]
    inputs = [helper.make_tensor_value_info(n, k, a.shape) for n, k, a in zip(names, kinds, arrays, strict=True)]
    node = helper.make_node(operator, list(names), ["out"], **attributes)
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("out", TensorProto.FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    given = dict(zip(names, arrays, strict=True))
    (due,) = ReferenceEvaluator(model).run(None, given)
    with Session(compile_graph(graph_of(model, operator), "reference")) as session:
        certificate = certified(session, given)
    (found,) = certificate.outputs.values()
    assert certificate.ok and found.shape == due.shape
    assert np.allclose(found, due, rtol=2e-6, atol=2e-6)


@pytest.mark.campaign
def test_every_node_test_of_onnx_has_the_values_that_it_says():
    """Making ONNX's data takes as long as many tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tests = load_model_tests(kind="node")
    taken = [t for t in tests if len(t.model.graph.node) == 1 and t.model.graph.node[0].op_type in OPERATORS]
    cases = [t for t in taken if len(t.model.graph.output) == 1]  # the others also ask for indices
    assert len(cases) == 53 and [case.name for case in cases if not _right(case)] == []


def _right(case):
    """Whether the launch is within its bounds, and the result what ONNX says. One case has results of rounded data."""
    ((inputs, outputs),) = case.data_sets
    arrays = [numpy_helper.to_array(one) if hasattr(one, "data_type") else np.asarray(one) for one in inputs]
    due = numpy_helper.to_array(outputs[0]) if hasattr(outputs[0], "data_type") else np.asarray(outputs[0])
    given = dict(zip([info.name for info in case.model.graph.input], arrays, strict=True))
    with Session(compile_graph(graph_of(case.model, case.name), "reference")) as session:
        certificate = certified(session, given)
    (found,) = certificate.outputs.values()
    allowed = 1e-4 if "starts_on_pad" in case.name else 2e-6
    near = np.allclose(found.astype(np.float64), due.astype(np.float64), rtol=2e-6, atol=allowed, equal_nan=True)
    return certificate.ok and found.shape == due.shape and near
