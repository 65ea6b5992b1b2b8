"""Each thing that a machine with a card lacks, or a card refuses, is told by name; `doctor` tells it before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilefw
from cuda_standin import CardModel, CudaStandIn
from cuda_standin.kernel import SIGNATURE, TARGET, scale
from tilefw.api import Requirement
from tilefw.api.hardware import Card
from tilefw.runtime.plugins.loader import find_target


def launched() -> None:
    x = np.zeros(300, np.float32)
    scale[(2,)](x, x.copy(), 2.0, x.size, BLOCK=256, target=TARGET, executor="hw")


def told() -> tuple[Requirement, ...]:
    return tuple(find_target(TARGET).backend.device_requirements())


def test_no_library_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, machine: Callable[..., CudaStandIn]) -> None:
    machine()
    monkeypatch.setenv("TILEFW_CUDA_LIBRARY", str(tmp_path / "none.so"))
    with pytest.raises(tilefw.KernelError, match="no CUDA driver library") as caught:
        launched()
    assert caught.value.code == "TFW0604" and "TILEFW_CUDA_LIBRARY" in (caught.value.help or "")
    (library,) = told()
    assert not library.met and library.subject == "CUDA driver"


@pytest.mark.parametrize(("keywords", "code", "words"), [
    ({"version": (10, 2)}, "TFW0605", "CUDA 10.2, which is too old for sm_80: 11.0"),
    ({"defines": ("WITHOUT_TIMES",)}, "TFW0605", "it lacks cuEventElapsedTime"),
    ({"cards": []}, "TFW0606", "no card"),
    ({"failing": {"cuInit": 3}}, "TFW0606", "does not start"),
    ({"cards": [CardModel("sm_75", name="Turing")]}, "TFW0607", "Turing"),
])  # fmt: skip
def test_what_a_machine_lacks_is_told(
    keywords: dict[str, Any], code: str, words: str, machine: Callable[..., CudaStandIn]
) -> None:
    machine(**keywords)
    with pytest.raises(tilefw.KernelError, match=words) as caught:
        launched()
    assert caught.value.code == code
    assert not told()[-1].met


def test_a_card_that_fits_is_told_with_library_and_version(machine: Callable[..., CudaStandIn]) -> None:
    machine([CardModel("sm_75", name="Before"), CardModel("sm_90", name="After")])
    library, before, after = told()
    assert library.met and library.text.startswith("12.9 at /")
    assert before == Requirement("card 0", False, "Before, sm_75, which does not run sm_80")
    assert after == Requirement("card 1", True, "After, sm_90")


def test_code_for_one_chip_alone_runs_on_cards_of_that_chip(machine: Callable[..., CudaStandIn]) -> None:
    machine([CardModel("sm_89"), CardModel("sm_90"), CardModel("sm_100")])
    _, *cards = find_target("nvidia-sm90a").backend.device_requirements()
    assert [card.met for card in cards] == [False, True, False]


def test_what_hides_cards_is_told(machine: Callable[..., CudaStandIn], monkeypatch: pytest.MonkeyPatch) -> None:
    machine([])
    monkeypatch.setattr("os.path.exists", lambda path: False)
    assert "/dev/nvidiactl is not there" in told()[1].text
    monkeypatch.setattr("os.path.exists", lambda path: path == "/dev/dxg")
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert "/dev/dxg may not be opened" in told()[1].text
    monkeypatch.setattr("os.access", lambda path, mode: True)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert "CUDA_VISIBLE_DEVICES may hide it" in told()[1].text


def test_a_kernel_that_faults_is_told(machine: Callable[..., CudaStandIn]) -> None:
    made = machine()
    x = np.zeros(300, np.float32)
    with pytest.raises(tilefw.KernelError, match="illegal memory access") as caught:
        scale[(2,)](x, x[:100].copy(), 2.0, 1 << 20, BLOCK=256, target=TARGET, executor="hw")
    assert caught.value.code == "TFW0349" and made.problems


def test_memory_that_is_not_there_is_told(machine: Callable[..., CudaStandIn]) -> None:
    machine([CardModel("sm_80", memory_bytes=1000)])
    with pytest.raises(tilefw.KernelError, match="out of memory") as caught:
        launched()
    assert caught.value.code == "TFW0348"


def test_a_grid_that_the_driver_refuses_is_told(standin: CudaStandIn) -> None:
    x = np.zeros(300, np.float32)
    with pytest.raises(tilefw.KernelError) as caught:
        scale[(1, 70000)](x, x.copy(), 2.0, x.size, BLOCK=256, target=TARGET, executor="hw")
    assert caught.value.code in ("TFW0350", "TFW0343")


def test_the_words_of_the_drivers_compiler_are_told(standin: CudaStandIn, card: Card) -> None:
    text = tilefw.compile(scale, TARGET, SIGNATURE, {"BLOCK": 256}).text
    with pytest.raises(Exception, match="a PTX JIT compilation failed") as caught, card.driver.on(0):
        card.driver.load(text.replace("ret;", "return;").encode() + b"\0")
    assert "return" in str(caught.value)
