"""`tilefw run` and `tilefw compile` with whole models: inputs and outputs by name, and mistakes that are told."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
import small_model

from tilefw.cli.main import main
from tilefw.graph import model_readers, plan_file
from tilefw.graph.compile_graph import compile_graph
from tilefw.graph.kernel_graph import GraphBuilder


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    made = tmp_path_factory.mktemp("command") / "model.tfm"
    plan_file.save(small_model.plan("reference"), made)
    return str(made)


def test_inputs_and_outputs_are_files_of_arrays_by_name(path, tmp_path, capsys):
    given, out = str(tmp_path / "x.npz"), str(tmp_path / "y.npz")
    np.savez(given, x=small_model.x(7))
    assert main(["run", path, "--input", given, "--out", out, "--check", "launches", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "tilefw.run-model/1" and told["verdict"] == "pass" and told["launches"] == 5
    assert told["arena_bytes"] == told["least_arena_bytes"] > 0 and len(told["certificate"]["launches"]) == 5
    with np.load(out) as found:
        assert set(found.files) == {"probabilities", "flat"}
        assert np.abs(found["probabilities"] - small_model.expected(small_model.x(7))).max() < 1e-6


def test_seeded_inputs_are_the_same_every_time(path, tmp_path, capsys):
    results = []
    for number, seed in enumerate(("1", "1", "2")):
        out = str(tmp_path / f"{number}.npz")
        assert main(["run", path, "--seed", seed, "--out", out]) == 0
        with np.load(out) as found:
            results.append(found["probabilities"])
    assert "unjudged" in capsys.readouterr().out
    assert np.array_equal(results[0], results[1]) and not np.array_equal(results[0], results[2])


def test_a_profile_tells_the_time_by_kernel_and_node_and_a_timeline_has_every_launch(path, tmp_path, capsys):
    written = tmp_path / "t.json"
    assert main(["run", path, "--profile", "--timeline", str(written)]) == 0
    told = capsys.readouterr().out
    assert "matmul, 2 launches" in told and "up (matmul)" in told and "ms of them on the device" in told
    events = [event for event in json.loads(written.read_text())["traceEvents"] if event["ph"] == "X"]
    assert [event["name"] for event in events] == ["norm", "up", "down", "add", "softmax"]
    assert all(later["ts"] >= event["ts"] + event["dur"] - 1e-3 for event, later in pairwise(events))


def test_mistakes_are_told_with_their_codes(path, tmp_path, capsys):
    wrong, text = str(tmp_path / "wrong.npz"), tmp_path / "text.npz"
    np.savez(wrong, z=small_model.x())
    text.write_text("no arrays")
    objects = str(tmp_path / "objects.npz")
    np.savez(objects, x=np.array([{}], object))
    for words, code, exit_code in [
        (["run", path, "--input", wrong], "TFW0360", 2), (["run", path, "--input", str(text)], "TFW0364", 2),
        (["run", path, "--input", objects], "TFW0364", 2), (["run", path, "--target", "nvidia-sm80"], "TFW0781", 1),
        (["run", path, "--param", "a=1"], "TFW0917", 2), (["run", "vector_add", "--check", "launches"], "TFW0917", 2),
        (["run", str(tmp_path / "none.tfm")], "TFW0930", 1), (["compile", path], "TFW0917", 2),
        (["run", path, "--check", "launches", "--profile"], "TFW0917", 2), (["run", path, "--sample", "3"], "TFW0917", 2),
        (["run", path, "--check", "launches", "--sample=-1"], "TFW0917", 2),
        (["run", path, "--timeline", "t.svg"], "TFW0917", 2), (["run", "vector_add", "--profile"], "TFW0917", 2),
        (["run", path, "--fuse", "none"], "TFW0917", 2), (["run", "vector_add", "--fuse", "all"], "TFW0917", 2),
        (["compile", "vector_add", "--fuse", "none"], "TFW0917", 2), (["run", path, "--fuse", "some"], "TFW091", 2),
        (["compile", path, "--emit", "tile", "-o", "x.tfm"], "TFW0917", 2),
        (["compile", path, "-o", str(tmp_path / "no" / "x.tfm")], "TFW0913", 2),
    ]:
        assert main(words) == exit_code, words
        assert code in capsys.readouterr().err, words


def test_a_model_that_nothing_installed_reads_is_no_script(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(model_readers, "readers", dict)
    path = tmp_path / "model.onnx"
    path.write_bytes(b"\0\1")
    for words in (["run", str(path)], ["compile", str(path), "-o", str(tmp_path / "x.tfm")]):
        assert main(words) == 4
        told = capsys.readouterr().err
        assert "TFW0993" in told and "pip install tilefw-onnx" in told


def test_an_output_may_have_any_name(tmp_path):
    made, names = GraphBuilder(), ("file", "allow_pickle", "/model/out")
    for name in names:
        made.output(name, made.constant(f"of {name}", np.arange(3, dtype=np.int32), "int32"))
    path, out = tmp_path / "model.tfm", str(tmp_path / "y.npz")
    plan_file.save(compile_graph(made.graph(), "reference"), path)
    assert main(["run", str(path), "--out", out]) == 0
    with np.load(out) as found:
        assert all(found[name].tolist() == [0, 1, 2] for name in names)


def test_a_damaged_member_of_a_file_of_arrays_is_told(path, tmp_path, capsys):
    given = tmp_path / "x.npz"
    np.savez_compressed(given, x=small_model.x())
    data = bytearray(given.read_bytes())
    data[100:140] = bytes(40)
    given.write_bytes(data)
    assert main(["run", path, "--input", str(given)]) == 2
    assert "TFW0364" in capsys.readouterr().err


SUM = """func.func @m(%x : tensor<6x4xf32> {graph.name = "x"}) -> tensor<3x4xf32> attributes {graph.outputs = ["y"]} {
  %own = graph.part %x axis 0 of 2 : tensor<6x4xf32> to tensor<3x4xf32>
  %y = graph.collective "all_reduce" %own of 2 : tensor<3x4xf32> to tensor<3x4xf32>
  func.return %y : tensor<3x4xf32>
}
"""


def test_a_model_of_two_devices_runs_on_two_and_is_judged_on_each(tmp_path, capsys):
    text, given, out = tmp_path / "m.graph", str(tmp_path / "x.npz"), str(tmp_path / "y.npz")
    text.write_text(SUM)
    x = np.arange(24, dtype=np.float32).reshape(6, 4)
    np.savez(given, x=x)
    words = ["--target", "reference", "--devices", "2", "--input", given, "--check", "launches"]
    assert main(["run", str(text), *words, "--out", out]) == 0
    told = capsys.readouterr().out
    assert "on 2 devices of reference" in told and "y: fp32[3, 4], the same on each device" in told
    assert told.count("1 of 1 launches within their bounds") == 2
    with np.load(out) as found:
        assert np.array_equal(found["y"], np.stack([x[:3] + x[3:]] * 2))
    assert main(["run", str(text), *words, "--json"]) == 0
    assert [one["launches"][0]["ok"] for one in json.loads(capsys.readouterr().out)["certificates"]] == [True, True]


def test_the_time_of_a_model_of_two_devices_is_told_and_drawn_with_every_launch_of_every_rank(tmp_path, capsys):
    text, drawn = tmp_path / "m.graph", tmp_path / "t.json"
    text.write_text(SUM)
    words = ["run", str(text), "--target", "nvidia-sm80"]
    assert main([*words, "--json", "--timeline", str(drawn)]) == 0
    time = json.loads(capsys.readouterr().out)["time"]
    assert [(one["rank"], one["communicates"]) for one in time["launches"]] == [(0, True), (1, True)]
    assert time["seconds"] == max(one["end"] for one in time["launches"]) > time["parts"]["launch"] > 0
    named = [event for event in json.loads(drawn.read_text())["traceEvents"] if event["name"] == "all_reduce1"]
    assert len(named) == 2
    assert main([*words, "--profile"]) == 0
    assert "us on 8xA100-SXM4-80GB" in (told := capsys.readouterr().out) and "us  all_reduce1 (all ranks together)" in told
    assert main(["run", str(text), "--target", "reference", "--time"]) == 0
    assert "time on devices unknown: reference has no model of time" in capsys.readouterr().out


def test_mistakes_with_devices_and_text_are_told_with_their_codes(path, tmp_path, capsys):
    two, other, bad = tmp_path / "m.graph", tmp_path / "n.graph", tmp_path / "b.graph"
    two.write_text(SUM)
    other.write_text("func.func private @f() -> ()")
    bad.write_bytes(b"\xff")
    for words, code in [
        ([str(two), "--devices", "4"], "TFW0367"), ([path, "--devices", "2"], "TFW0367"), ([str(other)], "TFW0402"),
        ([str(two), "--check", "launches", "--time"], "TFW0917"), ([path, "--time"], "TFW0917"),
        ([str(two), "--target", "reference", "--timeline", "t.svg"], "TFW0917"), ([str(two), "--timeline", "t.txt"], "TFW0917"),
        ([str(tmp_path / "none.graph")], "TFW0930"), ([str(bad)], "TFW0930"),
        ([str(two), "--fuse", "none"], "TFW0917"), ([str(two), "--target", "cpu"], "TFW0873"),
    ]:
        assert main(["run", *words]) != 0, words
        assert code in capsys.readouterr().err, words


def test_a_node_is_simulated_whatever_the_environment_says(tmp_path, capsys, monkeypatch):
    text, plan = str(tmp_path / "m.graph"), str(tmp_path / "m.tfm")
    (tmp_path / "m.graph").write_text(SUM)
    assert main(["compile", text, "--target", "reference", "-o", plan]) == 0
    assert main(["run", plan, "--executor", "hw"]) == 2
    assert "TFW0917" in capsys.readouterr().err
    monkeypatch.setenv("TILEFW_EXECUTOR", "hw")
    assert main(["run", plan, "--executor", "sim"]) == 0


@pytest.mark.parametrize(
    ("signature", "results"),
    [
        ("%x : tensor<4xindex>", "tensor<4xindex>"), ("%x : f32", "f32"), ("%x : tensor<?xf32>", "tensor<?xf32>"),
        ('%x : tensor<4xf32> {graph.dtype = "fp99"}', "tensor<4xf32>"),
        ('%x : tensor<4xf32> {graph.dtype = "fp16"}', "tensor<4xf32>"),
        ("%x : tensor<4xf32> {graph.name = 3 : i32}", "tensor<4xf32>"), ("%x : tensor<4xf32>", "tensor<4xf32>, tensor<4xf32>"),
    ],
)
def test_text_that_is_no_model_is_told(signature, results, tmp_path, capsys):
    count = results.count("tensor<4xf32>, ") + 1
    values = ", ".join(["%x"] * count)
    names = ' attributes {graph.outputs = ["y"]}'
    (tmp_path / "m.graph").write_text(
        f"func.func @m({signature}) -> ({results}){names} {{\n  func.return {values} : {results}\n}}"
    )
    assert main(["run", str(tmp_path / "m.graph"), "--target", "reference"]) == 1
    assert "TFW0402" in capsys.readouterr().err


def test_inputs_in_parts_are_drawn_whole(tmp_path, capsys):
    (tmp_path / "m.graph").write_text(SUM)
    assert main(["run", str(tmp_path / "m.graph"), "--target", "reference", "--check", "launches"]) == 0
    assert "pass" in capsys.readouterr().out
