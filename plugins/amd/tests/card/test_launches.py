"""A launch with the executor `hw` goes through the runtime library's functions and gives the right results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from served import CHIP, TARGET, TARGETS

import tilefw
import tilefw.language as tl
from hip_standin import CardModel, HipStandIn
from tilefw.api import TargetInfo
from tilefw.api.hardware import Card
from tilefw.runtime.module import Module
from tilefw.runtime.plugins.loader import find_target
from tilefw_amd.chips import chip_of


@tilefw.jit
def scale(x_ptr, out_ptr, factor, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, inside) * factor, inside)


@tilefw.jit
def programs(out_ptr):
    """How many programs there are along each axis, which the runtime passes."""
    here = tl.program_id(0) + tl.num_programs(0) * (tl.program_id(1) + tl.num_programs(1) * tl.program_id(2))
    tl.store(out_ptr + here, tl.num_programs(0) + 100 * tl.num_programs(1) + 10000 * tl.num_programs(2))


def test_a_command_with_the_executor_in_its_environment_runs_on_the_card(standin: HipStandIn) -> None:
    environment = {**os.environ, "TILEFW_EXECUTOR": "hw"}
    done = subprocess.run(
        [sys.executable, "-m", "tilefw", "run", "vector_add", "--target", TARGET.name, "--json"], capture_output=True, text=True,
        env=environment, timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    verdict = json.loads(done.stdout)
    assert (verdict["verdict"], verdict["executor"]) == ("pass", "hw")
    assert standin.names().count("hipModuleLaunchKernel") == 1


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_each_chip_of_the_plugin_has_its_card(target: TargetInfo, machine: Callable[..., HipStandIn]) -> None:
    cards = [CardModel(f"{chip_of(other).name}:sramecc+:xnack-") for other in TARGETS]
    made = machine(cards, (*chip_of(target).first_hip, 0), simulated=chip_of(target))
    find_target(target.name).executors.clear()
    x, out = np.arange(777, dtype=np.float32), np.zeros(777, np.float32)
    result = scale[(4,)](x, out, 3.0, x.size, BLOCK=256, target=target.name, executor="hw")
    assert np.array_equal(out, 3 * x) and result.executor == "hw" and made.problems == []
    find_target(target.name).executors.clear()


@pytest.mark.parametrize("words", [
    ["softmax"], ["matmul"], ["histogram"], ["grouped_matmul"], ["attention", "--param", "causal=True"],
])  # fmt: skip
def test_kernels_of_the_library_are_right_on_the_card(words: list[str], standin: HipStandIn) -> None:
    from tilefw.cli.main import main

    assert main(["run", *words, "--target", TARGET.name, "--executor", "hw"]) == 0
    assert "hipModuleLaunchKernel" in standin.names()


def test_arrays_of_the_host_are_copied_in_and_back_and_given_back(standin: HipStandIn) -> None:
    x, out = np.arange(777, dtype=np.float32), np.zeros(777, np.float32)
    result = scale[(4,)](x, out, 3.0, x.size, BLOCK=256, target=TARGET.name, executor="hw")
    assert np.array_equal(out, 3 * x)
    assert (result.executor, result.checks, result.completion) == ("hw", frozenset(), None)
    names = standin.names()
    assert names.count("hipMalloc") == names.count("hipFree") == 2
    assert names.index("hipModuleLaunchKernel") < names.index("hipEventSynchronize") < names.index("hipFree")


def test_the_seconds_of_a_launch_are_the_cards_own(standin: HipStandIn) -> None:
    x, out = np.arange(777, dtype=np.float32), np.zeros(777, np.float32)
    arguments = (x, out, 3.0, x.size)
    simulated = scale[(4,)](*arguments, BLOCK=256, target=TARGET.name)
    result = scale[(4,)](*arguments, BLOCK=256, target=TARGET.name, executor="hw")
    # The stand-in's card takes a nanosecond for each instruction that the simulator counts.
    assert result.times["execute"] == pytest.approx(simulated.counters["instructions"] * 1e-9)


def test_the_runtime_passes_the_number_of_programs(standin: HipStandIn) -> None:
    out = np.zeros(2 * 3 * 4, np.int32)
    programs[(2, 3, 4)](out, target=TARGET.name, executor="hw")
    assert (out == 2 + 300 + 40000).all()


def test_a_second_launch_uses_the_module_of_the_first(standin: HipStandIn) -> None:
    x, out = np.arange(300, dtype=np.float32), np.zeros(300, np.float32)
    for factor in (2.0, 5.0):
        scale[(2,)](x, out, factor, x.size, BLOCK=256, target=TARGET.name, executor="hw")
        assert np.array_equal(out, factor * x)
    made = ("hipModuleLoadData", "hipModuleGetFunction", "hipEventCreateWithFlags")
    assert [standin.names().count(name) for name in made] == [1, 1, 2]


def test_modules_that_nobody_holds_are_unloaded_when_the_card_is_done(standin: HipStandIn) -> None:
    signature = {"x_ptr": "*fp32", "out_ptr": "*fp32", "factor": "fp32", "n": "i32"}
    device = find_target(TARGET.name).backend.device()
    module = device.load(tilefw.compile(scale, TARGET.name, signature, {"BLOCK": 256}))
    assert "hipModuleUnload" not in standin.names()
    del module
    assert standin.names()[-2:] == ["hipDeviceSynchronize", "hipModuleUnload"]


def test_machine_code_from_a_file_runs_on_the_card(standin: HipStandIn, tmp_path: Path) -> None:
    signature = {"x_ptr": "*fp32", "out_ptr": "*fp32", "factor": "fp32", "n": "i32"}
    artifact = tilefw.compile(scale, TARGET.name, signature, {"BLOCK": 256})
    file = tmp_path / "scale.hsaco"
    assert artifact.binary is not None
    file.write_bytes(artifact.binary)
    x, out = np.arange(300, dtype=np.float32), np.zeros(300, np.float32)
    module = tilefw.load(file, TARGET.name)
    result = module.only().launch((2,), [x, out, 2.0, x.size], executor="hw")
    assert np.array_equal(out, 2 * x) and result.executor == "hw"


def test_the_executor_auto_is_the_card_where_there_is_one(machine: Callable[..., HipStandIn]) -> None:
    x, out = np.arange(300, dtype=np.float32), np.zeros(300, np.float32)
    arguments, keywords = (x, out, 2.0, x.size), {"BLOCK": 256, "target": TARGET.name, "executor": "auto"}
    machine([])
    assert scale[(2,)](*arguments, **keywords).executor == "sim"
    machine()
    assert scale[(2,)](*arguments, **keywords).executor == "hw"


def test_copies_to_and_from_the_card_stay_inside_its_allocations(standin: HipStandIn) -> None:
    device = find_target(TARGET.name).backend.device()
    handle = device.allocate(64)
    device.write(handle, bytes(range(64)))
    device.write(handle, b"", 64)
    assert device.read(handle, 8, 8) == bytes(range(8, 16)) and device.read(handle, 0, 64) == b""
    for copy in (lambda: device.write(handle, bytes(65)), lambda: device.read(handle, 1, 64), lambda: device.read(handle, 4, -1)):
        with pytest.raises(tilefw.KernelError) as caught:
            copy()
        assert caught.value.code == "TFW0345"
    device.free(handle)
    with pytest.raises(tilefw.KernelError) as caught:
        device.free(handle)
    assert caught.value.code == "TFW0341"


def test_memory_info_is_the_cards(standin: HipStandIn) -> None:
    device = find_target(TARGET.name).backend.device()
    before = device.memory_info()
    handle = device.allocate(1 << 20)
    after = device.memory_info()
    device.free(handle)
    assert before["total"] == standin.cards[0].memory_bytes
    assert (after["used"] - before["used"], after["allocations"]) == (1 << 20, 1)


def test_saved_artifacts_without_bytes_are_assembled_for_the_card(standin: HipStandIn) -> None:
    from dataclasses import replace

    signature = {"x_ptr": "*fp32", "out_ptr": "*fp32", "factor": "fp32", "n": "i32"}
    artifact = tilefw.compile(scale, TARGET.name, signature, {"BLOCK": 256})
    x, out = np.arange(300, dtype=np.float32), np.zeros(300, np.float32)
    Module(replace(artifact, binary=None), find_target(TARGET.name)).only().launch((2,), [x, out, 2.0, x.size], executor="hw")
    assert np.array_equal(out, 2 * x)


def test_the_card_is_the_targets_chip(card: Card) -> None:
    assert (card.executor, card.name, card.info.chip) == ("hw", TARGET.name, CHIP.name)


def test_autotune_measures_on_the_card(standin: HipStandIn) -> None:
    """Each configuration five times; the stand-in's card takes longer for more instructions."""
    tuned = tilefw.autotune([tilefw.Config({"BLOCK": 64}), tilefw.Config({"BLOCK": 1024})], key=["n"])(scale)
    x, out = np.arange(1000, dtype=np.float32), np.zeros(1000, np.float32)
    with tilefw.target(TARGET.name, executor="hw"):
        tuned[lambda meta: (tilefw.cdiv(1000, meta["BLOCK"]),)](x, out, 2.0, x.size)
    assert np.array_equal(out, 2 * x)
    assert standin.names().count("hipModuleLaunchKernel") == 2 * 5 + 1
    assert tuned.best_config is min(tuned.configs_timings, key=tuned.configs_timings.__getitem__)


def test_the_suite_runs_on_the_card(standin: HipStandIn, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tilefw", "conformance", "--target", TARGET.name, "--executor", "hw", "-k", "vector_add"]
    done = subprocess.run([*command, "--report", str(tmp_path)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    header = json.loads((tmp_path / "report.jsonl").read_text().splitlines()[0])
    assert header["targets"][0]["executor"] == "hw"
    assert "hipModuleLaunchKernel" in standin.names()
