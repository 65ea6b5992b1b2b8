"""Launches linked into one program: each within its bounds, cycles as predicted in both simulators."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from linked_model import LinkedModel, given

import tilefw
import tilefw.language as tl
from tilefw.graph import plan_file
from tilefw.graph.certificate import certified
from tilefw.graph.compile_graph import compile_graph
from tilefw.graph.kernel_graph import GraphBuilder
from tilefw.graph.plan import ModelPlan
from tilefw.graph.session import Session
from tilefw.kernels.vector_add import vector_add
from tilefw_spatial.check import judge
from tilefw_spatial.container import read
from tilefw_spatial.machine import load
from tilefw_spatial.simulate.device import simulate
from tilefw_spatial.simulate.transfers import HostBuffer
from tilefw_spatial.tick import TickArray
from tilefw_spatial.tick import simulate as simulate_slowly

MACHINE = load()
X = given(32)


@cache
def plan(activation: str = "gelu") -> ModelPlan:
    """x + W2 · activation(W1 · x), the sum over a run of all elements."""
    model = LinkedModel(32)
    up = model.product("up", model.x, activation, model.rows("up"))
    down = model.product("down by", up, "none", model.rows("down"))
    model.made.output("y", model.added("residual", model.x, down, model.rows("y")))
    return compile_graph(model.made.graph(), "spatial-sdm1")


def test_a_model_is_one_program_that_stores_its_outputs_alone() -> None:
    (link,) = plan().links
    names = [plan().buffers[number].name for number in link.buffers]
    assert (link.first, link.count, link.ended) == (0, 3, "")
    assert names == ["x", "up weights", "down by weights", "y"]
    assert [parameter.readonly for parameter in link.artifact.entry().parameters] == [True, True, True, False]


def test_every_launch_of_a_linked_program_is_judged() -> None:
    with Session(plan()) as session:
        found = certified(session, {"x": X})
        assert session.counters["cycles"] == session.counters["cycles_predicted"] == plan().links[0].artifact.metadata["cycles"]
    assert found.ok
    assert [launch.label for launch in found.launches] == ["up", "down by", "residual"]


def test_a_linked_program_of_another_model_is_found_out() -> None:
    (link,), (other,) = plan().links, plan("relu").links
    with Session(replace(plan(), links=(replace(link, artifact=other.artifact),))) as session:
        found = certified(session, {"x": X})
    assert all(launch.ok for launch in found.launches) and not found.ok
    with Session(replace(plan(), links=(replace(link, observed=other.observed),))) as session:
        found = certified(session, {"x": X})
    assert [launch.ok for launch in found.launches] == [False, True, True]


@pytest.mark.parametrize("observed", [False, True])
def test_both_simulators_and_the_checker_agree_on_a_linked_program(observed: bool) -> None:
    (link,) = plan().links
    artifact, numbers = (link.observed, link.observed_buffers) if observed else (link.artifact, link.buffers)
    assert artifact.binary is not None
    program = read(artifact.binary, "linked", MACHINE)
    assert not judge(program, MACHINE).problems
    memories = [[_content(number) for number in numbers] for _ in range(2)]
    fast = simulate(program, MACHINE, [HostBuffer("", data, 0) for data in memories[0]])
    slow = simulate_slowly(program, MACHINE, [TickArray("", data, 0) for data in memories[1]])
    assert fast.cycles == slow.cycles == program.cycles
    assert all(np.array_equal(a, b) for a, b in zip(*memories, strict=True))


def _content(number: int) -> np.ndarray:
    buffer = plan().buffers[number]
    data = X.tobytes() if number == plan().inputs["x"].buffer else buffer.constant or bytes(buffer.nbytes)
    return np.frombuffer(data, np.uint8).copy()


def test_a_linked_plan_is_whole_in_its_file(tmp_path: Path) -> None:
    plan_file.save(plan(), tmp_path / "m.tfm")
    again = plan_file.load(tmp_path / "m.tfm")
    assert [(one.first, one.count, one.buffers) for one in again.links] == [(0, 3, plan().links[0].buffers)]
    with Session(again) as loaded, Session(plan()) as made:
        assert np.array_equal(loaded.run({"x": X})["y"], made.run({"x": X})["y"])


def test_a_program_ends_before_a_launch_that_writes_what_an_earlier_one_wrote() -> None:
    model = LinkedModel(32)
    first, y = model.product("a", model.x, "none", model.rows("first")), model.rows("y")
    model.added("b", first, model.x, y)
    model.added("c", first, first, y)
    model.made.output("y", model.added("d", y, model.x, model.rows("z")))
    made = compile_graph(model.made.graph(), "spatial-sdm1")
    assert [(link.first, link.count) for link in made.links] == [(0, 2), (2, 2)]
    assert made.links[0].ended == "it stores elements that an earlier launch stored"
    with Session(made) as session:
        assert certified(session, {"x": X}).ok


@tilefw.jit
def store_part(x_ptr, out_ptr, unread_ptr, FIRST: tl.constexpr):
    at = tl.arange(0, 64)
    tl.store(out_ptr + FIRST + at, tl.load(x_ptr + at))


def test_steps_that_write_parts_of_one_buffer_or_do_not_read_an_argument_are_judged_by_what_is_theirs() -> None:
    made = GraphBuilder()
    x, unread, cache = (made.input(name, "fp16", (extent,)) for name, extent in (("x", 64), ("unread", 8), ("cache", 128)))
    for first in (0, 64):
        arguments = {"x_ptr": x, "out_ptr": cache, "unread_ptr": unread}
        made.call(f"from {first} on", store_part, arguments, (1, 1, 1), {"FIRST": first})
    made.output("y", cache)
    plan = compile_graph(made.graph(), "spatial-sdm1")
    assert [(link.first, link.count) for link in plan.links] == [(0, 2)]
    inputs = {"x": X.reshape(-1)[:64], "unread": X[0, :8], "cache": X.reshape(-1)[:128]}
    with Session(plan) as session:
        found = certified(session, inputs)
    assert found.ok and np.array_equal(found.outputs["y"], np.tile(inputs["x"], 2))


def test_launches_on_several_chips_are_not_linked_nor_with_others() -> None:
    made = GraphBuilder()
    x = made.input("x", "fp16", (2048,))
    for label, keywords in (("a", {"chips": 2}), ("b", {"chips": 2}), ("c", {}), ("d", {}), ("e", {"chips": 2})):
        y = made.temporary(label, "fp16", (2048,))
        made.call(label, vector_add, {"x_ptr": x, "y_ptr": x, "out_ptr": y, "n": 2048}, (16, 1, 1), {"BLOCK": 128}, keywords)
        x = y
    made.output("y", x)
    (link,) = compile_graph(made.graph(), "spatial-sdm1").links
    assert (link.first, link.count, link.ended) == (2, 2, "it has other options of the target")


@tilefw.jit
def multiply_windows(x_ptr, weight_ptr, out_ptr):
    """Two successive rows of 32 elements are a row of a product."""
    row, k, n = tl.arange(0, 16)[:, None], tl.arange(0, 64), tl.arange(0, 32)[None, :]
    there = row + (k // 32)[None, :]
    x = tl.load(x_ptr + there * 32 + (k % 32)[None, :], mask=there < 16, other=0.0)
    tl.store(out_ptr + row * 32 + n, tl.dot(x, tl.load(weight_ptr + k[:, None] * 32 + n)).to(tl.float16))


def test_a_program_ends_before_a_launch_that_multiplies_windows_of_what_is_there() -> None:
    model = LinkedModel(32)
    weights = model.made.constant("windows", np.full((64, 32), 0.125, np.float16), "fp16")
    up = model.product("up", model.added("a", model.x, model.x, model.rows("h")), "none", model.rows("up"))
    out = model.rows("out")
    model.made.call("windows", multiply_windows, {"x_ptr": up, "weight_ptr": weights, "out_ptr": out}, (1, 1, 1))
    model.made.output("y", model.added("b", out, model.x, model.rows("y")))
    found = compile_graph(model.made.graph(), "spatial-sdm1").links
    ends = [(link.first, link.count, link.ended) for link in found]
    assert ends == [(0, 2, "it multiplies windows of what an earlier launch stored"), (2, 2, "")]


@tilefw.jit
def multiply(x_ptr, y_ptr, out_ptr):
    at = tl.arange(0, 256)
    tl.store(out_ptr + at, tl.load(x_ptr + at) * tl.load(y_ptr + at))


def test_a_product_that_a_launch_stores_is_rounded_before_the_next_one_adds_to_it() -> None:
    made = GraphBuilder()
    x, y, product = made.input("x", "fp32", (256,)), made.input("y", "fp32", (256,)), made.temporary("product", "fp32", (256,))
    total = made.temporary("total", "fp32", (256,))
    made.call("product", multiply, {"x_ptr": x, "y_ptr": x, "out_ptr": product}, (1, 1, 1))
    made.call("total", vector_add, {"x_ptr": product, "y_ptr": y, "out_ptr": total, "n": 256}, (2, 1, 1), {"BLOCK": 128})
    made.output("total", total)
    a, b = X.reshape(-1)[:256].astype(np.float32) / 3, X.reshape(-1)[256:512].astype(np.float32) / 7
    plan = compile_graph(made.graph(), "spatial-sdm1")
    with Session(plan) as session:
        found = certified(session, {"x": a, "y": b})
    assert len(plan.links) == 1 and found.ok
    assert np.array_equal(found.outputs["total"], a * a + b)


@tilefw.jit
def take_part(x_ptr, out_ptr):
    row, column = tl.arange(0, 16)[:, None], tl.arange(0, 256)[None, :]
    tl.store(out_ptr + row * 256 + column, tl.load(x_ptr + row * 512 + 256 + column))


def test_a_copy_of_a_part_of_a_product_is_what_the_product_stored() -> None:
    model = LinkedModel(512)
    whole, part = model.product("up", model.x, "none", model.rows("whole")), model.made.temporary("part", "fp16", (16, 256))
    model.made.call("part", take_part, {"x_ptr": whole, "out_ptr": part}, (1, 1, 1))
    model.made.output("y", part)
    with Session(compile_graph(model.made.graph(), "spatial-sdm1")) as session:
        found = certified(session, {"x": given(512)})
    assert found.ok
