"""A check is made or refused: `all` means what the device makes, another name is an error, and a launch without any is told."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api import ALL_CHECKS, DEFAULT_CHECKS, UsageError
from tilefw.api.target import TargetInfo
from tilefw.kernels.spec import load
from tilefw.kernels.verify import verify
from tilefw.runtime.checks.launch_checks import made_by
from tilefw.runtime.plugins import loader

sys.path.insert(0, str(Path(__file__).parent))
import chip


@tilefw.jit
def k(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, offsets < n), offsets < n)


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The toy chip as a registered target."""
    info = TargetInfo("toy-1", "toy", "1", "a toy", "chip:ToyBackend", frozenset({"emit", "simulate"}))
    target = loader.Target(info, None)
    real = loader.Registry.find
    monkeypatch.setattr(loader.Registry, "find", lambda self, name: target if name == "toy-1" else real(self, name))


def launch(checks: Any) -> tilefw.LaunchResult:
    x, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    return k[(1,)](x, out, 4, BLOCK=4, target="toy-1", checks=checks)


@pytest.mark.parametrize("checks", ["all", "default"])
def test_a_launch_on_a_device_that_makes_no_check_is_reported_as_unchecked(checks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chip.Memory, "checks", frozenset())
    result = launch(checks)
    assert result.checks == frozenset() and "unchecked" in str(result)


def test_a_device_that_declares_nothing_makes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(chip.Memory, "checks")
    assert launch("all").checks == frozenset()


def test_all_means_all_that_the_device_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chip.Memory, "checks", frozenset({"bounds", "races"}))
    assert launch("all").checks == {"bounds", "races"}
    assert launch("default").checks == {"bounds"}
    assert "unchecked" not in str(launch("bounds"))


@pytest.mark.parametrize("checks", ["races", "bounds,races"])
def test_a_check_by_name_that_the_device_does_not_make_is_refused(checks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chip.Memory, "checks", frozenset({"bounds"}))
    with pytest.raises(UsageError, match="toy does not make the check races") as caught:
        launch(checks)
    assert caught.value.code == "TFW0903" and "it makes: bounds" in (caught.value.note or "")


def test_a_name_beside_the_defaults_is_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    device = chip.Memory()
    monkeypatch.setattr(chip.Memory, "checks", frozenset({"bounds"}))
    assert made_by(device, ALL_CHECKS) == made_by(device, DEFAULT_CHECKS) == {"bounds"}
    with pytest.raises(UsageError, match="the check races"):
        made_by(device, DEFAULT_CHECKS | {"races"})


@pytest.mark.parametrize(("checks", "made"), [("default", set()), ("default,bounds", {"bounds"}), (("bounds", "none"), {"bounds"})])
def test_a_default_that_the_device_leaves_out_is_made_where_it_is_named_too(
    checks: Any, made: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chip.Memory, "checks", frozenset({"bounds"}))
    monkeypatch.setattr(chip.Memory, "unasked_checks", frozenset[str](), raising=False)
    assert launch(checks).checks == made


def test_the_verdict_of_a_library_kernel_notes_that_it_was_unchecked() -> None:
    notes = {
        checks: {stage.name: stage.note for stage in verify(load("vector_add"), {"n": 64}, "reference", checks=checks).stages}
        for checks in ("none", "all")
    }
    assert "unchecked" in notes["none"]["simulate"] and notes["all"]["simulate"] == ""


def test_a_check_of_a_plugin_is_made_by_devices_that_are_observed_and_by_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="does not make the check watcher:stores") as caught:
        launch("watcher:stores")
    assert caught.value.code == "TFW0903"
    monkeypatch.setattr(chip.Memory, "observable", True, raising=False)
    assert made_by(chip.Memory(), frozenset({"watcher:stores"})) == {"watcher:stores"}
