"""Sizes that a model leaves open are said by whoever reads it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tilefw.api.errors import CodeError, UsageError
from tilefw.cli.main import main
from tilefw.graph.compile_graph import compile_graph
from tilefw.graph.model_readers import read_graph
from tilefw.graph.session import Session
from tilefw_onnx.sizes import sizes_of


@pytest.fixture
def path(tmp_path):
    """A model of two inputs whose common size has a name, and one of which has a size without."""
    told = {"x": ["batch", 3], "w": [3, None]}
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in told.items()]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Clip", ["p", "", "six"], ["q"]),
             helper.make_node("LeakyRelu", ["q"], ["y"], alpha=0.5)]
    six = onnx.numpy_helper.from_array(np.array(6, np.float32), "six")
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", None])], [six])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.save(model, tmp_path / "open.onnx")
    return str(tmp_path / "open.onnx")


def test_said_sizes_are_those_of_the_model_in_one_launch(path):
    graph = read_graph(path, sizes={"batch": 2, "w.1": 5})
    rng = np.random.default_rng(0)
    x, w = (4 * rng.standard_normal(shape).astype(np.float32) for shape in ((2, 3), (3, 5)))
    with Session(compile_graph(graph, "reference")) as session:
        found = session.run({"x": x, "w": w})["y"]
    due = np.minimum(x @ w, 6)
    np.testing.assert_allclose(found, np.where(due < 0, due * np.float32(0.5), due), rtol=1e-5)
    assert len(graph.calls) == 1


def test_all_open_sizes_are_told_at_once(path):
    with pytest.raises(CodeError) as caught:
        read_graph(path)
    assert "'x' has shape [batch, 3]; 'w' has shape [3, ?]" in caught.value.message
    assert caught.value.help == "say them: --size batch=N w.1=N, or give arrays that have them: --input X.npz"


@pytest.mark.parametrize("sizes, words", [
    ({"batch": 2, "w.1": 1, "time": 3}, "no open size 'time'"), ({"batch": -1, "w.1": 1}, "a size is 0 to 2,147,483,647"),
    ({"batch": 1 << 64, "w.1": 1}, "a size is 0 to 2,147,483,647"),
])
def test_a_size_that_a_model_cannot_have_is_refused(path, sizes, words):
    with pytest.raises(UsageError, match=words):
        read_graph(path, sizes=sizes)


def test_the_command_line_takes_sizes(path, capsys):
    assert main(["run", path, "--target", "reference", "--size", "batch=4", "w.1=2"]) == 0
    assert "y: fp32[4, 2]" in capsys.readouterr().out
    assert main(["run", path, "--size", "batch=many"]) != 0
    assert "a size is a whole number" in capsys.readouterr().err


def test_arrays_say_the_sizes_that_nobody_says(path, tmp_path, capsys):
    arrays = {"x": np.ones((4, 3), np.float32), "w": np.ones((3, 2), np.float32)}
    np.savez(tmp_path / "in.npz", **arrays)
    assert main(["run", path, "--target", "reference", "--input", str(tmp_path / "in.npz")]) == 0
    assert "y: fp32[4, 2]" in capsys.readouterr().out
    assert main(["run", path, "--target", "reference", "--input", str(tmp_path / "in.npz"), "--size", "batch=5"]) != 0
    assert "'x'" in capsys.readouterr().err  # it does not fit what was said


def test_arrays_that_disagree_on_a_size_are_told():
    told = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 2]) for name in ("a", "b", "y")]
    graph = helper.make_graph([helper.make_node("Add", ["a", "b"], ["y"])], "g", told[:2], told[2:])
    with pytest.raises(UsageError, match="size 'batch' is 3 in the array of 'a' and 4 in that of 'b'"):
        sizes_of(graph, {"a": (3, 2), "b": (4, 2)})


def test_a_help_line_can_be_typed_whatever_a_size_is_called(tmp_path, capsys):
    """An input as TensorFlow calls it, a size with a space, and one that an old exporter says to be -1."""
    told = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["past length", -1, 2]) for name in ("in:0", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["in:0"], ["y"])], "g", told[:1], told[1:])
    path = str(tmp_path / "named.onnx")
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
    assert main(["run", path, "--target", "reference"]) != 0
    assert "--size 'past length=N' in:0.1=N" in capsys.readouterr().err
    assert main(["run", path, "--target", "reference", "--size", "past length=0", "in:0.1=3"]) == 0
    assert "y: fp32[0, 3, 2]" in capsys.readouterr().out
    assert main(["run", path, "--size", f"in:0.1={'9' * 5000}"]) == 2
