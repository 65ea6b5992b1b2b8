"""What programs ask of the device is answered from the chosen target."""

from __future__ import annotations

import pytest

import tilefw
from tilefw.api.errors import LaunchError
from tilefw.api.target import TargetInfo, TritonNames
from tilefw.triton import chip
from tilefw.triton.driver import DRIVER
from tilefw.triton.one_device import require_first


def target(triton: TritonNames | None, **limits: int) -> TargetInfo:
    return TargetInfo("acme-v1", "acme", "v1", "", "m:C", frozenset(), limits=limits, triton=triton)


def test_the_target_has_tritons_names(monkeypatch: pytest.MonkeyPatch) -> None:
    names = TritonNames("acme", "v942", text="s", binary="bin", loads="s")
    monkeypatch.setattr(chip, "target_info", lambda: target(names, lanes=16, shared_bytes=4096, processors=3))
    active = DRIVER.active
    assert active.get_current_target() == chip.GPUTarget("acme", "v942", 16)
    assert active.get_device_capability() == (9, 4)
    properties = active.utils.get_device_properties(0)
    assert (properties["max_shared_mem"], properties["multiprocessor_count"], properties["warpSize"]) == (4096, 3, 16)
    assert properties["max_threads_per_sm"] == 2048


def test_a_target_without_such_names_answers_as_the_proxy() -> None:
    with tilefw.target("reference"):
        assert chip.current_target() == chip.PROXY and chip.capability() == (8, 0)
        assert chip.summary() == "tilefw reference (reference)"


@pytest.mark.parametrize("device", [1, "cuda:1", 7])
def test_a_second_device_is_refused(device: object) -> None:
    with pytest.raises(LaunchError, match="there is one device") as caught:
        require_first(device)
    assert caught.value.code == "TFW0352"


@pytest.mark.parametrize("device", [None, 0, -1, "cuda", "cuda:0", "cpu"])
def test_the_first_device_is_any_spelling_of_it(device: object) -> None:
    require_first(device)
