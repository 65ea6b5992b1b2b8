"""Operators that are written out as other nodes have the values of ONNX Runtime, or of onnx's evaluator where it lacks them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tilefw.api.errors import CodeError, UnsupportedError
from tilefw.graph.compile_graph import compile_graph
from tilefw.graph.session import Session
from tilefw_onnx.fused_reader import fused_graph_of

runtime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")

_STEPS, _BATCH, _IN, _HIDDEN = 3, 2, 4, 3
_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def _node(operator, arrays, outputs, given=1, opset=20, **attributes):
    """A model of one node; the first `given` arrays come with a run, an empty one is left out."""
    names = [f"x{place}" if array is not None else "" for place, array in enumerate(arrays)]
    told = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in zip(names[:given], arrays, strict=False)]
    weights = [numpy_helper.from_array(a, n) for n, a in zip(names, arrays, strict=True) if n and a is not None][given:]
    results = [helper.make_tensor_value_info(n, kind, shape) for n, (kind, shape) in outputs.items()]
    node = helper.make_node(operator, names, list(outputs), name="cell", **attributes)
    graph = helper.make_graph([node], "g", told, results, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return model, dict(zip(names[:given], arrays, strict=False))


def _agrees(model, given, due, exact=False):
    with Session(compile_graph(fused_graph_of(model, "m"), "reference")) as session:
        found = session.run(given)
    for info, expected in zip(model.graph.output, due, strict=True):
        got = found[info.name]
        assert got.shape == expected.shape and got.dtype == expected.dtype
        near = np.array_equal(got, expected) if exact else np.allclose(got, expected, rtol=1e-5, atol=1e-6)
        assert near, (info.name, got, expected)


def _runtime(model, given):
    return runtime.InferenceSession(model.SerializeToString()).run(None, given)


@pytest.mark.parametrize("operator, direction, extra, attributes", [
    ("RNN", "bidirectional", {"lengths", "start"}, {"activations": ["Relu", "Tanh"]}),
    ("GRU", "reverse", {"lengths"}, {"linear_before_reset": 1}),
    ("GRU", "bidirectional", {"start"}, {"clip": 0.3}),
    ("LSTM", "bidirectional", {"lengths", "start", "peepholes"}, {}),
    ("LSTM", "bidirectional", {"start"}, {
        "activations": ["Affine", "ScaledTanh", "LeakyRelu", "HardSigmoid", "Elu", "Tanh"],
        "activation_alpha": [0.7, 1.5, 0.3, 0.4, 0.6], "activation_beta": [0.1, 0.8, 0.45],
    }),
    ("LSTM", "forward", set(), {"input_forget": 1, "activations": ["HardSigmoid", "Softsign", "Relu"]}),
])
def test_a_recurrent_node_is_the_steps_that_it_stands_for(operator, direction, extra, attributes):
    rng = np.random.default_rng(1)
    ways, gates = 2 if direction == "bidirectional" else 1, _GATES[operator]
    make = lambda *shape: (0.5 * rng.standard_normal(shape)).astype(np.float32)  # noqa: E731
    arrays = [make(_STEPS, _BATCH, _IN), make(ways, gates * _HIDDEN, _IN), make(ways, gates * _HIDDEN, _HIDDEN)]
    arrays += [make(ways, 2 * gates * _HIDDEN), np.array([_STEPS, 1], np.int32) if "lengths" in extra else None]
    arrays += [make(ways, _BATCH, _HIDDEN) if "start" in extra else None] * (2 if operator == "LSTM" else 1)
    arrays += [make(ways, 3 * _HIDDEN)] if "peepholes" in extra else []
    last = (TensorProto.FLOAT, [ways, _BATCH, _HIDDEN])
    outputs = {"y": (TensorProto.FLOAT, [_STEPS, ways, _BATCH, _HIDDEN]), "h": last, **({"c": last} if operator == "LSTM" else {})}
    model, given = _node(operator, arrays, outputs, hidden_size=_HIDDEN, direction=direction, **attributes)
    _agrees(model, given, _runtime(model, given))


def test_all_steps_of_a_sequence_share_their_kernels_and_copy_no_part_of_it():
    """A step's inputs are an address in the product of all; its product and its gates are one launch each."""
    rng = np.random.default_rng(3)
    kernels = []
    for steps in (5, 9):
        arrays = [rng.standard_normal(shape).astype(np.float32) for shape in ((steps, 2, 4), (1, 16, 4), (1, 16, 4))]
        model, given = _node("LSTM", arrays, {"y": (TensorProto.FLOAT, [steps, 1, 2, 4])}, hidden_size=4)
        graph = fused_graph_of(model, "m")
        _agrees(model, given, _runtime(model, given))
        assert len(graph.calls) <= 2 * steps + 2
        kernels.append(len({call.kernel for call in graph.calls}))
    assert kernels[0] == kernels[1]


