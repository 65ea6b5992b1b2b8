"""What the card's executor needs of this machine, in the order in which it looks for it: library, version, cards, chip."""

from __future__ import annotations

from collections.abc import Iterator

from tilefw.api import Requirement, TargetInfo, UnsupportedError
from tilefw.api.hardware import CardInfo
from tilefw_amd.chips import chip_of
from tilefw_amd.device.card import listed, why_no_card
from tilefw_amd.device.driver import driver
from tilefw_amd.device.library import shown, version


def requirements(target: TargetInfo) -> Iterator[Requirement]:
    """Each up to the first that is not met."""
    chip = chip_of(target)
    try:
        used = driver()
    except UnsupportedError as error:
        yield Requirement("HIP runtime", False, _told(error))
        return
    said = version(used.library)
    text = f"{shown(said)} at {used.library.path}"
    if said[:2] < chip.first_hip:
        yield Requirement("HIP runtime", False, f"{text}; {chip.name} needs {shown(chip.first_hip)} or newer")
        return
    yield Requirement("HIP runtime", True, text)
    try:
        cards = listed(used)
    except UnsupportedError as error:
        yield Requirement("card", False, _told(error))
        return
    if not cards:
        yield Requirement("card", False, f"none; {why_no_card()}")
    yield from (_card(one, chip.name) for one in cards)


def _card(one: CardInfo, chip: str) -> Requirement:
    fits = one.chip == chip
    return Requirement(f"card {one.number}", fits, f"{one.name}, {one.chip}" + ("" if fits else f", which is not {chip}"))


def _told(error: UnsupportedError) -> str:
    return error.message + (f"; {error.help}" if error.help else "")
