"""Machine files with other delays, slices, banks, lanes, planes or ALUs: programs are right, timed and their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from launches import LibraryLaunch, bound, memory

from tilefw.api import CodeError, CompileError
from tilefw_spatial import container, text
from tilefw_spatial.backend import MACHINE_FILE, SpatialBackend
from tilefw_spatial.check import check
from tilefw_spatial.machine import Machine, load, read
from tilefw_spatial.pipeline import compile_kernel
from tilefw_spatial.program import SpatialProgram
from tilefw_spatial.simulate.device import simulate
from tilefw_spatial.simulate.transfers import HostBuffer
from tilefw_spatial.target import SDM1
from tilefw_spatial.tick import TickArray
from tilefw_spatial.tick import simulate as simulate_slowly

SHIPPED = (files("tilefw_spatial") / "data" / "sdm-1.yaml").read_text(encoding="utf-8")


def text_of(name: str, counts: Mapping[str, int] | None = None, delays: Mapping[str, int] | None = None) -> str:
    """A machine file with other counts and delays than the packaged one."""
    document = yaml.safe_load(SHIPPED)
    document["name"] = name
    for entries, changes in ((document, counts or {}), (document["delays"], delays or {})):
        for key, value in changes.items():
            entries[key]["value"] = value
    return yaml.safe_dump(document)


def lanes(superlanes: int) -> dict[str, int]:
    """The counts of a machine of so many superlanes: planes have a column and a row of int8 for each lane."""
    return {"superlanes": superlanes, "columns": 16 * superlanes, "depth_int8": 16 * superlanes, "depth_pair": 8 * superlanes,
            "vector_words": superlanes}


TEXTS = {
    "delays": text_of("delays", {"epoch": 300, "delay_step": 8}, {
        "alu": 8, "transcendental": 24, "read": 7, "write": 4, "multiply_pair": 31, "drain": 9, "switch": 6, "switch_across": 29,
        "notify": 41, "link": 190, "load_weights": 23, "install_weights": 26,
    }),
    "slices": text_of("slices", {"slices": 60, "rows": 1024, "accumulator_rows": 64}),
    "banks": text_of("banks", {"slices": 30, "banks": 1, "rows": 2048, "accumulator_banks": 1}),
    "narrow": text_of("narrow", {**lanes(10), "accumulator_rows": 1024}),
    "even": text_of("even", lanes(16)),
    "alus": text_of("alus", {"alus": 6, "delay_steps": 2}),
    "steps": text_of("steps", {"alus": 12, "delay_step": 1}, {"alu": 1, "transcendental": 2}),
}
MACHINES = {name: read(shown) for name, shown in TEXTS.items()}
LAUNCHES: list[tuple[str, dict[str, Any], int]] = [
    ("vector_add", {"n": 3000}, 1), ("softmax", {"rows": 7, "columns": 40}, 1), ("matmul", {"m": 70, "n": 50, "k": 90}, 1),
    ("transpose", {"rows": 20, "columns": 30}, 1), ("matmul", {"m": 20, "n": 48, "k": 40, "dtype": "fp16"}, 2),
]


def ran(launch: LibraryLaunch, program: SpatialProgram, machine: Machine) -> list[np.ndarray]:
    """The memory after a run, in which both simulators and the prediction agree."""
    fast, slow = ([storage.copy() for storage in memory(launch.passed)] for _ in range(2))
    places = [launch.launch.buffers.get(parameter.name) for parameter in program.parameters]
    done = simulate(program, machine, [None if b is None else HostBuffer("", fast[b.storage], b.offset) for b in places])
    ticked = simulate_slowly(program, machine, [None if b is None else TickArray("", slow[b.storage], b.offset) for b in places])
    assert (done.findings.all, ticked.findings, check(program, machine)) == ((), (), [])
    assert done.cycles == ticked.cycles == program.cycles
    assert all(np.array_equal(a, b) for a, b in zip(fast, slow, strict=True))
    return fast


@cache
def usual(number: int) -> tuple[LibraryLaunch, list[np.ndarray]]:
    """A launch, and the memory after its run on the packaged machine."""
    kernel, parameters, chips = LAUNCHES[number]
    launch = bound(kernel, parameters)
    return launch, ran(launch, compile_kernel(launch.module(), launch.launch, load(), chips, "k").program, load())


@pytest.mark.parametrize("other", MACHINES.values(), ids=lambda machine: machine.name)
@pytest.mark.parametrize("number", range(len(LAUNCHES)), ids=lambda number: "-".join(map(str, LAUNCHES[number][::2])))
def test_programs_for_another_machine_are_right_and_timed(number: int, other: Machine) -> None:
    launch, expected = usual(number)
    made = compile_kernel(launch.module(), launch.launch, other, LAUNCHES[number][2], "k").program
    read_back = container.read(container.write(made, other), "other.sdm", other)
    assert all(np.array_equal(a, b) for a, b in zip(expected, ran(launch, read_back, other), strict=True))
    shown = text.render(read_back, other)
    assert text.render(text.parse(shown, "other.s", other), other) == shown


OTHERS = ("delays", "slices", "narrow", "even", "alus", "steps")
LARGER = ("attention", "int8_matmul", "layernorm", "embedding")


@pytest.mark.parametrize(("kernel", "name"), [  # an ordinary run takes every second in turn, the rest is a campaign
    pytest.param(kernel, name, id=f"{kernel}-{name}", marks=pytest.mark.campaign if (i + j) % 2 else ())
    for i, kernel in enumerate(LARGER) for j, name in enumerate(OTHERS)
])
def test_larger_kernels_take_the_predicted_cycles_on_another_machine(kernel: str, name: str) -> None:
    launch = bound(kernel, {})
    program = compile_kernel(launch.module(), launch.launch, MACHINES[name]).program
    storages = [storage.copy() for storage in memory(launch.passed)]
    places = [launch.launch.buffers.get(parameter.name) for parameter in program.parameters]
    done = simulate(program, MACHINES[name], [None if b is None else HostBuffer("", storages[b.storage], b.offset) for b in places])
    assert (done.findings.all, check(program, MACHINES[name]), done.cycles) == ((), [], program.cycles)


@pytest.mark.parametrize("name", ["delays", "narrow", "even"])
def test_what_a_machine_has_changes_its_cycles(name: str) -> None:
    launch = bound("softmax", {"rows": 400, "columns": 500})
    cycles = {machine.name: compile_kernel(launch.module(), launch.launch, machine).program.cycles
              for machine in (load(), MACHINES[name])}
    assert len(set(cycles.values())) == 2, cycles


def test_machines_refuse_each_other_s_programs() -> None:
    launch, other = bound("vector_add", {"n": 700}), read(text_of("sdm-1", {}, {"read": 7}))
    made = compile_kernel(launch.module(), launch.launch, other).program
    data, shown = container.write(made, other), text.render(made, other)
    for attempt in (lambda: container.read(data, "other.sdm", load()), lambda: container.write(made, load()),
                    lambda: simulate(made, load(), []), lambda: simulate_slowly(made, load(), []),
                    lambda: text.parse(shown, "other.s", load())):
        with pytest.raises(CodeError) as caught:
            attempt()
        assert caught.value.code == "TFW0737"


REFUSED: list[tuple[dict[str, int], dict[str, int], str]] = [
    ({"alus": 17}, {}, r"the instruction words needs alus up to 16 .*, not 17"),
    (lanes(21), {}, r"the instruction words needs lanes up to 320 .*, not 336"),
    ({"columns": 160}, {}, r"arrange needs columns = lanes.*, not 160"),
    ({"depth_pair": 320}, {}, r"arrange needs 2 · depth_pair = lanes.*, not 320"),
    ({"planes": 4}, {}, r"the instruction words needs planes = 2 .*, not 4"),
    ({}, {"multiply_pair": 6}, r"the units across superlanes needs delays.multiply_pair at least superlanes.*, not 6"),
    ({}, {"switch_across": 19}, r"the units across superlanes needs delays.switch_across at least superlanes.*, not 19"),
    ({"position_cycles": 2}, {}, r"schedule needs position_cycles = 1 .*, not 2"),
    ({}, {"alu": 8}, r"chain needs delays.alu = delay_step.*, not 8"),
    ({}, {"transcendental": 13}, r"chain needs delays.transcendental a multiple .*, not 13"),
]


@pytest.mark.parametrize(("counts", "delays", "message"), REFUSED)
def test_a_machine_without_stages_is_refused_with_the_stage(counts: dict[str, int], delays: dict[str, int], message: str) -> None:
    launch = bound("vector_add", {"n": 700})
    with pytest.raises(CompileError, match=message) as caught:
        compile_kernel(launch.module(), launch.launch, read(text_of("other", counts, delays)))
    assert caught.value.code == "TFW0739"


def test_the_environment_names_a_machine_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "narrow.yaml"
    path.write_text(TEXTS["narrow"], encoding="utf-8")
    backend = SpatialBackend(SDM1)
    usual = backend.toolchain_digest()
    monkeypatch.setenv(MACHINE_FILE, str(path))
    assert backend.machine.hash == MACHINES["narrow"].hash == backend.toolchain_digest() != usual
    path.write_text(TEXTS["alus"], encoding="utf-8")
    os.utime(path, ns=(0, 0))
    assert backend.machine.hash == MACHINES["alus"].hash
    path.write_text("name: [", encoding="utf-8")
    for name in (str(path), str(tmp_path / "none.yaml")):
        monkeypatch.setenv(MACHINE_FILE, name)
        with pytest.raises(CodeError) as caught:
            _ = backend.machine
        assert caught.value.code == "TFW0739"


def test_the_machine_file_of_the_docs_runs_on_the_command_line(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "spatial.md").read_text(encoding="utf-8")
    entries, command = (re.search(rf"```{kind}\n(.*?)```", page, re.DOTALL) for kind in ("yaml", "sh"))
    assert entries and command
    setting, _, called = command[1].strip().partition(" tilefw ")
    name, _, path = setting.partition("=")
    assert name == MACHINE_FILE
    half = {**yaml.safe_load(SHIPPED), **yaml.safe_load(entries[1])}
    wide = {**half, "columns": {"value": 320, "origin": "ours", "source": "more columns than lanes"}}
    done, refused = (_called(called.split(), tmp_path, path, machine) for machine in (half, wide))
    assert done.returncode == 0, done.stdout + done.stderr
    said = refused.stdout + refused.stderr
    assert refused.returncode and "TFW0739" in said and "arrange needs columns = lanes" in said and "Traceback" not in said


def _called(arguments: list[str], folder: Path, name: str, machine: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """The command line in a folder with a machine file."""
    (folder / name).write_text(yaml.safe_dump(machine), encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-m", "tilefw", *arguments], env={**os.environ, MACHINE_FILE: name, "TILEFW_CACHE": "0"}, cwd=folder,
        capture_output=True, text=True, timeout=120,
    )


def test_listing_targets_says_the_packaged_machine_s_memory() -> None:
    assert SDM1.limits["memory_bytes"] == load(SDM1.chip).capacity


def test_a_name_is_no_path() -> None:
    for name in ("../data/sdm-1", "/etc/machine.yaml", "other.yaml"):
        with pytest.raises(FileNotFoundError):
            load(name)
