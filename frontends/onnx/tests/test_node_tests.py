"""What only whole models have, from convolutions and pools to scatters and selection, against onnx's evaluator and node tests."""

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
    ("MaxPool", {"kernel_shape": [2, 2], "pads": [1, 0, 0, 1], "strides": [2, 1]}, [(2, 2, 5, 4)]),
    ("ConvTranspose", {"pads": [1, 0, 1, 2], "strides": [2, 3], "dilations": [1, 2]}, [(2, 4, 5, 3), (4, 3, 3, 2)]),
    ("ConvTranspose", {"auto_pad": "SAME_UPPER", "strides": [2, 2]}, [(1, 3, 3, 4), (3, 2, 3, 3), (2,)]),
    ("SpaceToDepth", {"blocksize": 2}, [(2, 3, 4, 6)]), ("DepthToSpace", {"blocksize": 2, "mode": "CRD"}, [(2, 8, 2, 3)]),
    ("AveragePool", {"kernel_shape": [1, 1], "count_include_pad": 1}, [(1, 2, 3, 4)]),
    ("GlobalAveragePool", {}, [(2, 3, 5, 4)]), ("GlobalMaxPool", {}, [(2, 3, 5, 4)]),
]
GATHERED = [
    ("GatherElements", {"axis": -2}, (3, 4, 5), np.random.default_rng(0).integers(-4, 4, (3, 2, 5))),
    ("GatherND", {"batch_dims": 1}, (2, 3, 4, 5), np.random.default_rng(1).integers(-3, 3, (2, 6, 2))),
]
# Operator, attributes, shape of the first input, the inputs behind it: those that are constants of the model, then those of a run.
DESCRIBED = [
    ("Pad", {}, (3, 4, 5), [np.array([1, 0, 0, 2, 3, 1]), np.float32(7)], []),
    ("Pad", {"mode": "reflect"}, (3, 4, 5), [np.array([2, 0, 1, 3]), None, np.array([-1, 1])], []),
    ("Resize", {"mode": "cubic", "antialias": 1}, (1, 2, 6, 7), [None, None, np.array([1, 2, 4, 12])], []),
    ("Resize", {"mode": "linear", "exclude_outside": 1, "axes": [3, 2]}, (1, 2, 5, 4),
     [None, np.array([1.6, 0.6], np.float32)], []),
    ("Resize", {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}, (2, 3, 5),
     [None, np.array([1, 2, 1.5], np.float32)], []),
    ("TopK", {"axis": 1, "largest": 0}, (3, 7, 2), [np.array([4])], []),
    ("ArgMax", {"axis": -2, "keepdims": 0}, (3, 7, 2), [], []), ("ArgMin", {"select_last_index": 1}, (5, 3), [], []),
    ("Trilu", {"upper": 0}, (2, 5, 4), [], [np.array(1)]),
    ("ScatterElements", {"axis": 1, "reduction": "add"}, (3, 5), [],
     [np.array([[0, -1, 0], [2, 2, 4]]), np.ones((2, 3), np.float32)]),
    ("ScatterND", {}, (4, 3, 2), [], [np.array([[1, -1], [3, 0], [1, 2]]), np.arange(6, dtype=np.float32).reshape(3, 2)]),
    ("OneHot", {"axis": 1}, (2, 4), [np.array(5)], [np.array([-1, 3], np.float32)]),
    ("Split", {"axis": 1, "num_outputs": 3}, (2, 8), [], []), ("Split", {"axis": 1}, (2, 8), [np.array([0, 3, 5])], []),
    ("Concat", {"axis": 1}, (2, 3), [np.zeros((2, 0), np.float32), np.ones((2, 4), np.float32)], []),
]


@pytest.mark.parametrize("operator, attributes, shapes", SAMPLE)
def test_a_window_has_the_values_of_onnxs_evaluator(operator, attributes, shapes):
    rng = np.random.default_rng(2)
    _agrees(operator, attributes, [rng.standard_normal(shape).astype(np.float32) for shape in shapes])


@pytest.mark.parametrize("operator, attributes, shape, indices", GATHERED)
def test_a_gather_has_the_values_of_onnxs_evaluator(operator, attributes, shape, indices):
    data = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    _agrees(operator, attributes, [data, indices])


@pytest.mark.parametrize("operator, attributes, shape, constants, given", DESCRIBED)
def test_what_constants_describe_has_the_values_of_onnxs_evaluator(operator, attributes, shape, constants, given):
    """Small whole numbers: there are equal ones to choose from, and negative indices."""
    data = np.random.default_rng(4).integers(-3, 4, shape).astype(np.float32)
    outputs = {"TopK": ["v", "w"], "Split": ["v", "", "w"]}.get(operator, ["v"])  # an output may be left out
    _agrees(operator, attributes, [data, *given], constants, outputs)


@pytest.mark.parametrize("largest", [0, 1])
def test_the_largest_have_nan_above_all_and_no_place_twice(largest):
    data = np.array([[np.nan, 1, -np.inf, np.nan], [np.inf, 2, np.nan, 2], [-np.inf, -np.inf, 0, -np.inf]], np.float32)
    _agrees("TopK", {"largest": largest}, [data], [np.array([4])], ["v", "w"])


