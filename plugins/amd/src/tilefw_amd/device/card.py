"""A card of the target's chip: which one, and what of an artifact it loads."""

from __future__ import annotations

import os

from tilefw.api import Artifact, CodeError, TargetInfo, UnsupportedError
from tilefw.api.hardware import Card, CardInfo, CardProgram, CardSearch
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


class HipSearch(CardSearch[HipDriver]):
    """Cards of the target's own chip."""

    product = "HIP runtime"

    def __init__(self, target: TargetInfo) -> None:
        chip = chip_of(target)
        super().__init__(target, chip.name, chip.first_hip)

    def open(self) -> tuple[HipDriver, tuple[int, ...], str]:
        """Raises UnsupportedError TFW0604 without a HIP runtime."""
        used = driver()
        return used, version(used.library), used.library.path

    def too_old(self, version: tuple[int, ...], path: str) -> UnsupportedError:
        return too_old(version, self.first, path, self.chip)

    def misfit(self, card: CardInfo) -> tuple[str, str]:
        return (
            f"{self.target.name} is code for {self.chip}, and card {card.number} ({card.name}) is {card.chip}",
            "name the card's own target; `tilefw targets` lists them, with their chips",
        )

    def hidden(self) -> str:
        if not os.path.exists(_KERNEL_DRIVER):
            return f"{_KERNEL_DRIVER} is not there: load the kernel driver amdgpu, or pass the device into the container"
        if not os.access(_KERNEL_DRIVER, os.R_OK | os.W_OK):
            return f"{_KERNEL_DRIVER} may not be opened: add the user to the groups render and video"
        hidden = [name for name in ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES") if name in os.environ]
        return f"{' and '.join(hidden)} may hide it" if hidden else "`rocminfo` lists what the runtime sees"


def card(target: TargetInfo, number: int | None = None) -> HipCard:
    """The card of that number, or the first one of the target's chip.

    Raises UnsupportedError: TFW0604 without a HIP runtime, TFW0605 for one that is too old, TFW0606 without a card (or that card),
    TFW0607 where the card is another chip."""
    return HipCard(target, *HipSearch(target).chosen(number))
