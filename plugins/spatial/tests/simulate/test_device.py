"""The device holds a program to what it was made for, and keeps the host's bytes as other simulators do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hand_made import MACHINE, allocation, matrix, program

from tilefw.api import Artifact, BufferView, CodeError, LaunchError, LaunchOptions, Scalar
from tilefw_spatial.container import write
from tilefw_spatial.program import BoundParameter, HostTensor, QueueInst, SpatialProgram
from tilefw_spatial.simulate.device import Loaded, SpatialDevice
from tilefw_spatial.simulate.trace import activities

N = 5
OPTIONS = LaunchOptions()


def copy_program() -> SpatialProgram:
    """N vectors from MEM.E0 to MEM.E1, made for n = 1600."""
    timed = {
        "MEM.E0": [(0, QueueInst("RD", "", N, dst=0, step=1))],
        "MEM.E1": [(4, QueueInst("WR", "", N, a=0, step=1))],
    }
    tensors = [
        HostTensor("x", "in", allocation("uint8", N, [("MEM.E0", 0, 0)]), (matrix(0, N),)),
        HostTensor("z", "out", allocation("uint8", N, [("MEM.E1", 0, 0)]), (matrix(1, N),)),
    ]
    made = program(timed, tensors, [("x", "uint8"), ("z", "uint8")])
    return replace(made, parameters=(*made.parameters, BoundParameter("n", "scalar", "int32", value=N * 320)))


def loaded(device: SpatialDevice) -> Loaded:
    return device.load(Artifact("spatial-sdm1", "sdm", "", (), write(copy_program())))


def test_a_launch_moves_bytes_from_one_allocation_to_another() -> None:
    device = SpatialDevice(MACHINE)
    data = np.random.default_rng(0).integers(0, 256, N * 320).astype(np.uint8)
    x, z = device.allocate(N * 320 + 3), device.allocate(N * 320)
    device.write(x, data, 3)
    args = [BufferView(x, 3), BufferView(z), Scalar(N * 320, "int32")]
    report = device.launch(loaded(device), "kernel", (1, 1, 1), args, OPTIONS)
    assert not report.findings
    assert device.read(z, N * 320) == data.tobytes()
    assert report.counters["cycles"] == 4 + 2 + N - 1 + 1 + 19
    assert device.last is not None
    times = [(a.queue, a.begin, a.end, a.effect) for a in activities(device.last)]
    assert times == [("MEM.E0", 0, N, 9), ("MEM.E1", 4, 4 + N, 10)]


def test_what_the_host_never_wrote_is_reported_when_stored() -> None:
    device = SpatialDevice(MACHINE)
    x, z = device.allocate(N * 320), device.allocate(N * 320)
    device.write(x, bytes(640))
    report = device.launch(loaded(device), "kernel", (1, 1, 1), [BufferView(x), BufferView(z), Scalar(N * 320, "int32")], OPTIONS)
    found = report.findings[0]
    assert (found.code, found.message) == ("TFW0833", "what was never initialised is stored in MEM.E1 at cycle 8")
    assert found.instruction == "WR b0:0, sE0, n=5"


@pytest.mark.parametrize(("grid", "scalar", "entry", "text"), [
    ((2, 1, 1), 1600, "kernel", "made for the grid"),
    ((1, 1, 1), 1599, "kernel", "made for n = 1600, not 1599"),
    ((1, 1, 1), 1600, "other", "no entry 'other'"),
])
def test_other_arguments_than_the_programs_are_refused(grid: tuple[int, int, int], scalar: int, entry: str, text: str) -> None:
    device = SpatialDevice(MACHINE)
    x = device.allocate(N * 320)
    with pytest.raises(LaunchError, match=text):
        device.launch(loaded(device), entry, grid, [BufferView(x), BufferView(x), Scalar(scalar, "int32")], OPTIONS)


def test_wrong_kinds_and_counts_of_arguments_are_refused() -> None:
    device = SpatialDevice(MACHINE)
    x = device.allocate(N * 320)
    for args in ([BufferView(x)], [BufferView(x), Scalar(1, "int32"), Scalar(1600, "int32")], [BufferView(x)] * 3):
        with pytest.raises(LaunchError, match="TFW0347"):
            device.launch(loaded(device), "kernel", (1, 1, 1), args, OPTIONS)


def test_an_artifact_without_a_program_is_refused() -> None:
    with pytest.raises(CodeError, match="no assembled program"):
        SpatialDevice(MACHINE).load(Artifact("spatial-sdm1", "sdm", "", ()))


def test_a_budget_ends_a_program_that_issues_too_much() -> None:
    device = SpatialDevice(MACHINE)
    x = device.allocate(N * 320)
    args = [BufferView(x), BufferView(x), Scalar(1600, "int32")]
    with pytest.raises(CodeError, match="budget"):
        device.launch(loaded(device), "kernel", (1, 1, 1), args, LaunchOptions(budget=9 * 20))


@pytest.mark.parametrize(("dtype", "nbytes", "bound", "given", "taken"), [
    ("int64", 8, -(2**63) + 1, 2**63 + 1, True), ("int32", 4, -1, 2**32 - 1, True), ("int32", 4, -1, 2**31 - 1, False),
    ("int1", 1, 1, True, True), ("int1", 1, 0, True, False), ("fp32", 4, 0.1, float(np.float32(0.1)), True),
    ("fp32", 4, 0.1, 0.1001, False), ("fp32", 4, float("nan"), float("nan"), True), ("fp32", 4, 1.0, 1, True),
])
def test_a_scalar_is_the_one_that_was_bound_where_its_type_holds_both_alike(
    dtype: str, nbytes: int, bound: float, given: float, taken: bool
) -> None:
    assert BoundParameter("n", "scalar", dtype, nbytes, bound).takes(given) == taken
