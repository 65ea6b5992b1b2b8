"""What the card's executor needs of this machine, in the order in which it looks for it: library, version, cards, chip."""

from __future__ import annotations

from collections.abc import Iterator

from tilefw.api import Requirement, TargetInfo, UnsupportedError
from tilefw.api.hardware import CardInfo
from tilefw_nvidia.chips import Chip, chip_of
from tilefw_nvidia.device.card import listed, runs, why_no_card
from tilefw_nvidia.device.driver import driver
from tilefw_nvidia.device.library import first_cuda, shown, version


def requirements(target: TargetInfo) -> Iterator[Requirement]:
    """Each up to the first that is not met."""
    chip = chip_of(target)
    try:
        used = driver()
        said = version(used.library)
    except UnsupportedError as error:
        yield Requirement("CUDA driver", False, _told(error))
        return
    text = f"{shown(said)} at {used.library.path}"
    if said < first_cuda(chip):
        yield Requirement("CUDA driver", False, f"{text}; {chip.name} needs {shown(first_cuda(chip))} or newer")
        return
    yield Requirement("CUDA driver", True, text)
    try:
        cards = listed(used)
    except UnsupportedError as error:
        yield Requirement("card", False, _told(error))
        return
    if not cards:
        yield Requirement("card", False, f"none; {why_no_card()}")
    yield from (_card(one, chip) for one in cards)


def _card(one: CardInfo, chip: Chip) -> Requirement:
    fits = runs(chip, one)
    text = f"{one.name}, {one.chip}" + ("" if fits else f", which does not run {chip.name}")
    return Requirement(f"card {one.number}", fits, text)


def _told(error: UnsupportedError) -> str:
    return error.message + (f"; {error.help}" if error.help else "")