def test_a_clip_bounds_what_gates_are_made_of_and_not_the_cell():
    rng = np.random.default_rng(9)
    arrays = [3 * rng.standard_normal(shape).astype(np.float32) for shape in ((1, 2, 4), (1, 12, 4), (1, 12, 3))]
    start = [rng.standard_normal((1, 2, 3)).astype(np.float32) for _ in "hc"]
    model, given = _node("LSTM", [*arrays, None, None, *start], {"y": (TensorProto.FLOAT, [1, 1, 2, 3])}, hidden_size=3, clip=0.2)
    _agrees(model, given, _runtime(model, given))


def test_a_recurrent_node_of_constants_is_written_out_too():
    """onnx's evaluator, which computes other constants, leaves out directions and lengths."""
    rng = np.random.default_rng(7)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in ((3, 2, 4), (1, 9, 4), (1, 9, 3), (1, 18))]
    model, given = _node("GRU", [*arrays, np.array([3, 1], np.int32)], {"y": (TensorProto.FLOAT, [3, 1, 2, 3])}, 0,
                         hidden_size=3, direction="reverse")
    _agrees(model, given, _runtime(model, given))


@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("outside", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_a_sampled_grid_has_points_beyond_the_edges(mode, outside, corners):
    rng = np.random.default_rng(2)
    image, grid = rng.standard_normal((1, 2, 4, 5)).astype(np.float32), rng.uniform(-1.9, 1.9, (1, 3, 7, 2)).astype(np.float32)
    outputs = {"y": (TensorProto.FLOAT, [1, 2, 3, 7])}
    model, given = _node("GridSample", [image, grid], outputs, 2, mode=mode, padding_mode=outside, align_corners=corners)
    _agrees(model, given, _runtime(model, given))


def test_a_quantised_convolution_is_exact():
    """Filters are small: ONNX Runtime sums pairs of products in 16 bits on processors without an instruction for dots of bytes."""
    rng = np.random.default_rng(3)
    x, w = rng.integers(0, 256, (1, 3, 5, 6)).astype(np.uint8), rng.integers(-60, 61, (4, 3, 3, 2)).astype(np.int8)
    scale, zero = np.array(0.02, np.float32), np.array(7, np.uint8)
    scales, zeros = rng.uniform(0.01, 0.03, 4).astype(np.float32), np.zeros(4, np.int8)
    bias = np.array([5, -9, 0, 99], np.int32)
    arrays = [x, scale, zero, w, scales, zeros, np.array(0.9, np.float32), np.array(100, np.uint8), bias]
    model, given = _node("QLinearConv", arrays, {"y": (TensorProto.UINT8, [1, 4, 3, 3])}, strides=[2, 2], pads=[1, 0, 1, 1])
    _agrees(model, given, _runtime(model, given), exact=True)


@pytest.mark.parametrize("kinds", [(np.uint8, np.int8), (np.int8, np.uint8)])
def test_a_product_of_bytes_with_and_without_a_sign_is_exact(kinds):
    """The common extent is no whole number of blocks, and the zero points are not zero."""
    rng, (left, right) = np.random.default_rng(7), kinds
    ends = [(np.iinfo(kind).min, np.iinfo(kind).max + 1) for kind in kinds]
    a, b = (rng.integers(low, high, shape) for (low, high), shape in zip(ends, ((5, 70), (70, 9)), strict=True))
    arrays = [a.astype(left), b.astype(right), np.array(3, left), np.array(7, right)]
    model, given = _node("MatMulInteger", arrays, {"y": (TensorProto.INT32, [5, 9])})
    _agrees(model, given, [((a - 3) @ (b - 7)).astype(np.int32)], exact=True)


def test_neighbouring_channels_and_turned_sequences():
    x = np.random.default_rng(4).standard_normal((2, 5, 3, 2)).astype(np.float32)
    model, given = _node("LRN", [x], {"y": (TensorProto.FLOAT, list(x.shape))}, size=3, alpha=0.5, beta=0.7, bias=1.5)
    _agrees(model, given, _runtime(model, given))
    model, given = _node("ReverseSequence", [x[:, :, 0, 0], np.array([2, 5])], {"y": (TensorProto.FLOAT, [2, 5])},
                         batch_axis=0, time_axis=1)
    _agrees(model, given, _runtime(model, given))


def test_what_onnx_defines_by_nodes_needs_no_kernel_of_its_own():
    x, labels = np.random.default_rng(5).standard_normal((4, 6)).astype(np.float32), np.array([0, 5, 2, 2])
    model, given = _node("SoftmaxCrossEntropyLoss", [x, labels], {"y": (TensorProto.FLOAT, [])}, 2)
    _agrees(model, given, ReferenceEvaluator(model).run(None, given))


@pytest.mark.parametrize("corners, shape, space", [(0, (1, 2, 3), [3, 4]), (1, (2, 3, 4), [2, 3, 4])])
def test_a_grid_is_the_points_of_an_image_by_matrices(corners, shape, space):
    batch, rank, _ = shape
    theta = np.random.default_rng(8).standard_normal(shape).astype(np.float32)
    outputs = {"y": (TensorProto.FLOAT, [batch, *space, rank])}
    model, given = _node("AffineGrid", [theta, np.array([batch, 1, *space])], outputs, align_corners=corners)
    _agrees(model, given, _runtime(model, given))


def test_a_sum_of_pixels_that_are_no_floats_is_refused():
    arrays = [np.zeros((1, 2, 3, 3), np.int32), np.zeros((1, 3, 3, 2), np.float32)]
    model, _ = _node("GridSample", arrays, {"y": (TensorProto.INT32, [1, 2, 3, 3])}, 2)
    with pytest.raises(UnsupportedError) as caught:
        fused_graph_of(model, "m")
    assert "cell: GridSample of mode linear on int32" in str(caught.value.note)


def test_a_function_of_the_model_is_written_out():
    double = helper.make_function("own", "Double", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])],
                                  [helper.make_opsetid("", 20)])
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Double", ["x"], ["y"], domain="own")], "g", info[:1], info[1:])
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]
    model, x = helper.make_model(graph, functions=[double], opset_imports=imports), np.arange(3, dtype=np.float32)
    _agrees(model, {"x": x}, [x + x])


