"""A launch with the executor `hw` goes through the driver library's functions and gives the right results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tilefw
from cuda_standin import CardModel, CudaStandIn
from cuda_standin.kernel import SIGNATURE, TARGET, scale
from oracles.standin.arrays import OnCard
from tilefw.api.hardware import Card
from tilefw.runtime.plugins.loader import find_target
from tilefw_nvidia.device.driver import CudaDriver


def test_a_command_with_the_executor_in_its_environment_runs_on_the_card(standin: CudaStandIn) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tilefw", "run", "vector_add", "--target", TARGET, "--json"], capture_output=True, text=True,
        env={**os.environ, "TILEFW_EXECUTOR": "hw"}, timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    verdict = json.loads(done.stdout)
    assert (verdict["verdict"], verdict["executor"]) == ("pass", "hw")
    assert standin.names().count("cuLaunchKernel") == 1


@pytest.mark.parametrize("words", [["softmax"], ["histogram"], ["grouped_matmul"]])
def test_kernels_of_the_library_are_right_on_the_card(words: list[str], standin: CudaStandIn) -> None:
    from tilefw.cli.main import main

    assert main(["run", *words, "--target", TARGET, "--executor", "hw"]) == 0
    assert "cuLaunchKernel" in standin.names()


def test_shared_memory_beyond_what_is_static_is_asked_for_once(standin: CudaStandIn) -> None:
    """Tiles of 128x128x32 in four buffers take 64 KiB, which PTX declares without a size."""
    from tilefw.cli.main import main

    tile = ["--param", "block_m=128", "--param", "block_n=128", "--param", "num_stages=4"]
    assert main(["run", "matmul", *tile, "--target", TARGET, "--executor", "hw"]) == 0
    asked, preferred = [args[1:] for name, args in standin.calls if name == "cuFuncSetAttribute"]
    (launched,) = [args[7] for name, args in standin.calls if name == "cuLaunchKernel"]
    assert asked == (8, launched) and launched > 48 << 10
    assert preferred == (9, 100)  # as much of the cache as can be, for several workgroups


def test_arrays_of_the_host_are_copied_in_and_back_and_given_back(standin: CudaStandIn) -> None:
    x, out = np.arange(777, dtype=np.float32), np.zeros(777, np.float32)
    for factor in (3.0, 5.0):
        result = scale[(4,)](x, out, factor, x.size, BLOCK=256, target=TARGET, executor="hw")
        assert np.array_equal(out, factor * x)
        assert (result.executor, result.checks, result.completion) == ("hw", frozenset(), None)
    names = standin.names()
    assert names.count("cuMemAlloc_v2") == names.count("cuMemFree_v2") == 4
    assert names.count("cuModuleLoadDataEx") == names.count("cuModuleGetFunction") == 1
    assert names.index("cuLaunchKernel") < names.index("cuEventSynchronize") < names.index("cuMemFree_v2")


def test_arrays_on_the_card_are_used_in_place_on_the_stream_that_is_said(standin: CudaStandIn, card: Card) -> None:
    x, stream = np.arange(300, dtype=np.float32), card.new_stream()
    given, out = OnCard(card, x), OnCard(card, np.zeros_like(x))
    before = standin.names().count("cuMemAlloc_v2")
    result = scale[(2,)](given, out, 2.0, x.size, BLOCK=256, target=TARGET, executor="hw", stream=stream)
    assert standin.names().count("cuMemAlloc_v2") == before
    assert [args[8] for name, args in standin.calls if name == "cuLaunchKernel"] == [stream]
    assert not result.completion.done()
    result.wait()
    assert np.array_equal(out.get(), 2 * x)


def test_the_context_of_another_library_is_current_again(standin: CudaStandIn, card: Card) -> None:
    driver = card.driver
    assert isinstance(driver, CudaDriver)
    driver.library.call("cuCtxSetCurrent", 0xC0DE0000 + 77)
    handle = card.allocate(64)
    card.write(handle, bytes(range(64)))
    assert card.read(handle, 8, 8) == bytes(range(8, 16))
    set_by = [args[0] for name, args in standin.calls if name == "cuCtxSetCurrent"]
    assert set_by[-1] == 0xC0DE0000 + 77 and 0xC0DE0000 in set_by
    driver.library.call("cuCtxSetCurrent", 0)


def test_an_array_on_a_peer_is_reached(machine: Callable[..., CudaStandIn]) -> None:
    made = machine([CardModel("sm_80", peers=frozenset({1})), CardModel("sm_80", peers=frozenset({0}))])
    backend = find_target(TARGET).backend
    first, second = backend.device(0), backend.device(1)
    assert isinstance(first, Card) and isinstance(second, Card)
    x = np.arange(300, dtype=np.float32)
    given, out = OnCard(first, x), OnCard(second, np.zeros_like(x))
    scale[(2,)](given, out, 2.0, x.size, BLOCK=256, target=TARGET, executor="hw").wait()
    assert np.array_equal(out.get(), 2 * x)
    assert made.names().count("cuCtxEnablePeerAccess") == 1 and made.problems == []


def test_a_later_card_runs_the_code_of_an_earlier_chip(machine: Callable[..., CudaStandIn]) -> None:
    made = machine([CardModel("sm_75", name="Before"), CardModel("sm_90", name="After")])
    x, out = np.arange(300, dtype=np.float32), np.zeros(300, np.float32)
    scale[(2,)](x, out, 2.0, x.size, BLOCK=256, target=TARGET, executor="hw")
    assert np.array_equal(out, 2 * x) and made.problems == []
    device = find_target(TARGET).backend.device()
    assert isinstance(device, Card) and device.info.name == "After"


def test_ptx_from_a_file_runs_on_the_card(standin: CudaStandIn, tmp_path: Path) -> None:
    file = tmp_path / "scale.ptx"
    file.write_text(tilefw.compile(scale, TARGET, SIGNATURE, {"BLOCK": 256}).text)
    x, out = np.arange(300, dtype=np.float32), np.zeros(300, np.float32)
    bits = int(np.float32(2.0).view(np.uint32))  # the text has 32 bits here, whatever they mean
    result = tilefw.load(file, TARGET).only().launch((2,), [x, out, bits, x.size], executor="hw")
    assert np.array_equal(out, 2 * x) and result.executor == "hw"
