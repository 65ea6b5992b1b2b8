"""A session runs a plan on any device: right results, constants copied once, memory given back, and every launch judged."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
import small_model

import tilefw
import tilefw.language as tl
from tilefw.api.errors import CheckError, CompileError, LaunchError, UsageError
from tilefw.graph.certificate import certified
from tilefw.graph.compile_graph import compile_graph
from tilefw.graph.kernel_graph import GraphBuilder
from tilefw.graph.sampling import LaunchSample
from tilefw.graph.session import Session
from tilefw.kernels.reported_ratio import SPEC as REPORTED
from tilefw.kernels.vector_add import vector_add
from tilefw.runtime.executor import executor_for
from tilefw.runtime.plugins.loader import find_target

TARGETS = ["reference", "cpu-native", "nvidia-sm80"]
CONSTANT_BYTES = sum(array.nbytes for array in (small_model.W1, small_model.W2, small_model.BIAS, small_model.SCALE))


@pytest.mark.parametrize("target", TARGETS)
def test_every_launch_is_within_its_bounds_and_the_outputs_are_near_float64(target):
    given = small_model.x()
    with Session(small_model.plan(target)) as session:
        certificate = certified(session, {"x": given})
    assert certificate.ok and [launch.label for launch in certificate.launches] == ["norm", "up", "down", "add", "softmax"]
    assert all(launch.comparisons for launch in certificate.launches)
    assert max(launch.worst for launch in certificate.launches) > 0, "nothing was rounded?"
    found, due = certificate.outputs["probabilities"], small_model.expected(given)
    assert np.abs(found - due).max() < 1e-6
    assert certificate.measured["probabilities"].absolute == pytest.approx(np.abs(found - due).max(), abs=5e-8)


@pytest.mark.parametrize("target", TARGETS)
def test_constants_are_copied_once_and_nothing_between_launches(target):
    with Session(small_model.plan(target)) as session:
        assert (session.written_bytes, session.read_bytes) == (CONSTANT_BYTES, 0)
        results = [session.run({"x": small_model.x(seed)}) for seed in range(3)]
        size = small_model.x().nbytes
        copied = 0 if session.executor == "hw" else 3 * size  # the processor reads inputs where they lie
        assert (session.written_bytes, session.read_bytes) == (CONSTANT_BYTES + copied, 3 * 2 * size)
    for seed, result in enumerate(results):
        assert np.abs(result["probabilities"] - small_model.expected(small_model.x(seed))).max() < 1e-6


def test_inputs_are_read_where_they_lie_unless_kernels_cannot():
    """An array that does not begin where kernels expect it is copied; so is one that a launch writes; and who looks between
    launches sees the arena's own."""
    raw = np.zeros(small_model.x().nbytes + 4, np.uint8)
    session = Session(small_model.plan("cpu-native"))
    with session:
        odd = raw[4:].view(np.float32).reshape(small_model.x().shape)
        for seed, place in enumerate((small_model.x(0), odd, small_model.x(2), odd)):
            place[...] = small_model.x(seed)
            before = session.written_bytes
            due = small_model.expected(small_model.x(seed))
            assert np.abs(session.run({"x": place})["probabilities"] - due).max() < 1e-6
            assert session.written_bytes - before == (place.nbytes if place is odd else 0)
            assert np.abs(session.run({"x": place}, progress=lambda _: None)["probabilities"] - due).max() < 1e-6
    model = GraphBuilder()
    x = model.input("x", "fp32", (256,))
    model.call("in place", vector_add, {"x_ptr": x, "y_ptr": x, "out_ptr": x, "n": 256}, (2, 1, 1), {"BLOCK": 128})
    model.output("y", x)
    with Session(compile_graph(model.graph(), "cpu-native")) as session:
        given = np.ones(256, np.float32)
        assert (session.run({"x": given})["y"] == 2).all() and (given == 1).all()


@pytest.mark.parametrize("target", TARGETS)
def test_sessions_side_by_side_do_not_disturb_each_other_and_give_all_memory_back(target):
    found = find_target(target)
    device = executor_for(found, "default").device
    before = dict(device.memory_info())
    plan = small_model.plan(target)
    sessions = [Session(plan), Session(plan)]
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(sessions[seed % 2].run, {"x": small_model.x(seed)}) for seed in range(6)]
        results = [run.result()["probabilities"] for run in runs]
    for session in sessions:
        session.close()
    assert dict(device.memory_info()) == before
    for seed, result in enumerate(results):
        assert np.abs(result - small_model.expected(small_model.x(seed))).max() < 1e-6


