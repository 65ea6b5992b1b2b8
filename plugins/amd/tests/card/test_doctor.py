"""`tilefw doctor` tells of the card what is there and what is missing: library, version, cards, chip."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from served import CHIP, TARGET

from hip_standin import CardModel, HipStandIn
from tilefw.api import Requirement
from tilefw.runtime.plugins.loader import find_target


def told() -> tuple[Requirement, ...]:
    return tuple(find_target(TARGET.name).backend.device_requirements())


def test_a_card_that_fits_is_told_with_library_and_version(machine: Callable[..., HipStandIn]) -> None:
    machine([CardModel(f"{CHIP.name}:sramecc+:xnack-", name="AMD Instinct")])
    library, card = told()
    assert library.met and library.subject == "HIP runtime" and library.text.startswith("6.4.43482 at /")
    assert card == Requirement("card 0", True, f"AMD Instinct, {CHIP.name}")


def test_each_card_of_another_chip_is_told(machine: Callable[..., HipStandIn]) -> None:
    machine([CardModel("gfx90a", name="First"), CardModel(CHIP.name, name="Second")])
    assert [(one.met, one.text) for one in told()[1:]] == [
        (False, f"First, gfx90a, which is not {CHIP.name}"), (True, f"Second, {CHIP.name}"),
    ]


def test_no_card_is_told_with_what_hides_cards(machine: Callable[..., HipStandIn], monkeypatch: pytest.MonkeyPatch) -> None:
    machine([])
    assert told()[0].met and not told()[1].met and told()[1].text.startswith("none; /dev/kfd is not there")
    monkeypatch.setattr("os.path.exists", lambda path: True)
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert "groups render and video" in told()[1].text
    monkeypatch.setattr("os.access", lambda path, mode: True)
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "")
    assert "HIP_VISIBLE_DEVICES may hide it" in told()[1].text


@pytest.mark.parametrize(("keywords", "words"), [
    ({"version": (5, 7, 0)}, "too old"), ({"defines": ("BEFORE_6_0",)}, "it lacks hipGetDevicePropertiesR0600"),
])  # fmt: skip
def test_a_library_that_is_too_old_is_told(keywords: dict, words: str, machine: Callable[..., HipStandIn]) -> None:
    machine(**keywords)
    (library,) = told()
    assert not library.met and words in library.text


def test_a_library_that_is_older_than_the_chip_is_told(machine: Callable[..., HipStandIn], monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from tilefw_amd.device import card

    machine(version=(6, 4, 0))
    monkeypatch.setattr(card, "chip_of", lambda target: replace(CHIP, first_hip=(7, 0)))
    (library,) = told()
    assert not library.met and f"{CHIP.name} needs 7.0 or newer" in library.text


def test_the_command_prints_it(machine: Callable[..., HipStandIn], monkeypatch: pytest.MonkeyPatch, capsys, tmp_path: Path) -> None:
    from tilefw.cli.main import main

    machine()
    assert main(["doctor"]) == 0
    assert f"card 0 for {TARGET.name}" in capsys.readouterr().out
    monkeypatch.setenv("TILEFW_HIP_LIBRARY", str(tmp_path / "none.so"))
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("--") and "HIP runtime" in line and "TILEFW_HIP_LIBRARY" in line]
