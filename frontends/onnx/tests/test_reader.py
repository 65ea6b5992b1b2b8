"""Whole models with a launch for each node run on every kind of target and agree with onnx's reference evaluator; of models
that are read in either way, what cannot be read is told at once."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tilefw_onnx", reason="tilefw-onnx is not installed")

import damaged_models
import onnx
import small_models
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tilefw.api.errors import CodeError, UnsupportedError
from tilefw.graph.certificate import certified
from tilefw.graph.compile_graph import compile_graph
from tilefw.graph.session import Session
from tilefw_onnx.fused_reader import fused_graph_of, read_model
from tilefw_onnx.reader import graph_of

MODELS = {
    "encoder": small_models.encoder, "decoder": small_models.decoder, "residual": small_models.residual,
    "depthwise": small_models.depthwise,
}
RUNS = [("encoder", "nvidia-sm80"), ("decoder", "reference"), ("residual", "cpu-native"), ("depthwise", "reference")]


@pytest.mark.parametrize("name, target", RUNS)
def test_a_model_agrees_with_onnx_and_every_launch_with_the_reference(name, target):
    model, inputs = MODELS[name]()
    graph = graph_of(model, name)
    with Session(compile_graph(graph, target)) as session:
        certificate = certified(session, inputs)
    assert certificate.ok, [(launch.label, launch.comparisons) for launch in certificate.launches if not launch.ok]
    assert len(certificate.launches) == len(graph.calls) > 10
    ((output, found),) = certificate.outputs.items()
    (due,) = ReferenceEvaluator(model).run(None, inputs)
    measured = certificate.measured[output]
    # onnx computes in fp32 as well: both errors are of the size that was measured.
    assert np.abs(found - due).max() < 1e-5 * measured.magnitude and measured.absolute < 1e-5 * measured.magnitude


FLOATS, INTEGERS = np.array([0, -0.4, 0.6, 70]), np.array([0, -3, 17, 100], np.int32)


@pytest.mark.parametrize("given, through, due", [
    (FLOATS.astype(np.float16), ["BOOL"], FLOATS != 0), (FLOATS, ["BOOL"], FLOATS != 0),
    (INTEGERS, ["FLOAT8E5M2", "BOOL"], INTEGERS != 0),
    (INTEGERS, ["FLOAT8E4M3FN", "INT8"], [0, -3, 16, 96]),  # 17 and 100 lie halfway: to the even ones of 16, 18 and of 96, 104
])
def test_what_is_not_zero_is_cast_to_true_and_integers_become_small_floats_and_are_made_of_them(given, through, due):
    kinds = [TensorProto.DataType.Value(kind) for kind in through]
    nodes = [helper.make_node("Cast", [f"v{place}"], [f"v{place + 1}"], to=kind) for place, kind in enumerate(kinds)]
    told = [helper.make_tensor_value_info("v0", helper.np_dtype_to_tensor_dtype(given.dtype), given.shape)]
    results = [helper.make_tensor_value_info(f"v{len(kinds)}", kinds[-1], given.shape)]
    imports = [helper.make_opsetid("", 20)]
    model = helper.make_model(helper.make_graph(nodes, "g", told, results), opset_imports=imports, ir_version=10)
    with Session(compile_graph(graph_of(model, "casts"), "reference")) as session:
        ((_, found),) = session.run({"v0": given}).items()
    np.testing.assert_array_equal(found, due)


def test_shapes_that_are_computed_reshapes_and_constants_cost_no_launch_and_layers_share_kernels():
    model, _ = small_models.encoder(layers=2)
    graph = graph_of(model, "encoder")
    launched = {call.label.strip("/").partition("_")[0] for call in graph.calls}
    assert launched == {"Gather", "LayerNormalization", "MatMul", "Transpose", "Mul", "Where", "Softmax", "Add", "Gelu"}
    assert {node.op_type for node in model.graph.node} - launched == {"Shape", "Slice", "Concat", "Reshape"}
    assert len({call.kernel for call in graph.calls}) <= 14 < len(graph.calls) / 2


def test_all_nodes_that_are_not_lowered_are_listed_with_their_names():
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 4])
    nodes = [
        helper.make_node("Det", ["x"], ["a"], name="first"), helper.make_node("Relu", ["a"], ["b"], name="between"),
        helper.make_node("Mine", ["x"], ["d"], "third", domain="my"),
    ]
    made = helper.make_graph(nodes, "g", [given], [helper.make_tensor_value_info("b", TensorProto.FLOAT, [])])
    with pytest.raises(UnsupportedError) as caught:
        _graph(made)
    assert caught.value.code == "TFW0992" and "2 nodes" in caught.value.message
    assert caught.value.note == "first: no operator Det\nthird: no operator my::Mine"


def test_a_shape_that_is_not_static_is_told():
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])
    made = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [given], [out])
    with pytest.raises(CodeError) as caught:
        _graph(made)
    assert caught.value.code == "TFW0994" and "'x' has shape [batch, 4]" in caught.value.message


def test_a_file_that_is_no_model_is_told(tmp_path):
    model, _ = small_models.decoder()
    whole = model.SerializeToString()
    for number, data in enumerate([whole[: len(whole) // 2], b"", b"PK\3\4" * 99, whole[:100] + b"\xff" * 60 + whole[160:]]):
        path = tmp_path / f"{number}.onnx"
        path.write_bytes(data)
        with pytest.raises(CodeError) as caught:
            read_model(path)
        assert caught.value.code == "TFW0994"
    with pytest.raises(CodeError) as caught:
        read_model(tmp_path / "none.onnx")
    assert caught.value.code == "TFW0930"


def test_damaged_models_end_in_a_graph_or_an_error_of_ours():
    """A sample of the campaign of `damaged_models.py`."""
    made = damaged_models.wholes()
    ends = {damaged_models.attempt(made, seed) for seed in range(250)}
    assert ends >= {"read", "TFW0994"}


def test_weights_in_files_of_their_own_are_read_and_told_where_they_are_missing_or_too_short(tmp_path):
    path, weight = tmp_path / "m.onnx", np.random.default_rng(0).standard_normal((64, 96)).astype(np.float32)
    model = helper.make_model(
        _one("MatMul", ["x", "w"], [2, 64], [2, 96], [numpy_helper.from_array(weight, "w")]),
        opset_imports=[helper.make_opsetid("", 20)],
    )
    onnx.save(model, path, save_as_external_data=True, location="m.data", size_threshold=0)
    x = np.ones((2, 64), np.float32)
    with Session(compile_graph(read_model(path), "cpu-native")) as session:
        assert np.allclose(session.run({"x": x})["y"], x @ weight, atol=1e-5)
    whole = (tmp_path / "m.data").read_bytes()
    (tmp_path / "m.data").write_bytes(whole[:-4])
    with pytest.raises(CodeError) as caught:
        read_model(path)
    assert caught.value.code == "TFW0994" and "'w'" in caught.value.message
    (tmp_path / "m.data").unlink()
    with pytest.raises(CodeError) as caught:
        read_model(path)
    assert caught.value.code in ("TFW0930", "TFW0994") and "'w'" in caught.value.message


def test_an_older_opset_is_converted():
    """Squeeze had its axes as an attribute."""
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 1])
    nodes = [helper.make_node("Squeeze", ["x"], ["s"], axes=[1]), helper.make_node("Relu", ["s"], ["y"])]
    made = helper.make_graph(nodes, "g", [given], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])])
    graph = _graph(made, 11)
    assert len(graph.calls) == 1 and graph.calls[0].label.startswith("Relu")
    assert graph.outputs["y"].shape == (4,)


@pytest.mark.parametrize(("operator", "opset"), [("Upsample", 9), ("Resize", 10)])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_pixels_of_older_models_are_made_of_those_at_their_corners(operator, opset, mode):
    """At the place x / 3 of the input; from opset 11 on the default is the middle of a pixel."""
    found = _resized([0, 3], 3, operator, opset, mode)
    np.testing.assert_allclose(found, [0, 0, 0, 3, 3, 3] if mode == "nearest" else [0, 1, 2, 3, 3, 3], atol=1e-6)


def test_pixels_of_older_models_that_get_smaller_are_those_above_their_place():
    """At 0, 5/3 and 10/3: ONNX Runtime gives these."""
    np.testing.assert_array_equal(_resized([0, 1, 2, 3, 4, 5], 0.6, "Resize", 10, "nearest"), [0, 2, 4])


def _resized(row: list[float], scale: float, operator: str, opset: int, mode: str) -> np.ndarray:
    """A row of pixels in another size."""
    scales, sizes = [numpy_helper.from_array(np.array([1, 1, 1, scale], np.float32), "s")], (len(row), int(len(row) * scale))
    given, made = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 1, 1, size]) for name, size in zip("xy", sizes, strict=True)
    )
    graph = helper.make_graph([helper.make_node(operator, ["x", "s"], ["y"], mode=mode)], "g", [given], [made], scales)
    with Session(compile_graph(_graph(graph, opset), "reference")) as session:
        return session.run({"x": np.array(row, np.float32).reshape(1, 1, 1, -1)})["y"].reshape(-1)


def _graph(made: onnx.GraphProto, opset: int = 20):
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("my", 1)]
    return fused_graph_of(helper.make_model(made, opset_imports=imports if opset > 19 else imports[:1]), "model.onnx")


def test_attributes_that_only_later_versions_have_stand_at_their_defaults():
    """BatchNormalization has `training_mode` from 14 on."""
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    weights = [numpy_helper.from_array(np.array([1, 2, 3], np.float32), name) for name in "sbmv"]
    made = _one("BatchNormalization", ["x", *"sbmv"], [2, 3, 4], [2, 3, 4], weights)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 13)])
    with Session(compile_graph(fused_graph_of(model, "m"), "reference")) as session:
        found = session.run({"x": x})["y"]
    w = np.array([1, 2, 3], np.float32)[:, None]
    assert np.allclose(found, w * (x - w) / np.sqrt(w + 1e-5) + w, atol=1e-6)


def test_random_numbers_names_of_other_domains_and_norms_that_onnx_has_not_are_refused():
    true = numpy_helper.from_array(np.array(True), "train")
    for made, told in [
        (_one("RandomNormal", [], [4], [4], shape=[4]), "random"),
        (_one("Dropout", ["x", "", "train"], [4], [4], [true]), "random"),
        (_one("Identity", ["x"], [4], [4], domain="my"), "my::Identity"), (_one("LpNormalization", ["x"], [4], [4], p=3), "p = 3"),
    ]:
        with pytest.raises(UnsupportedError) as caught:
            _graph(made)
        assert caught.value.code == "TFW0992" and told in str(caught.value.note)


def test_a_constant_that_is_sparse_is_told():
    made = _one("Add", ["x", "w"], [4], [4])
    values, places = helper.make_tensor("w", TensorProto.FLOAT, [1], [3.0]), helper.make_tensor("i", TensorProto.INT64, [1], [2])
    made.sparse_initializer.append(helper.make_sparse_tensor(values, places, [4]))
    with pytest.raises(CodeError) as caught:
        _graph(made)
    assert caught.value.code == "TFW0994" and "'w'" in caught.value.message


def test_what_has_no_element_is_not_computed_and_parts_of_a_shape_are_known():
    empty = np.zeros((0, 5), np.float32)
    made = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Shape", ["x"], ["n"], start=-1)], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [0, 5])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [0, 5]), helper.make_tensor_value_info("n", TensorProto.INT64, [1])],
    )
    with Session(compile_graph(_graph(made), "cpu-native")) as session:
        found = certified(session, {"x": empty})
    assert found.launches == () and found.outputs["y"].shape == (0, 5) and found.outputs["n"].tolist() == [5]


def _one(operator, inputs, extents, result, weights=(), **attributes):
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, extents)]
    out = [helper.make_tensor_value_info("y", TensorProto.FLOAT, result)]
    return helper.make_graph([helper.make_node(operator, inputs, ["y"], **attributes)], "g", given, out, list(weights))


def test_an_operator_that_the_opset_does_not_have_yet_is_told():
    with pytest.raises(CodeError) as caught:
        _graph(_one("Gelu", ["x"], [4], [4]), 13)
    assert caught.value.code == "TFW0994"


@pytest.mark.parametrize("imported, own", [("ai.onnx", ""), ("", "ai.onnx"), ("ai.onnx", "ai.onnx")])
def test_operators_of_the_domain_ai_onnx_are_onnxs_own_of_the_version_that_is_imported(imported, own, tmp_path):
    """Before version 13 a softmax without an axis was one of all dims behind the first."""
    x = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    told = [helper.make_tensor_value_info(name, TensorProto.FLOAT, x.shape) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Softmax", ["x"], ["y"], domain=own)], "m", told[:1], told[1:])
    path = tmp_path / "m.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid(imported, 11)]).SerializeToString())
    with Session(compile_graph(read_model(path), "reference")) as session:
        found = session.run({"x": x})["y"]
    due = np.exp(x - x.max((1, 2), keepdims=True))
    np.testing.assert_allclose(found, due / due.sum((1, 2), keepdims=True), rtol=1e-6)


def _of_one_node(node, constants, imports):
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    opsets = [helper.make_opsetid(domain, version) for domain, version in imports]
    return helper.make_model(helper.make_graph([node], "m", [x], [y], constants), opset_imports=opsets)


@pytest.mark.parametrize("imports, told", [
    ([("", 999)], "has opset 999, and onnx"), ([("", 18), ("ai.onnx", 17)], "two versions of one domain"),
    ([("", 18)], "B has inconsistent type"),
])
def test_versions_that_onnx_does_not_know_and_types_that_do_not_agree_are_told(imports, told):
    whole = numpy_helper.from_array(np.ones(2, np.int64), "w")
    for read in (graph_of, fused_graph_of):
        with pytest.raises(CodeError, match=told):
            read(_of_one_node(helper.make_node("Add", ["x", "w"], ["y"]), [whole], imports), "m")
