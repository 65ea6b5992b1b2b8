"""Loops of a known number of turns are part of the model, as ONNX Runtime runs them; others are refused by name."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilefw.api.errors import CodeError, UnsupportedError
from tilefw.graph.compile_graph import compile_graph
from tilefw.graph.session import Session
from tilefw_onnx.fused_reader import fused_graph_of
from tilefw_onnx.reader import graph_of

runtime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")

_FLOAT, _INT, _BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
X = np.random.default_rng(3).standard_normal((2, 3)).astype(np.float32)


def _due(model):
    """What ONNX Runtime computes."""
    model.ir_version = 10
    return runtime.InferenceSession(model.SerializeToString()).run(None, {"x": X})[0]


def _info(name, kind, shape=None):
    return helper.make_tensor_value_info(name, kind, shape)


def _loop(turns, condition, nodes, carried, stacked=(), outputs=("end",), initializers=()):
    """A model of one loop that carries `carried`, and whatever reads its results."""
    body = helper.make_graph(
        nodes, "body", [_info("turn", _INT, []), _info("goes", _BOOL, []), *(_info(f"{name}_in", _FLOAT) for name in carried)],
        [_info("on", _BOOL), *(_info(f"{name}_out", _FLOAT) for name in carried), *(_info(name, _FLOAT) for name in stacked)],
    )
    made = [
        helper.make_node(
            "Loop", [turns, condition, *carried], [f"{name}_last" for name in (*carried, *stacked)], name="walk", body=body
        ),
        helper.make_node("Relu", [f"{(*carried, *stacked)[-1]}_last"], ["end"], name="after"),
    ]
    weights = [numpy_helper.from_array(np.asarray(value), name) for name, value in initializers]
    given = {name for name, _ in initializers}
    known = {"x": (_FLOAT, [2, 3]), "turns": (_INT, [])}
    inputs = [_info(name, *known[name]) for name in (*carried, turns) if name in known and name not in given]
    graph = helper.make_graph(made, "g", inputs, [_info(name, _FLOAT) for name in outputs], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])


_KEPT = helper.make_node("Identity", ["goes"], ["on"])
_SUMMED = [
    _KEPT, helper.make_node("Cast", ["turn"], ["step"], to=_FLOAT), helper.make_node("Mul", ["x_in", "step"], ["scaled"]),
    helper.make_node("Add", ["scaled", "x"], ["x_out"]), helper.make_node("ReduceSum", ["x_out"], ["total"], keepdims=0),
]
_GROWING = [_KEPT, helper.make_node("Concat", ["x_in", "x"], ["x_out"], axis=0)]
_ENDING = [
    helper.make_node("Less", ["turn", "three"], ["on"]), helper.make_node("Add", ["x_in", "x_in"], ["x_out"]),
]
_BRANCH = helper.make_graph(
    [helper.make_node("Mul", ["x_in", "x"], ["p"]), helper.make_node("Add", ["p", "x"], ["q"])], "first", [], [_info("q", _FLOAT)],
)
_REST = helper.make_graph([helper.make_node("Concat", ["x_in", "x"], ["p"], axis=0)], "rest", [], [_info("p", _FLOAT)])
_OTHER = helper.make_graph([helper.make_node("Sub", ["x_in", "x"], ["p"])], "other", [], [_info("p", _FLOAT)])
_BRANCHING = [
    _KEPT, helper.make_node("Less", ["turn", "one"], ["begins"]),
    helper.make_node("If", ["begins"], ["x_out"], then_branch=_BRANCH, else_branch=_OTHER),
]
_WITHIN = [_KEPT, helper.make_node("If", ["may"], ["x_out"], else_branch=_REST, then_branch=helper.make_graph(
    [helper.make_node("Loop", ["turns", "", "x_in"], ["p"], body=helper.make_graph(
        [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Concat", ["v", "x"], ["w"], axis=0)], "inner",
        [_info("t", _INT, []), _info("c", _BOOL, []), _info("v", _FLOAT)], [_info("d", _BOOL), _info("w", _FLOAT)],
    )), helper.make_node("Neg", ["p"], ["q"])], "then", [], [_info("q", _FLOAT)],
))]
MODELS = {
    "a branch in each turn": _loop("turns", "", _BRANCHING, ["x"], initializers=[("turns", np.int64(3)), ("one", np.int64(1))]),
    "a loop in a branch": _loop("turns", "", _WITHIN, ["x"], initializers=[("turns", np.int64(2)), ("may", True)]),
    "a state and a stack": _loop("turns", "", _SUMMED, ["x"], ["total"], initializers=[("turns", np.int64(4))]),
    "a state that grows": _loop("turns", "may", _GROWING, ["x"], initializers=[("turns", np.int64(3)), ("may", True)]),
    "an end by condition": _loop("", "may", _ENDING, ["x"], initializers=[("may", True), ("three", np.int64(3))]),
    "no turn": _loop("turns", "", _GROWING, ["x"], initializers=[("turns", np.int64(0))]),
    "no turn by condition": _loop("turns", "may", _GROWING, ["x"], initializers=[("turns", np.int64(5)), ("may", False)]),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("read", [graph_of, fused_graph_of])
def test_turns_that_are_known_are_written_out(read, name):
    model = MODELS[name]
    due = _due(model)
    with Session(compile_graph(read(model, "m"), "reference")) as session:
        found = session.run({"x": X})["end"]
    assert found.shape == np.asarray(due).shape
    np.testing.assert_allclose(found, due, rtol=1e-5)


def test_what_is_refused_of_loops_is_told_at_once():
    body = [helper.make_node("Greater", ["x_in", "x_in"], ["on"]), helper.make_node("GlobalLpPool", ["x_in"], ["x_out"])]
    for model, words in (
        (_loop("turns", "", body, ["x"]), ("walk", "'turns', which only a run knows", "no kernel computes GlobalLpPool")),
        (_loop("turns", "", body, ["x"], initializers=[("turns", np.int64(2))]), ("walk, turn 0", "operator GlobalLpPool")),
        (_loop("", "", _GROWING, ["x"]), ("without an end",)),
        (_loop("turns", "", _GROWING, ["x"], initializers=[("turns", np.int64(1 << 40))]), ("of more than 4,096 turns",)),
    ):
        with pytest.raises(UnsupportedError) as caught:
            graph_of(model, "m")
        assert caught.value.code == "TFW0992" and all(word in caught.value.note for word in words), caught.value.note
    ending = [helper.make_node("ReduceMax", ["x_in"], ["most"], keepdims=0), helper.make_node("IsNaN", ["most"], ["on"]),
              helper.make_node("Identity", ["x_in"], ["x_out"])]
    with pytest.raises(UnsupportedError, match="tilefw does not lower") as caught:
        graph_of(_loop("turns", "", ending, ["x"], initializers=[("turns", np.int64(2))]), "m")
    assert "a loop whose end depends on data" in caught.value.note


def test_loops_in_loops_are_written_out():
    inner = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Add", ["v", "x_in"], ["w"])], "inner",
        [_info("t", _INT, []), _info("c", _BOOL, []), _info("v", _FLOAT)], [_info("d", _BOOL), _info("w", _FLOAT)],
    )
    nodes = [_KEPT, helper.make_node("Loop", ["turn", "", "x_in"], ["x_out"], body=inner)]
    model = _loop("turns", "", nodes, ["x"], initializers=[("turns", np.int64(4))])
    due = _due(model)
    with Session(compile_graph(fused_graph_of(model, "m"), "reference")) as session:
        np.testing.assert_allclose(session.run({"x": X})["end"], due, rtol=1e-5)


@pytest.mark.parametrize("read", [graph_of, fused_graph_of])
def test_a_loop_in_a_loop_stacks_what_its_own_turns_gave(read):
    """In the outer loop's second turn the state is a constant, which in its first was the input."""
    nodes = [
        helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Identity", ["v"], ["seen"]),
        helper.make_node("Add", ["v", "x"], ["w"]),
    ]
    inner = helper.make_graph(
        nodes, "inner", [_info("t", _INT, []), _info("c", _BOOL, []), _info("v", _FLOAT)],
        [_info("d", _BOOL), _info("w", _FLOAT), _info("seen", _FLOAT)],
    )
    outer = [
        _KEPT, helper.make_node("Loop", ["two", "", "x_in"], ["last", "all"], body=inner),
        helper.make_node("ReduceL1", ["all"], ["total"], keepdims=0), helper.make_node("Identity", ["zero"], ["x_out"]),
    ]
    constants = [("turns", np.int64(2)), ("two", np.int64(2)), ("zero", np.zeros((2, 3), np.float32))]
    model = _loop("turns", "", outer, ["x"], ["total"], initializers=constants)
    due = _due(model)
    with Session(compile_graph(read(model, "m"), "reference")) as session:
        np.testing.assert_allclose(session.run({"x": X})["end"], due, rtol=1e-5)


