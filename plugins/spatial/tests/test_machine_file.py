"""Another machine file, with other delays, fewer slices and shorter banks: programs for it are right, timed and its own."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from launches import Bound, bound, memory

from tilefw.api import CodeError, CompileError
from tilefw_spatial import container, text
from tilefw_spatial.check import check
from tilefw_spatial.machine import Machine, load
from tilefw_spatial.pipeline import compile_kernel
from tilefw_spatial.program import Program
from tilefw_spatial.simulate.device import simulate
from tilefw_spatial.simulate.transfers import HostBuffer
from tilefw_spatial.tick import HostArray
from tilefw_spatial.tick import simulate as simulate_slowly

CHANGES = {
    "slices: {value: 44": "slices: {value: 30", "rows: {value: 4096, origin: published": "rows: {value: 1024, origin: published",
    "read: {value: 5": "read: {value: 7", "write: {value: 2": "write: {value: 4",
    "multiply_pair: {value: 24": "multiply_pair: {value: 31",
    "drain: {value: 4": "drain: {value: 9", "switch: {value: 4": "switch: {value: 6", "notify: {value: 35": "notify: {value: 41",
    "link: {value: 217": "link: {value: 190", "epoch: {value: 252": "epoch: {value: 300",
    "load_weights: {value: 20": "load_weights: {value: 23",
    "install_weights: {value: 20": "install_weights: {value: 26",
}
LAUNCHES: list[tuple[str, dict[str, Any], int]] = [
    ("vector_add", {"n": 3000}, 1), ("softmax", {"rows": 7, "columns": 40}, 1), ("matmul", {"m": 70, "n": 50, "k": 90}, 1),
    ("transpose", {"rows": 20, "columns": 30}, 1), ("matmul", {"m": 20, "n": 48, "k": 40, "dtype": "fp16"}, 2),
]


def changed(path: Path, changes: dict[str, str]) -> Machine:
    shown = (files("tilefw_spatial") / "data" / "sdm-1.yaml").read_text(encoding="utf-8")
    for before, after in changes.items():
        assert shown.count(before) == 1, before
        shown = shown.replace(before, after)
    path.write_text(shown, encoding="utf-8")
    return load(path)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return changed(tmp_path_factory.mktemp("machine") / "other.yaml", CHANGES)


def ran(launch: Bound, program: Program, machine: Machine) -> list[np.ndarray]:
    """The memory after a run, in which both simulators and the prediction agree."""
    fast, slow = ([storage.copy() for storage in memory(launch.passed)] for _ in range(2))
    places = [launch.launch.buffers.get(parameter.name) for parameter in program.parameters]
    done = simulate(program, machine, [None if b is None else HostBuffer("", fast[b.storage], b.offset) for b in places])
    ticked = simulate_slowly(program, machine, [None if b is None else HostArray("", slow[b.storage], b.offset) for b in places])
    assert (done.findings.all, ticked.findings, check(program, machine)) == ((), (), [])
    assert done.cycles == ticked.cycles == program.cycles
    assert all(np.array_equal(a, b) for a, b in zip(fast, slow, strict=True))
    return fast


@pytest.mark.parametrize(("kernel", "parameters", "chips"), LAUNCHES)
def test_programs_for_another_machine_are_right_and_timed(
    kernel: str, parameters: dict[str, Any], chips: int, other: Machine
) -> None:
    launch = bound(kernel, parameters)
    usual = compile_kernel(launch.module(), launch.launch, load(), chips, "k").program
    made = compile_kernel(launch.module(), launch.launch, other, chips, "k").program
    read = container.read(container.write(made, other), "other.sdm", other)
    assert made.cycles != usual.cycles
    assert all(np.array_equal(a, b) for a, b in zip(ran(launch, usual, load()), ran(launch, read, other), strict=True))
    shown = text.render(read, other)
    assert text.render(text.parse(shown, "other.s", other), other) == shown


def test_machines_refuse_each_other_s_programs(other: Machine) -> None:
    launch = bound("vector_add", {"n": 700})
    made = compile_kernel(launch.module(), launch.launch, other).program
    data, shown = container.write(made, other), text.render(made, other)
    for attempt in (lambda: container.read(data, "other.sdm"), lambda: container.write(made), lambda: simulate(made, load(), []),
                    lambda: simulate_slowly(made, load(), []), lambda: text.parse(shown, "other.s")):
        with pytest.raises(CodeError) as caught:
            attempt()
        assert caught.value.code == "TFW0737"


def test_what_the_compiler_takes_as_given_is_refused_by_name(tmp_path: Path) -> None:
    machine = changed(tmp_path / "narrow.yaml", {"alus: {value: 16": "alus: {value: 8", "  alu: {value: 4": "  alu: {value: 8"})
    launch = bound("vector_add", {"n": 700})
    with pytest.raises(CompileError, match=r"alus = 16, not 8, delays.alu = 4, not 8") as caught:
        compile_kernel(launch.module(), launch.launch, machine)
    assert caught.value.code == "TFW0739"


def test_a_name_is_no_path() -> None:
    for name in ("../data/sdm-1", "/etc/machine.yaml", "other.yaml"):
        with pytest.raises(FileNotFoundError):
            load(name)
