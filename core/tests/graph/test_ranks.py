"""Models of several ranks: their text and NumPy's meaning, plans on nodes of every simulator, a certificate of each rank."""

from __future__ import annotations

import gc
from dataclasses import replace

import numpy as np
import pytest

import tilefw
from tilefw.api.device import Scalar
from tilefw.api.errors import CheckError, IRError, UnsupportedError, UsageError
from tilefw.distributed.node_time import node_time
from tilefw.graph import plan_file
from tilefw.graph.builder import ModuleBuilder
from tilefw.graph.compile_graph import compile_graph
from tilefw.graph.dialect.text import parse_graph
from tilefw.graph.emit.model import kernel_graph
from tilefw.graph.node_certificate import certified_on_node
from tilefw.graph.node_profile import profiled_on_node
from tilefw.graph.node_session import NodeSession
from tilefw.graph.rank_meaning import run_on_ranks
from tilefw.graph.session import Session
from tilefw.kernels.distributed.all_reduce import all_reduce

RANKS, ROWS, WIDTH, HIDDEN = 4, 8, 32, 48


def numbers(shape, seed):
    """Small whole numbers: every sum of them is exact, in any order."""
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(np.float32)


X, UP, DOWN = numbers((ROWS, WIDTH), 1), numbers((WIDTH, HIDDEN), 2), numbers((HIDDEN, WIDTH), 3)


def feed_forward():
    """x + relu(x · up) · down, of which each rank has columns of `up` and rows of `down`."""
    b = ModuleBuilder()
    x = b.input("x", "fp32", X.shape)
    hidden = b.map("maxf", b.matmul(x, b.part(b.constant(UP, "fp32", "up"), 1, RANKS)), 0.0)
    share = b.matmul(hidden, b.part(b.constant(DOWN, "fp32", "down"), 0, RANKS))
    b.output("y", b.map("addf", b.collective("all_reduce", share, RANKS), x))
    return b.module()


WANTED = np.maximum(X @ UP, 0) @ DOWN + X


def test_the_ranks_of_a_model_mean_what_the_whole_model_means_and_its_text_reads_back():
    module = feed_forward()
    again = parse_graph(str(module))
    assert str(again) == str(module)
    for outputs in run_on_ranks(again, [X.astype(np.float64)]):
        np.testing.assert_array_equal(outputs[0], WANTED)


@pytest.mark.parametrize("target", ["reference", "nvidia-sm80", "amd-cdna3"])
def test_a_split_model_is_certified_on_every_rank_of_a_node(target):
    plan = compile_graph(kernel_graph(feed_forward()), target)
    assert plan.constant_bytes == (UP.nbytes + DOWN.nbytes) // RANKS
    with NodeSession(plan) as session:
        found = certified_on_node(session, {"x": X})
        assert found.ok and len(found.ranks) == RANKS
        for rank in found.ranks:
            assert [one.label for one in rank.launches] == ["contract1", "contract2", "all_reduce1", "pointwise1"]
            np.testing.assert_array_equal(rank.outputs["y"], WANTED)
            assert rank.measured["y"].absolute == 0
        for outputs in session.run({"x": X}):  # memory of the run before is gone, and the meeting words begin anew
            np.testing.assert_array_equal(outputs["y"], WANTED)


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "int32"])
def test_every_collective_does_what_numpy_does(dtype):
    b = ModuleBuilder()
    x = b.part(b.input("x", dtype, (3, RANKS * 8)), 1, RANKS)
    own = b.transpose(x, [1, 0])
    for kind in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all"):
        if dtype != "int32" or kind in ("all_gather", "all_to_all"):
            b.output(kind, b.collective(kind, own, RANKS))
    module = b.module()
    given = numbers((3, RANKS * 8), 4)
    wanted = run_on_ranks(module, [given.astype(np.float64 if dtype != "int32" else np.int32)])
    plan = compile_graph(kernel_graph(module), "reference")
    assert plan.divided == {"x": 1} and plan.whole_input("x").shape == (3, RANKS * 8)
    kinds = {"fp32": np.float32, "fp16": np.float16, "int32": np.int32}
    with NodeSession(plan) as session:
        found = certified_on_node(session, {"x": given.astype(kinds[dtype])})
    assert found.ok
    for rank, due in zip(found.ranks, wanted, strict=True):
        for array, values in zip(rank.outputs.values(), due, strict=True):
            np.testing.assert_array_equal(array, values)


