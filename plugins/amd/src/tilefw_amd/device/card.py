"""A card of the target's chip: which one, and what of an artifact it loads."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tilefw.api import Artifact, CodeError, TargetInfo, UnsupportedError
from tilefw.api.hardware import Card, CardInfo, CardProgram, DriverError
from tilefw_amd import code_object
from tilefw_amd.assembler.assemble import assemble
from tilefw_amd.chips import chip_of
from tilefw_amd.device.driver import HipDriver, driver
from tilefw_amd.device.library import too_old, version
from tilefw_amd.isa.set import instruction_set

FORMAT = "hsaco"
_KERNEL_DRIVER = "/dev/kfd"  # what the runtime opens to find cards (ROCm, "ROCm installation prerequisites")


class HipCard(Card):
    """`tilefw.api.Device` for code objects of one chip."""

    def __init__(self, target: TargetInfo, used: HipDriver, info: CardInfo) -> None:
        super().__init__(target.name, used, info)
        self.isa = instruction_set(chip_of(target))

    def program(self, artifact: Artifact) -> CardProgram:
        """The code object, read here first, so that what is wrong with it is told by name."""
        if artifact.format != FORMAT:
            raise CodeError(f"{self.name} runs code of the format '{FORMAT}', not '{artifact.format}'", "TFW0702")
        name = str(artifact.metadata.get("source_name", f"{artifact.target}.{artifact.format}"))
        image = artifact.binary or assemble(self.isa, artifact.text, name)
        found = code_object.read(image, name, self.isa.chip)
        return CardProgram(image, {kernel.name: kernel.descriptor.group_segment_fixed_size for kernel in found.kernels})


def card(target: TargetInfo, number: int | None = None) -> HipCard:
    """The card of that number, or the first one of the target's chip.

    Raises UnsupportedError: TFW0604 without a HIP runtime, TFW0605 for one that is too old, TFW0606 without a card (or that card),
    TFW0607 where the card is another chip."""
    used = driver()
    chip = chip_of(target)
    said = version(used.library)
    if said[:2] < chip.first_hip:
        raise too_old(said, chip.first_hip, used.library.path, chip.name)
    cards = listed(used)
    if number is not None and number >= len(cards):
        raise no_card(f"there is no card {number}", cards)
    if not cards:
        raise no_card("the HIP runtime finds no card", cards)
    fitting = [one for one in cards if one.chip == chip.name]
    chosen = cards[number] if number is not None else (fitting or cards)[0]
    if chosen.chip != chip.name:
        raise UnsupportedError(
            f"{target.name} is code for {chip.name}, and card {chosen.number} ({chosen.name}) is {chosen.chip}", code="TFW0607",
            note=f"cards:\n{shown_cards(cards)}", help="name the card's own target; `tilefw targets` lists them, with their chips",
        )
    return HipCard(target, used, chosen)


def listed(used: HipDriver) -> Sequence[CardInfo]:
    """The cards; raises UnsupportedError TFW0606 where the runtime cannot tell."""
    try:
        return used.cards()
    except DriverError as error:
        raise UnsupportedError(f"the HIP runtime does not start: {error}", code="TFW0606", help=why_no_card()) from None


def no_card(message: str, cards: Sequence[CardInfo]) -> UnsupportedError:
    """The error for a card that is not there."""
    return UnsupportedError(message, code="TFW0606", note=f"cards:\n{shown_cards(cards)}" if cards else None, help=why_no_card())


def shown_cards(cards: Sequence[CardInfo]) -> str:
    return "\n".join(map(str, cards))


def why_no_card() -> str:
    """What hides a card most often."""
    if not os.path.exists(_KERNEL_DRIVER):
        return f"{_KERNEL_DRIVER} is not there: load the kernel driver amdgpu, or pass the device into the container"
    if not os.access(_KERNEL_DRIVER, os.R_OK | os.W_OK):
        return f"{_KERNEL_DRIVER} may not be opened: add the user to the groups render and video"
    hidden = [name for name in ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES") if name in os.environ]
    return f"{' and '.join(hidden)} may hide it" if hidden else "`rocminfo` lists what the runtime sees"