def test_products_beside_a_bias_that_is_far_larger_are_within_the_bounds():
    """A compiler that adds them to it one by one loses of each what the bias has no place for."""
    rng = np.random.default_rng(6)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((16, 64), (64, 16)))
    _agrees("Gemm", {}, [a, b, np.full(16, 1e6, np.float32)], target="cpu-native")


def test_constants_that_are_gathered_by_fewer_indices_than_there_are_elements():
    weights = [numpy_helper.from_array(np.arange(12, dtype=np.float32).reshape(3, 4), "w"),
               numpy_helper.from_array(np.array([[3, -4]]), "i")]
    nodes = [helper.make_node("GatherElements", ["w", "i"], ["g"], axis=1), helper.make_node("Add", ["x", "g"], ["y"])]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2]) for name in "xy")
    model = helper.make_model(helper.make_graph(nodes, "g", [x], [y], weights), opset_imports=[helper.make_opsetid("", 20)])
    with Session(compile_graph(graph_of(model, "m"), "reference")) as session:
        assert session.run({"x": np.zeros((1, 2), np.float32)})["y"].tolist() == [[3, 0]]


def test_two_branches_have_the_same_names_for_a_constant_and_for_a_value_of_the_run():
    def chosen(source: str, out: str, operator: str, given: list[str]):
        nodes = [helper.make_node(operator, given, ["t"], **({"value": half} if operator == "Constant" else {})),
                 helper.make_node("Div", ["t", source], ["o"])]
        branch = helper.make_graph(nodes, "b", [], [helper.make_tensor_value_info("o", TensorProto.FLOAT, [2])])
        return helper.make_node("If", ["which"], [out], then_branch=branch, else_branch=branch)

    half = numpy_helper.from_array(np.array([0.5, 0.5], np.float32))
    nodes = [chosen("x", "a", "Constant", []), chosen("a", "y", "Neg", ["a"])]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    weights = [numpy_helper.from_array(np.array(True), "which")]
    model = helper.make_model(helper.make_graph(nodes, "g", [x], [y], weights), opset_imports=[helper.make_opsetid("", 20)])
    with Session(compile_graph(graph_of(model, "m"), "reference")) as session:
        assert session.run({"x": np.array([2, 4], np.float32)})["y"].tolist() == [-1, -1]


def test_a_branch_that_a_constant_chooses_is_part_of_the_model():
    branches = {}
    for name, operator in (("then_branch", "Neg"), ("else_branch", "Abs")):
        made = helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
        branches[name] = helper.make_graph([helper.make_node(operator, ["x"], [name])], name, [], [made])
    node = helper.make_node("If", ["which"], ["y"], **branches)
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])
    for which in (True, False):
        graph = helper.make_graph([node], "g", [given], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
                                  [numpy_helper.from_array(np.array(which), "which")])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
        with Session(compile_graph(graph_of(model, "m"), "reference")) as session:
            found = session.run({"x": np.array([-1, 2, -3, 4], np.float32)})["y"]
        assert found.tolist() == ([1, -2, 3, -4] if which else [1, 2, 3, 4])


def test_a_convolution_of_more_than_65535_groups_runs():
    """The second and the third axis of a grid end there on NVIDIA's chips."""
    rng = np.random.default_rng(5)
    _agrees("Conv", {"group": 70000}, [rng.standard_normal((1, 70000, 2)).astype(np.float32), np.ones((70000, 1, 2), np.float32)])


def _agrees(operator, attributes, arrays, constants=(), outputs=("out",), target="reference"):
    names = {f"x{number}": array for number, array in enumerate(arrays)}
    weights = {f"w{number}": array for number, array in enumerate(constants) if array is not None}
    first, *others = names
    inputs = [first, *("" if array is None else f"w{number}" for number, array in enumerate(constants)), *others]
    if operator == "OneHot":  # indices, depth, values
        names[first] = arrays[0].astype(np.int64)
    told = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in names.items()]
    node = helper.make_node(operator, inputs, list(outputs), **attributes)
    given = [name for name in outputs if name]
    made = [helper.make_tensor_value_info(name, _element(operator, name), None) for name in given]
    graph = helper.make_graph([node], "g", told, made, [numpy_helper.from_array(np.asarray(a), n) for n, a in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    due = ReferenceEvaluator(model).run(None, names)
    with Session(compile_graph(graph_of(model, operator), target)) as session:
        certificate = certified(session, names)
    assert certificate.ok
    for name, expected in zip(given, due, strict=True):
        found = certificate.outputs[name]
        near = np.allclose(found, expected, rtol=2e-6, atol=2e-6, equal_nan=True)
        assert found.shape == expected.shape and near, (name, found, expected)


def _element(operator, name):
    return TensorProto.INT64 if operator in ("ArgMax", "ArgMin") or (operator == "TopK" and name == "w") else TensorProto.FLOAT


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