def test_a_collective_that_leaves_a_part_out_is_not_certified():
    plan = compile_graph(kernel_graph(feed_forward()), "reference")
    steps = list(plan.steps)
    (place,) = (number for number, step in enumerate(steps) if step.transfer is not None)
    names = [parameter.name for parameter in plan.kernels[steps[place].kernel].entry.parameters]
    arguments = list(steps[place].arguments)
    count = arguments[names.index("n")]
    assert isinstance(count, Scalar)
    arguments[names.index("n")] = replace(count, value=ROWS * WIDTH - 1)
    steps[place] = replace(steps[place], arguments=tuple(arguments))
    with NodeSession(replace(plan, steps=tuple(steps)), checks="none") as session:
        found = certified_on_node(session, {"x": X})
    assert not found.ok
    assert [one.label for one in found.ranks[1].launches if not one.ok] == ["all_reduce1"]
    with NodeSession(replace(plan, steps=tuple(steps))) as session, pytest.raises(CheckError, match="rank 0: ") as caught:
        session.run({"x": X})  # the next launch reads what nobody has written
    assert "in the model's call pointwise1" in (caught.value.note or "")


def test_a_plan_for_a_node_is_one_file(tmp_path):
    plan = compile_graph(kernel_graph(feed_forward()), "reference")
    digest = plan_file.save(plan, tmp_path / "m.tfm")
    again = plan_file.load(tmp_path / "m.tfm")
    assert plan_file.save(again, tmp_path / "again.tfm") == digest
    with NodeSession(again) as session:
        assert all(np.array_equal(outputs["y"], WANTED) for outputs in session.run({"x": X}))


def test_mistakes_with_ranks_are_told():
    b = ModuleBuilder()
    x = b.input("x", "fp32", (8, 4))
    b.output("y", b.map("addf", b.collective("all_gather", b.part(x, 0, 2), 2), x))
    with pytest.raises(UnsupportedError, match="in parts along one axis and otherwise too"):
        kernel_graph(b.module())
    b = ModuleBuilder()
    x = b.input("x", "fp32", (8, 4))
    b.output("y", b.collective("all_reduce", b.collective("all_reduce", x, 2), 4))
    with pytest.raises(UsageError, match="of 2 and of 4 ranks"):
        kernel_graph(b.module())
    with pytest.raises(UsageError, match="a node of 4 devices"):
        Session(compile_graph(kernel_graph(feed_forward()), "reference"))
    wrong = 'func.func @m(%x : tensor<6x4xf32>) -> tensor<6x4xf32> {{\n  {}\n  func.return %x : tensor<6x4xf32>\n}}'
    for line, message in [
        ('%a = graph.collective "all_to_all" %x of 4 : tensor<6x4xf32> to tensor<6x4xf32>', "no 4 equal parts along dim 0"),
        ('%a = graph.collective "sum" %x of 2 : tensor<6x4xf32> to tensor<6x4xf32>', "is none of all_reduce"),
        ('%a = graph.collective "all_gather" %x of 2 : tensor<6x4xf32> to tensor<6x4xf32>', "gives tensor<12x4xf32>"),
        ("%a = graph.part %x axis 0 of 4 : tensor<6x4xf32> to tensor<2x4xf32>", "no 4 equal parts along axis 0"),
        ("%a = graph.part %x axis 0 of 0 : tensor<6x4xf32> to tensor<2x4xf32>", "is of 0 ranks"),
    ]:
        with pytest.raises(IRError, match=message):
            parse_graph(wrong.format(line))