def test_a_launch_with_wrong_code_is_told_by_its_name_and_no_other():
    plan = small_model.plan("reference")
    broken = plan.kernels[plan.steps[4].kernel]
    assert broken.artifact.text.count("exp") >= 1
    code = replace(broken.artifact, text=broken.artifact.text.replace("tile.exp", "tile.exp2"))
    assert code.text != broken.artifact.text
    kernels = tuple(replace(kernel, artifact=code) if kernel is broken else kernel for kernel in plan.kernels)
    with Session(replace(plan, kernels=kernels)) as session:
        certificate = certified(session, {"x": small_model.x()})
    assert not certificate.ok
    assert [launch.label for launch in certificate.launches if not launch.ok] == ["softmax"]
    assert certificate.measured["probabilities"].absolute > 1e-3


def test_a_read_of_what_no_launch_has_written_is_a_fault_with_the_calls_name():
    plan = small_model.plan("nvidia-sm80")
    with Session(replace(plan, steps=plan.steps[1:])) as session, pytest.raises(CheckError) as caught:
        session.run({"x": small_model.x()})
    assert caught.value.note is not None and "call up" in caught.value.note


def test_inputs_that_do_not_fit_are_told():
    given = small_model.x()
    wrong = [
        ({}, "'x' is missing"), ({"x": given, "y": given}, "no input 'y'"), ({"x": given[:4]}, "shape [8, 32], not [4, 32]"),
        ({"x": given.astype(np.float64)}, "elements of fp32, not float64"),
    ]
    with Session(small_model.plan("reference")) as session:
        for inputs, told in wrong:
            with pytest.raises(UsageError) as caught:
                session.run(inputs)
            assert caught.value.code == "TFW0360" and told in caught.value.message


def test_a_kernel_that_prints_is_refused():
    launch = REPORTED.prepare(REPORTED.resolve({}), np.random.default_rng(0))
    made = GraphBuilder()
    arguments = {
        name: made.temporary(name, value.dtype, value.array.shape) if hasattr(value, "array") else value
        for name, value in launch.arguments.items()
    }
    made.call("told", REPORTED.kernel, arguments, launch.grid, launch.constexprs, launch.keywords)
    with pytest.raises(CompileError) as caught:
        compile_graph(made.graph(), "nvidia-sm80")
    assert caught.value.code == "TFW0363" and "told" in str(caught.value.note)


def test_what_a_model_needs_is_told_where_the_device_has_not_so_much_memory():
    made = GraphBuilder()
    made.output("small", made.constant("weights", np.zeros(5, np.float32), "fp32"))
    made.output("large", made.input("x", "fp32", (1 << 58,)))
    with pytest.raises(LaunchError) as caught:
        Session(compile_graph(made.graph(), "cpu-native"))
    assert caught.value.code == "TFW0361" and f"{1 << 60:,} bytes for the arena" in caught.value.message
    note = f"the model takes 20 bytes for constants (the largest: weights 20) and {1 << 60:,} for the rest"
    assert str(caught.value.note).startswith(note)


def test_a_session_that_is_closed_runs_nothing():
    session = Session(small_model.plan("cpu-native"))
    session.close()
    session.close()
    with pytest.raises(LaunchError) as caught:
        session.run({"x": small_model.x()})
    assert caught.value.code == "TFW0361"


def test_a_run_within_a_run_of_one_session_is_refused(monkeypatch):
    """As a signal's handler would make it; it must neither wait for its own thread nor change the memory of the other."""
    session = Session(small_model.plan("cpu-native"))
    monkeypatch.setattr(session, "launch", lambda number: session.run({"x": small_model.x()}))
    with pytest.raises(LaunchError) as caught:
        session.run({"x": small_model.x()})
    assert caught.value.code == "TFW0361" and "under way" in caught.value.message
    monkeypatch.undo()
    assert session.run({"x": small_model.x()})


@tilefw.jit
def add_one(x_ptr, out_ptr):
    at = tl.arange(0, 16)
    tl.store(out_ptr + at, tl.load(x_ptr + at) + 1)


@tilefw.jit
def add_one_and_clear(x_ptr, out_ptr):
    at = tl.arange(0, 16)
    tl.store(out_ptr + at, tl.load(x_ptr + at) + 1)
    tl.store(x_ptr + at, tl.zeros((16,), tl.float16))


def _single(kernel, grid=(1, 1, 1)):
    made = GraphBuilder()
    x, out = made.input("x", "fp16", (16,)), made.temporary("out", "fp16", (16,))
    made.call("one", kernel, {"x_ptr": x, "out_ptr": out}, grid)
    made.output("y", out)
    return compile_graph(made.graph(), "reference")


def test_a_launch_that_changes_what_it_only_reads_is_told():
    plan, other = _single(add_one), _single(add_one_and_clear)
    code = replace(other.kernels[0].artifact, entries=plan.kernels[0].artifact.entries)
    assert [p.readonly for p in plan.kernels[0].entry.parameters if p.hidden is None] == [True, False]
    entry = replace(plan.kernels[0].entry, name=other.kernels[0].entry.name)
    kernel = replace(plan.kernels[0], artifact=replace(code, entries=(entry,)))
    with Session(replace(plan, kernels=(kernel,))) as session:
        certificate = certified(session, {"x": np.ones(16, np.float16)})
    assert {name: verdict.ok for name, verdict in certificate.launches[0].comparisons.items()} == {"out": True, "x": False}


