"""What keeps a launch from a card is an error by name: no library, an old one, no card, another chip, no memory, a kernel that
fails."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from served import CHIP, TARGET

import tilefw
import tilefw.language as tl
from hip_standin import CardModel, HipStandIn
from tilefw.api import Artifact, Entry
from tilefw.api.hardware import Card, DriverError
from tilefw.runtime.executor import executor_for
from tilefw.runtime.plugins.loader import find_target

FIT = CardModel(CHIP.name, name="A card that fits")
OTHER = CardModel("gfx90a:sramecc+:xnack-", name="Another card")


@tilefw.jit
def double(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, inside) * 2, inside)


@tilefw.jit
def far(out_ptr, distance):
    tl.store(out_ptr + distance, 1.0)


def launch() -> np.ndarray:
    x, out = np.arange(300, dtype=np.float32), np.zeros(300, np.float32)
    double[(2,)](x, out, x.size, BLOCK=256, target=TARGET.name, executor="hw")
    return out


def refused(code: str, does: Callable[[], object] = launch) -> tilefw.KernelError:
    with pytest.raises(tilefw.KernelError) as caught:
        does()
    assert caught.value.code == code, caught.value
    return caught.value


def test_a_library_that_is_not_there_is_told_with_its_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TILEFW_HIP_LIBRARY", str(tmp_path / "none.so"))
    find_target(TARGET.name).executors.clear()
    error = refused("TFW0604")
    assert "HIP runtime library" in error.message and "none.so" in str(error.note) and "TILEFW_HIP_LIBRARY" in str(error.help)


def test_a_file_that_is_no_library_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("no library")
    monkeypatch.setenv("TILEFW_HIP_LIBRARY", str(tmp_path / "text.so"))
    find_target(TARGET.name).executors.clear()
    assert "text.so" in str(refused("TFW0604").note)


def test_the_command_line_tells_it_without_a_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEFW_HIP_LIBRARY", str(tmp_path / "none.so"))
    command = [sys.executable, "-m", "tilefw", "run", "vector_add", "--target", TARGET.name, "--executor", "hw"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "error[TFW0604]" in done.stderr and "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize(("defines", "lacking"), [
    (("WITHOUT_TIMES",), "hipEventElapsedTime"), (("BEFORE_6_0",), "hipGetDevicePropertiesR0600"),
])  # fmt: skip
def test_a_function_that_the_library_lacks_is_named(
    defines: tuple[str, ...], lacking: str, machine: Callable[..., HipStandIn]
) -> None:
    machine(defines=defines)
    assert lacking in refused("TFW0605").message


def test_an_old_version_is_told_with_the_one_that_is_needed(machine: Callable[..., HipStandIn]) -> None:
    machine(version=(5, 7, 31921))
    error = refused("TFW0605")
    assert "5.7.31921" in error.message and "6.0" in error.message


def test_a_version_before_the_chips_first_is_told(machine: Callable[..., HipStandIn], monkeypatch: pytest.MonkeyPatch) -> None:
    from tilefw_amd.device import card

    machine()
    monkeypatch.setattr(card, "chip_of", lambda target: replace(CHIP, first_hip=(7, 0)))
    error = refused("TFW0605")
    assert f"too old for {CHIP.name}: 7.0 or newer" in error.message


def test_a_library_that_does_not_tell_its_version_is_told(machine: Callable[..., HipStandIn]) -> None:
    machine(failing={"hipRuntimeGetVersion": 999})
    assert "hipRuntimeGetVersion: hipErrorUnknown" in refused("TFW0605").message


def test_a_machine_without_a_card_is_told(machine: Callable[..., HipStandIn]) -> None:
    machine([])
    assert "no card" in refused("TFW0606").message


def test_a_runtime_that_does_not_start_is_told_in_its_words(machine: Callable[..., HipStandIn]) -> None:
    machine(failing={"hipInit": 719})
    assert "hipInit: hipErrorLaunchFailure" in refused("TFW0606").message


def test_a_card_of_another_chip_is_refused_by_name(machine: Callable[..., HipStandIn]) -> None:
    machine([OTHER])
    error = refused("TFW0607")
    assert CHIP.name in error.message and "Another card" in error.message and "gfx90a" in error.message


def test_of_several_cards_the_first_of_the_chip_is_taken(machine: Callable[..., HipStandIn]) -> None:
    made = machine([OTHER, FIT, FIT])
    assert np.array_equal(launch(), 2 * np.arange(300))
    assert ("hipSetDevice", (1,)) in made.calls
    assert ("hipSetDevice", (2,)) not in made.calls


def test_a_number_without_a_card_is_refused(machine: Callable[..., HipStandIn]) -> None:
    machine([FIT])
    error = refused("TFW0606", lambda: find_target(TARGET.name).backend.device(3))
    assert "no card 3" in error.message and "A card that fits" in str(error.note)


def test_properties_of_an_unknown_layout_name_no_chip(machine: Callable[..., HipStandIn]) -> None:
    machine([CardModel("\x01\x02 nothing")])
    assert "not known" in refused("TFW0605").message


def test_a_card_without_memory_is_told_with_the_array(machine: Callable[..., HipStandIn]) -> None:
    machine([CardModel(CHIP.name, memory_bytes=2000)])
    error = refused("TFW0348")
    assert "1200 bytes of 'out_ptr'" in error.message or "1200 bytes of 'x_ptr'" in error.message
    assert "hipErrorOutOfMemory" in error.message and error.note == "hipMalloc gave 2"


def test_memory_of_a_refused_launch_is_given_back(machine: Callable[..., HipStandIn]) -> None:
    made = machine([CardModel(CHIP.name, memory_bytes=2000)])
    refused("TFW0348")
    assert made.names().count("hipFree") == 1


def test_code_for_another_chip_is_refused_by_the_runtime(standin: HipStandIn, card: Card) -> None:
    """What the plugin's own reader lets pass: here nothing reads it before the library does."""
    signature = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"}
    image = bytearray(tilefw.compile(double, TARGET.name, signature, {"BLOCK": 256}).binary or b"")
    image[48] ^= 0x0F  # e_flags: the machine
    with pytest.raises(DriverError, match="hipErrorNoBinaryForGpu") as caught:
        card.driver.load(bytes(image))
    assert caught.value.failure == "image"
    standin.problems.clear()