def test_a_scan_goes_through_an_axis_in_either_direction():
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "e"], ["t"]), helper.make_node("Mul", ["t", "e"], ["r"])], "body",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "se"],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "tr"],
    )
    x = np.random.default_rng(6).standard_normal((2, 3)).astype(np.float32)
    outputs = {"last": (TensorProto.FLOAT, [2]), "all": (TensorProto.FLOAT, [3, 2])}
    model, given = _node("Scan", [np.ones(2, np.float32), x], outputs, 2, body=body, num_scan_inputs=1, scan_input_axes=[1],
                         scan_input_directions=[1], scan_output_directions=[1])
    _agrees(model, given, _runtime(model, given))


def test_what_follows_from_data_is_refused_as_such():
    x = np.ones((2, 3), np.float32)
    model, _ = _node("NonZero", [x], {"y": (TensorProto.INT64, [2, "n"])})
    with pytest.raises(UnsupportedError) as caught:
        fused_graph_of(model, "m")
    assert "cell: the shape of what NonZero gives follows from data" in str(caught.value.note)


def test_an_attribute_that_does_not_fit_is_told():
    arrays = [np.zeros((2, 1, 3), np.float32), np.zeros((1, 4, 3), np.float32), np.zeros((1, 4, 4), np.float32)]
    model, _ = _node("RNN", arrays, {"y": (TensorProto.FLOAT, [2, 1, 1, 4])}, hidden_size=4, direction="sideways")
    with pytest.raises(CodeError) as caught:
        fused_graph_of(model, "m")
    assert caught.value.code == "TFW0994" and "cell: inputs and attributes do not fit the operator RNN" in caught.value.message


def test_casts_between_all_types_of_fused_nodes_are_onnx_runtimes():
    """In the launch of what they are computed of: NaN is true, what is beyond a point falls away."""
    rng, kinds = np.random.default_rng(8), ["float32", "float64", "bool", "int8", "int16", "int32", "int64"]
    told, nodes, results, given = [], [], [], {}
    for source, wanted in ((a, b) for a in kinds for b in kinds if a != b):
        x = np.concatenate([[0, -0.0, -1.75], 20 * rng.standard_normal(9)]).astype(source)
        if source.startswith("float") and not wanted.startswith("int"):
            x[3:5] = np.nan, -np.inf
        name, kind = f"{source} {wanted}", helper.np_dtype_to_tensor_dtype(np.dtype(wanted))
        given[name] = x
        told.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape))
        results.append(helper.make_tensor_value_info(f"of {name}", kind, x.shape))
        nodes.append(helper.make_node("Cast", [name], [f"of {name}"], to=kind))
    imports = [helper.make_opsetid("", 20)]
    model = helper.make_model(helper.make_graph(nodes, "g", told, results), opset_imports=imports, ir_version=10)
    with Session(compile_graph(fused_graph_of(model, "m"), "reference")) as session:
        found = session.run(given)
    for info, due in zip(results, _runtime(model, given), strict=True):
        np.testing.assert_array_equal(found[info.name], due, info.name)