def test_an_output_that_no_launch_writes_is_told():
    with pytest.raises(CompileError) as caught:
        _single(add_one, (0, 1, 1))
    assert caught.value.code == "TFW0363" and "'y'" in caught.value.message


def test_elements_of_another_type_of_the_same_size_and_what_is_no_array_are_told():
    with Session(_single(add_one)) as session:
        for given in (np.ones(16, ml_dtypes.bfloat16), np.ones(16, ">f2"), np.ones(16, np.int16), [[1], [1, 2]]):
            with pytest.raises(UsageError) as caught:
                session.run({"x": given})
            assert caught.value.code == "TFW0360"
        bits = np.ones(16, np.float16).view("V2")  # as numpy.load gives types that it does not know
        assert (session.run({"x": bits})["y"] == 2).all()


def test_a_constant_stays_as_it_was_given():
    made, array = GraphBuilder(), np.ones(4, np.float32)
    made.output("y", made.constant("w", array, "fp32"))
    array[:] = 2
    with Session(compile_graph(made.graph(), "reference")) as session:
        assert (session.run({})["y"] == 1).all()


def test_a_sample_of_a_launchs_programs_is_judged_and_the_next_launch_has_its_inputs():
    """A kernel that is wrong in one program of eight is found where that program runs, and not where it does not; the launch behind
    it has the right elements of all programs that did not run."""
    made = GraphBuilder()
    x, y, z = made.input("x", "fp32", (1024,)), made.temporary("y", "fp32", (1024,)), made.temporary("z", "fp32", (1024,))
    for label, source, result in (("first", x, y), ("second", y, z)):
        arguments = {"x_ptr": source, "y_ptr": source, "out_ptr": result, "n": 1024}
        made.call(label, vector_add, arguments, (8, 1, 1), {"BLOCK": 128}, {"num_warps": 1})
    made.output("z", z)
    plan = compile_graph(made.graph(), "nvidia-sm80")
    given = np.arange(1024, dtype=np.float32)
    with Session(plan) as session:
        assert session.samples
        certificate = certified(session, {"x": given}, LaunchSample(3))
    assert certificate.ok and [(one.programs, one.all_programs) for one in certificate.launches] == [(3, 8)] * 2
    assert np.array_equal(certificate.outputs["z"], 4 * given)
    chosen = LaunchSample(3).of((8, 1, 1), 0)
    assert chosen[0] == 0 and chosen[2] == 7 and chosen == LaunchSample(3).of((8, 1, 1), 0)
    assert LaunchSample(8).of((8, 1, 1), 0) is None

    for spoiled, found in ((chosen[1], True), (next(n for n in range(8) if n not in chosen), False)):
        with _Wrong(plan) as session:
            session.spoiled = spoiled
            certificate = certified(session, {"x": given}, LaunchSample(3))
        assert certificate.launches[0].ok is not found


class _Wrong(Session):
    """A session in which the first element of program `spoiled` is wrong."""

    spoiled = 0

    def launch(self, number, programs=None):
        report = super().launch(number, programs)
        element = replace(self.plan.steps[number].arguments[2], shape=(1,), offset=4 * 128 * self.spoiled)
        self.write(element, np.float32([-1]))
        return report


def test_what_no_program_of_a_launch_writes_is_judged_beside_a_sample():
    """The last program has nothing to write, and what it should have left alone is an input's."""
    made = GraphBuilder()
    x, y = made.input("x", "fp32", (1024,)), made.input("y", "fp32", (1024,))
    made.call("one", vector_add, {"x_ptr": x, "y_ptr": x, "out_ptr": y, "n": 896}, (8, 1, 1), {"BLOCK": 128}, {"num_warps": 1})
    made.output("y", y)
    plan, given = compile_graph(made.graph(), "nvidia-sm80"), np.arange(1024, dtype=np.float32)
    with Session(plan) as right, _Wrong(plan) as wrong:
        wrong.spoiled = 7
        found = [certified(session, {"x": given, "y": given}, LaunchSample(3)) for session in (right, wrong)]
    assert [one.ok for one in found] == [True, False]
    assert np.array_equal(found[0].outputs["y"], np.concatenate([2 * given[:896], given[896:]]))


def test_a_session_that_cannot_be_made_ready_gives_all_memory_back(monkeypatch):
    plan = small_model.plan("cpu-native")
    device = executor_for(find_target("cpu-native"), "default").device
    Session(plan).close()  # what dropped sessions had is free
    before = dict(device.memory_info())

    def failed(self):
        raise MemoryError

    monkeypatch.setattr(Session, "_made_ready", failed)
    with pytest.raises(MemoryError):
        Session(plan)
    assert dict(device.memory_info()) == before