def test_a_scalar_is_an_input_of_every_rank():
    b = ModuleBuilder()
    x, scale = b.input("x", "fp32", X.shape), b.input("scale", "fp32", ())
    b.output("y", b.map("mulf", b.collective("all_reduce", x, 2), b.broadcast(scale, X.shape)))
    with NodeSession(compile_graph(kernel_graph(b.module()), "reference")) as session:
        for outputs in session.run({"x": X, "scale": np.float32(3)}):
            np.testing.assert_array_equal(outputs["y"], 6 * X)


def test_two_sessions_are_open_on_one_node_at_once():
    plan = compile_graph(kernel_graph(feed_forward()), "reference")
    with NodeSession(plan) as one, NodeSession(plan) as other:
        for session in (one, other, one):
            assert all(np.array_equal(outputs["y"], WANTED) for outputs in session.run({"x": X}))


@pytest.mark.parametrize("axis", [0, 1])
def test_products_by_parts_of_several_weights_are_one_product(axis):
    """Queries, keys and values: the merged weight has each rank's columns together, or all columns of each rank's rows."""
    rows, widths = 8, (12, 8, 16)
    weights = [numbers((rows, width), seed) for seed, width in enumerate(widths)]
    b = ModuleBuilder()
    x = b.input("x", "fp32", (4, rows))
    left = b.part(x, 1, RANKS) if axis == 0 else x
    for number, weight in enumerate(weights):
        found = b.matmul(left, b.part(b.constant(weight, "fp32"), axis, RANKS))
        b.output(f"y{number}", b.collective("all_reduce", found, RANKS))
    module = b.module()
    given = numbers((4, rows), 9)
    wanted = run_on_ranks(module.clone(), [given.astype(np.float64)])
    plan = compile_graph(kernel_graph(module), "reference")
    assert sum(step.transfer is None and "contract" in step.label for step in plan.steps) == 1
    with NodeSession(plan) as session:
        for outputs, due in zip(session.run({"x": given}), wanted, strict=True):
            for array, values in zip(outputs.values(), due, strict=True):
                np.testing.assert_array_equal(array, values)


def test_a_models_time_has_its_collectives_as_they_take_alone_behind_kernels_that_ranks_make_at_once():
    b = ModuleBuilder()
    b.output("y", b.collective("all_reduce", b.map("addf", b.input("x", "fp32", X.shape), 1.0), 2))
    with NodeSession(compile_graph(kernel_graph(b.module()), "nvidia-sm80")) as session:
        profile = profiled_on_node(session, {"x": X})
        again = profiled_on_node(session, {"x": X}).time
    assert all(np.array_equal(outputs["y"], 2 * (X + 1)) for outputs in profile.outputs)
    time = profile.time
    node = tilefw.node("nvidia-sm80", 2, trace=True)
    all_reduce(node, node.array(X), "one_shot", programs=1, block=1024)
    alone, (first, *_, last) = node_time(node), time.launches
    assert [(one.rank, one.communicates) for one in time.launches] == [(0, False), (1, False), (0, True), (1, True)]
    assert first.begin == last.begin - first.end == 0 and first.end < last.started  # rank 1's kernel ran beside rank 0's
    assert last.end - last.begin == pytest.approx(alone.seconds, rel=0.02)
    assert time.seconds == max(one.end for one in time.launches) == again.seconds == pytest.approx(sum(time.parts.values()))


def test_a_dropped_session_gives_its_heaps_back():
    plan = compile_graph(kernel_graph(feed_forward()), "reference")
    with NodeSession(plan) as session:
        bases = session.heap.bases
    NodeSession(plan).run({"x": X})
    gc.collect()
    with NodeSession(plan) as session:
        assert session.heap.bases == bases
