"""Models whose nodes are fused run in few launches, each within its bounds, and give what onnx gives."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tilefw_onnx", reason="tilefw-onnx is not installed")

import small_models
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tilefw.api.errors import CheckError, CodeError, UnsupportedError
from tilefw.graph.certificate import certified
from tilefw.graph.compile_graph import compile_graph
from tilefw.graph.model_readers import read_graph
from tilefw.graph.session import Session
from tilefw_onnx.fused_reader import fused_graph_of

# The launches of each: those of the reader that fuses nothing are 23, 50, 15 and 15.
RUNS = [
    (small_models.encoder, "nvidia-sm80", 8), (small_models.decoder, "cpu", 7), (small_models.residual, "reference", 7),
    (small_models.depthwise, "cpu", 8),
]


@pytest.mark.parametrize("make, target, most", RUNS)
def test_a_fused_model_agrees_with_onnx_and_every_launch_with_the_reference(make, target, most):
    model, inputs = make()
    graph = fused_graph_of(model, "model")
    assert len(graph.calls) <= most
    with Session(compile_graph(graph, target)) as session:
        certificate = certified(session, inputs)
    assert certificate.ok, [(launch.label, launch.comparisons) for launch in certificate.launches if not launch.ok]
    ((_, found),) = certificate.outputs.items()
    (due,) = ReferenceEvaluator(model).run(None, inputs)
    assert np.abs(found - due).max() < 1e-5 * np.abs(due).max()


def test_launches_are_called_by_the_first_and_the_last_of_their_nodes_and_constants_by_their_names():
    graph = fused_graph_of(small_models.encoder()[0], "model")
    labels = [call.label for call in graph.calls]
    assert labels[:4] == [
        "/Gather_0 … /LayerNormalization_1 (2 nodes)", "/MatMul_5 … /MatMul_9 (3 nodes)",
        "/Transpose_11 … /Transpose_20 (10 nodes)", "/MatMul_22 … /Add_23 (2 nodes)",
    ]
    weights = {one.name for one in small_models.encoder()[0].graph.initializer}
    named = {buffer.name for buffer in graph.buffers if buffer.constant is not None}
    assert len(named & weights) >= 8 and len(named - weights) == 1  # the weights of the merged products


def test_a_file_is_read_fused_unless_it_is_asked_not_to(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(small_models.residual()[0].SerializeToString())
    assert len(read_graph(path).calls) == 7 and len(read_graph(path, fuse=False).calls) == 15


def test_outputs_keep_their_element_types_and_nodes_without_a_rule_their_kernels():
    given = helper.make_tensor_value_info("x", TensorProto.UINT8, [2, 3])
    nodes = [
        helper.make_node("Cast", ["x"], ["wide"], name="same", to=TensorProto.FLOAT), helper.make_node("Neg", ["wide"], ["y"]),
        helper.make_node("BitwiseNot", ["x"], ["z"], name="same"), helper.make_node("Transpose", ["y"], ["t"]),
    ]
    outputs = [("t", TensorProto.FLOAT, [3, 2]), ("z", TensorProto.UINT8, [2, 3])]
    made = helper.make_graph(nodes, "g", [given], [helper.make_tensor_value_info(*one) for one in outputs])
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)])
    graph = fused_graph_of(model, "model")
    x = np.arange(250, 256, dtype=np.uint8).reshape(2, 3)
    with Session(compile_graph(graph, "cpu")) as session:
        found = session.run({"x": x})
    np.testing.assert_array_equal(found["t"], -x.astype(np.float32).T)
    np.testing.assert_array_equal(found["z"], ~x)
    assert found["z"].dtype == np.uint8


def _read(node, inputs, output, weights=(), opset=20):
    given = [helper.make_tensor_value_info(name, *told) for name, told in inputs.items()]
    made = helper.make_graph([node], "g", given, [helper.make_tensor_value_info("y", *output)], list(weights))
    return fused_graph_of(helper.make_model(made, opset_imports=[helper.make_opsetid("", opset)]), "model")


def test_a_scale_of_another_type_than_what_is_normalised_is_served():
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    weights = [numpy_helper.from_array(np.array([1.0, 2.0, 3.0]), name) for name in "sbmv"]
    node = helper.make_node("BatchNormalization", ["x", *"sbmv"], ["y"])
    graph = _read(node, {"x": (TensorProto.FLOAT, [2, 3, 4])}, (TensorProto.FLOAT, [2, 3, 4]), weights)
    with Session(compile_graph(graph, "reference")) as session:
        found = session.run({"x": x})["y"]
    w = np.array([1, 2, 3], np.float32)[:, None]
    assert np.allclose(found, w * (x - w) / np.sqrt(w + 1e-5) + w, atol=1e-6)


@pytest.mark.parametrize("index", [4, -5])
def test_an_index_of_a_model_that_names_no_element_is_told(index):
    indices, node = numpy_helper.from_array(np.array([0, index]), "i"), helper.make_node("Gather", ["x", "i"], ["y"])
    with pytest.raises(CodeError) as caught:
        _read(node, {"x": (TensorProto.FLOAT, [4, 3])}, (TensorProto.FLOAT, [2, 3]), [indices])
    assert caught.value.code == "TFW0994" and "index" in str(caught.value.note)


@pytest.mark.parametrize("before, axis, index, target", [
    ("Identity", 1, 4, "nvidia-sm80"), ("Transpose", 0, -5, "amd-cdna3"), ("Exp", 1, 7, "reference"),
])
def test_an_index_of_a_run_that_names_no_element_is_told(before, axis, index, target):
    nodes = [helper.make_node(before, ["x"], ["t"]), helper.make_node("Gather", ["t", "i"], ["g"], axis=axis),
             helper.make_node("Neg", ["g"], ["y"])]
    told = {"x": (TensorProto.FLOAT, [4, 4]), "i": (TensorProto.INT64, [4])}
    given = [helper.make_tensor_value_info(name, *one) for name, one in told.items()]
    made = helper.make_graph(nodes, "g", given, [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 4])])
    graph = fused_graph_of(helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)]), "model")
    x, indices = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32), np.array([0, -4, 3, 1])
    moved = {"Identity": x, "Transpose": x.T, "Exp": np.exp(x)}[before]
    with Session(compile_graph(graph, target)) as session:
        assert len(graph.calls) == 1
        np.testing.assert_allclose(session.run({"x": x, "i": indices})["y"], -np.take(moved, indices, axis), rtol=1e-6)
        with pytest.raises(CheckError, match="names none of its 4 elements"):
            session.run({"x": x, "i": np.array([0, index, 3, 1])})


def test_parts_of_a_split_are_read_where_they_stand():
    made = small_models.ModelText(5)
    x = made.node("Relu", "x")
    sizes = made.constant(np.array([3, 5], np.int64))
    made.nodes.append(helper.make_node("Split", [x, sizes], ["first", "second"], axis=-1))
    model = made.model({"x": (TensorProto.FLOAT, [2, 8])}, made.node("Concat", "second", "first", axis=1), [2, 8])
    graph = fused_graph_of(model, "model")
    given = made.rng.standard_normal((2, 8)).astype(np.float32)
    with Session(compile_graph(graph, "cpu")) as session:
        (found,) = session.run({"x": given}).values()
    np.testing.assert_array_equal(found, np.roll(np.maximum(given, 0), 5, axis=1))
    assert len(graph.calls) == 1


def test_a_split_whose_sizes_only_a_run_knows_is_refused():
    told = [("x", TensorProto.FLOAT, [2, 8]), ("s", TensorProto.INT64, [2])], [(name, TensorProto.FLOAT, [2, 4]) for name in "yz"]
    given, outputs = ([helper.make_tensor_value_info(*one) for one in side] for side in told)
    made = helper.make_graph([helper.make_node("Split", ["x", "s"], ["y", "z"], axis=1)], "g", given, outputs)
    with pytest.raises(UnsupportedError) as caught:
        fused_graph_of(helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)]), "model")
    assert caught.value.code == "TFW0992" and "Split" in str(caught.value.note)


@pytest.mark.parametrize("shape, axis, count, largest, target", [
    ((40, 3), 0, 20, 1, "nvidia-sm80"), ((2, 5000), 1, 3, 0, "reference"), ((2, 33), -1, 33, 0, "amd-cdna3"),
])
def test_the_first_of_long_rows_and_many_of_short_ones_are_taken_in_order(shape, axis, count, largest, target):
    """Equal elements in their order, NaN above all numbers."""
    x = np.random.default_rng(1).integers(-9, 9, shape).astype(np.float32)
    x.flat[[3, 7]] = np.nan
    shown = [count if dim == axis % 2 else extent for dim, extent in enumerate(shape)]
    node = helper.make_node("TopK", ["x", "k"], ["y", "i"], axis=axis, largest=largest)
    told = (("y", TensorProto.FLOAT), ("i", TensorProto.INT64))
    outputs = [helper.make_tensor_value_info(name, kind, shown) for name, kind in told]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    made = helper.make_graph([node], "g", [given], outputs, [numpy_helper.from_array(np.array([count]), "k")])
    graph = fused_graph_of(helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)]), "model")
    with Session(compile_graph(graph, target)) as session:
        found = session.run({"x": x})
    above = np.nan_to_num(x, nan=np.inf)
    places = np.argsort(-above if largest else above, axis=axis, kind="stable").take(range(count), axis)
    np.testing.assert_array_equal(found["i"], places)
    np.testing.assert_array_equal(found["y"], np.take_along_axis(x, places, axis))


@pytest.mark.parametrize("operator, reduction, target", [
    ("ScatterElements", "none", "nvidia-sm80"), ("ScatterND", "add", "reference"), ("ScatterND", "max", "amd-cdna3"),
    ("ScatterND", "none", "reference"),
])
def test_many_updates_go_to_their_elements_in_memory(operator, reduction, target):
    """Of several updates that replace an element the last counts; indices count from the end where they are negative."""
    rng = np.random.default_rng(2)
    x, updates = np.zeros((7, 2), np.float32), rng.integers(-9, 9, (1500, 2)).astype(np.float32)
    indices = rng.integers(-7, 7, (1500, 2 if operator == "ScatterElements" else 1))
    told = {"x": (TensorProto.FLOAT, [7, 2]), "i": (TensorProto.INT64, list(indices.shape)), "u": (TensorProto.FLOAT, [1500, 2])}
    given = [helper.make_tensor_value_info(name, *one) for name, one in told.items()]
    node = helper.make_node(operator, ["x", "i", "u"], ["y"], reduction=reduction)
    made = helper.make_graph([node], "g", given, [helper.make_tensor_value_info("y", TensorProto.FLOAT, [7, 2])])
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)])
    with Session(compile_graph(fused_graph_of(model, "m"), target)) as session:
        found = session.run({"x": x, "i": indices, "u": updates})["y"]
    due, combine = x.copy(), {"none": lambda _, new: new, "add": np.add, "max": np.maximum}[reduction]
    for row, update in zip(indices, updates, strict=True):
        for column in range(2):
            at = row[column % len(row)], column
            due[at] = combine(due[at], update[column])
    np.testing.assert_array_equal(found, due)


@pytest.mark.parametrize("operator", ["ScatterElements", "ScatterND"])
@pytest.mark.parametrize("count", [3, 1500])
def test_a_constant_index_that_names_no_element_is_told(operator, count):
    rows = {"x": 7, "u": count, "y": 7}
    *given, output = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [extent, 1]) for name, extent in rows.items())
    indices = numpy_helper.from_array(np.full((count, 1), 7), "i")
    made = helper.make_graph([helper.make_node(operator, ["x", "i", "u"], ["y"], reduction="add")], "g", given, [output], [indices])
    with pytest.raises(CodeError) as caught:
        fused_graph_of(helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)]), "m")
    assert "an index that none of 7 elements has" in str(caught.value.note)


_PLACED = [
    helper.make_node("Gather", ["x", "i"], ["y"], axis=1), helper.make_node("GatherND", ["x", "i"], ["y"]),
    helper.make_node("GatherElements", ["x", "i"], ["y"], axis=1),
    helper.make_node("ScatterElements", ["x", "i", "i"], ["y"], axis=1),
    helper.make_node("ScatterND", ["x", "i", "of"], ["y"]),
]


@pytest.mark.parametrize("fuse", [True, False], ids=["fused", "apart"])
@pytest.mark.parametrize("node", _PLACED, ids=[node.op_type for node in _PLACED])
def test_an_index_that_names_no_element_stops_the_run_also_where_other_elements_have_its_address(node, fuse, tmp_path):
    """In rows of 2, index 2 of the first is where the second begins."""
    given = [helper.make_tensor_value_info(name, TensorProto.INT64, [2, 2]) for name in ("i", "x")]
    extents = {"Gather": [2, 2, 2], "GatherND": [2]}.get(node.op_type, [2, 2])
    due = helper.make_tensor_value_info("y", TensorProto.INT64, extents)
    constants = [numpy_helper.from_array(np.array([7, 7]), "of")] if "of" in node.input else []
    path = tmp_path / "m.onnx"
    model = helper.make_model(helper.make_graph([node], "m", given, [due], constants), opset_imports=[helper.make_opsetid("", 18)])
    path.write_bytes(model.SerializeToString())
    x = np.array([[1, 2], [3, 4]])
    with Session(compile_graph(read_graph(path, fuse), "cpu")) as session:
        inputs = {"x": x, "i": np.array([[0, -1], [0, -1]])}
        (due,) = ReferenceEvaluator(model).run(None, inputs)
        np.testing.assert_array_equal(session.run(inputs)["y"], due)
        for index in (2, -3):
            with pytest.raises(CheckError, match="names no"):
                session.run({"x": x, "i": np.array([[0, index], [0, 0]])})