def test_code_for_another_chip_is_refused_by_name_before_that(standin: HipStandIn) -> None:
    signature = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"}
    artifact = tilefw.compile(double, TARGET.name, signature, {"BLOCK": 256})
    image = bytearray(artifact.binary or b"")
    image[48] ^= 0x0F
    other = Artifact(artifact.target, artifact.format, "", artifact.entries, bytes(image))
    error = refused("TFW0724", lambda: find_target(TARGET.name).backend.device().load(other))
    assert CHIP.name in str(error)


@pytest.mark.parametrize(("status", "code"), [(209, "TFW0704"), (999, "TFW0351")])
def test_a_module_that_the_runtime_does_not_load_is_told(status: int, code: str, machine: Callable[..., HipStandIn]) -> None:
    machine(failing={"hipModuleLoadData": status})
    assert "loading double" in refused(code).message


@pytest.mark.parametrize("status", [98, 500])
def test_a_function_that_the_module_lacks_is_told(status: int, machine: Callable[..., HipStandIn]) -> None:
    """hipErrorInvalidDeviceFunction, hipErrorNotFound."""
    machine(failing={"hipModuleGetFunction": status})
    assert "double" in refused("TFW0346").message


def test_an_entry_that_the_artifact_lacks_is_told(standin: HipStandIn) -> None:
    signature = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"}
    device = find_target(TARGET.name).backend.device()
    module = device.load(tilefw.compile(double, TARGET.name, signature, {"BLOCK": 256}))
    assert refused("TFW0346", lambda: module.entry("triple")).note == "entries: double"


def test_code_of_another_format_is_told(standin: HipStandIn) -> None:
    device = find_target(TARGET.name).backend.device()
    refused("TFW0702", lambda: device.load(Artifact(TARGET.name, "ptx", "", (Entry("k", (), (1, 1, 1)),))))


@pytest.mark.parametrize("grid", [(1 << 25, 1, 1), (1, 1 << 17, 1), (1, 1, 1 << 17)])
def test_a_grid_that_the_runtime_does_not_take_is_told(grid: tuple[int, int, int], standin: HipStandIn) -> None:
    """2^25 workgroups of 256 threads are 2^33 along one axis; HIP takes fewer than 2^32."""
    x, out = np.arange(300, dtype=np.float32), np.zeros(300, np.float32)
    error = refused("TFW0350", lambda: double[grid](x, out, x.size, BLOCK=256, target=TARGET.name, executor="hw"))
    assert "x".join(map(str, grid)) in error.message


def test_a_workgroup_that_is_not_the_codes_is_refused(standin: HipStandIn) -> None:
    signature = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"}
    artifact = tilefw.compile(double, TARGET.name, signature, {"BLOCK": 256})
    assert artifact.binary is not None
    kernel = tilefw.load(artifact.binary, TARGET.name).only()
    x, out = np.arange(300, dtype=np.float32), np.zeros(300, np.float32)
    error = refused("TFW0342", lambda: kernel.launch((2,), [x, out, x.size], block=64, executor="hw"))
    assert "needs workgroups of (256, 1, 1)" in error.message


def test_a_kernel_that_reaches_beyond_its_memory_fails_and_nothing_is_copied_back(machine: Callable[..., HipStandIn]) -> None:
    made = machine()
    out = np.zeros(16, np.float32)
    error = refused("TFW0349", lambda: far[(1,)](out, 1 << 24, target=TARGET.name, executor="hw"))
    assert "far over a grid of 1x1x1" in error.message and "hipErrorIllegalAddress" in error.message
    assert "executor='sim'" in str(error.help)
    assert not out.any() and any("bounds" in problem for problem in made.problems)


def test_a_launch_that_fails_at_once_is_told(machine: Callable[..., HipStandIn]) -> None:
    machine(failing={"hipModuleLaunchKernel": 719})
    assert "hipErrorLaunchFailure: unspecified launch failure" in refused("TFW0349").message


def test_after_a_failure_every_launch_says_so(machine: Callable[..., HipStandIn]) -> None:
    machine()
    out = np.zeros(16, np.float32)
    refused("TFW0349", lambda: far[(1,)](out, 1 << 24, target=TARGET.name, executor="hw"))
    refused("TFW0349")


def test_checks_that_a_card_does_not_make_are_refused_by_name(standin: HipStandIn) -> None:
    x, out = np.arange(300, dtype=np.float32), np.zeros(300, np.float32)
    arguments, keywords = (x, out, x.size), {"BLOCK": 256, "target": TARGET.name, "executor": "hw"}
    refused("TFW0903", lambda: double[(2,)](*arguments, **keywords, checks="races"))
    assert double[(2,)](*arguments, **keywords, checks="all").checks == frozenset()


def test_a_simulator_is_there_whatever_the_card_says(machine: Callable[..., HipStandIn]) -> None:
    machine([OTHER])
    assert executor_for(find_target(TARGET.name), "auto").device.executor == "sim"