def test_a_shape_that_a_model_says_stays_where_none_follows_behind_a_loop():
    model = _loop("turns", "", _GROWING, ["x"], initializers=[("turns", np.int64(1)), ("one", np.array([1]))])
    behind = [
        helper.make_node("Shape", ["x_last"], ["sizes"]), helper.make_node("Div", ["sizes", "one"], ["asked"]),
        helper.make_node("Reshape", ["x_last", "asked"], ["end"]),
    ]
    del model.graph.node[1:], model.graph.output[:]
    model.graph.node.extend(behind)
    model.graph.output.append(_info("end", _FLOAT, [4, 3]))
    due = _due(model)
    with Session(compile_graph(graph_of(model, "m"), "reference")) as session:
        np.testing.assert_array_equal(session.run({"x": X})["end"], due)


def test_a_weight_of_a_body_that_is_not_whole_is_refused():
    body = [_KEPT, helper.make_node("Add", ["x_in", "weight"], ["x_out"])]
    model = _loop("turns", "", body, ["x"], initializers=[("turns", np.int64(1))])
    weight = TensorProto(name="weight", data_type=_FLOAT, dims=[3], raw_data=b"1234")
    next(one.g for one in model.graph.node[0].attribute if one.name == "body").initializer.append(weight)
    with pytest.raises(CodeError, match="weight 'weight' of m is not whole"):
        graph_of(model, "m")


def test_a_number_of_turns_that_is_none_is_refused():
    with pytest.raises(CodeError, match="'turns' of m, which says how often a loop turns") as caught:
        graph_of(_loop("turns", "", _GROWING, ["x"], initializers=[("turns", np.zeros(0, np.int64))]), "m")
    assert caught.value.code == "TFW0994"
