"""A card that runs the target's PTX: which one, and what of an artifact it loads."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tilefw.api import Artifact, CodeError, TargetInfo, UnsupportedError
from tilefw.api.hardware import Card, CardInfo, CardProgram, DriverError
from tilefw_nvidia import isa
from tilefw_nvidia.chips import Architecture, Chip, chip_of
from tilefw_nvidia.device.driver import CudaDriver, driver
from tilefw_nvidia.device.library import first_cuda, too_old, version

FORMAT = "ptx"
# What the driver opens to find cards: the kernel module's node, and the one of the Windows Subsystem for Linux.
_KERNEL_DRIVERS = ("/dev/nvidiactl", "/dev/dxg")


class CudaCard(Card):
    """`tilefw.api.Device` for PTX of one chip, which the driver compiles for the card."""

    def program(self, artifact: Artifact) -> CardProgram:
        """The text, read here first, so that what is wrong with it is told by line."""
        if artifact.format != FORMAT:
            raise CodeError(f"{self.name} runs code of the format '{FORMAT}', not '{artifact.format}'", "TFW0702")
        name = str(artifact.metadata.get("source_name", f"{artifact.target}.{artifact.format}"))
        module = isa.parse(artifact.text, name)
        shared = {entry: module.shared_bytes(function) for entry, function in module.entries.items()}
        return CardProgram(artifact.text.encode() + b"\0", shared)


def runs(chip: Chip, info: CardInfo) -> bool:
    """Whether a card runs the chip's PTX: cards of its generation and of later ones do (PTX ISA, ".target")."""
    return chip.architecture.runs_on(Architecture.parse(info.chip))


def card(target: TargetInfo, number: int | None = None) -> CudaCard:
    """The card of that number, or the first one of the target's chip, else the first that runs its PTX.

    Raises UnsupportedError: TFW0604 without a CUDA driver, TFW0605 for one that is too old, TFW0606 without a card (or that card),
    TFW0607 where the card is older than the PTX."""
    used = driver()
    chip = chip_of(target)
    said = version(used.library)
    if said < first_cuda(chip):
        raise too_old(said, chip, used.library.path)
    cards = listed(used)
    if number is not None and number >= len(cards):
        raise no_card(f"there is no card {number}", cards)
    if not cards:
        raise no_card("the CUDA driver finds no card", cards)
    chosen = cards[number] if number is not None else min(cards, key=lambda one: (not runs(chip, one), one.chip != chip.name))
    if not runs(chip, chosen):
        raise UnsupportedError(
            f"{target.name} is code for {chip.name}, which card {chosen.number} ({chosen.name}), {chosen.chip}, does not run",
            code="TFW0607", note=f"cards:\n{shown_cards(cards)}",
            help="name a target that the card runs; `tilefw targets` lists them, with their chips",
        )
    return CudaCard(target.name, used, chosen)


def listed(used: CudaDriver) -> Sequence[CardInfo]:
    """The cards; raises UnsupportedError TFW0606 where the driver cannot tell."""
    try:
        return used.cards()
    except DriverError as error:
        raise UnsupportedError(f"the CUDA driver does not start: {error}", code="TFW0606", help=why_no_card()) from None


def no_card(message: str, cards: Sequence[CardInfo]) -> UnsupportedError:
    """The error for a card that is not there."""
    return UnsupportedError(message, code="TFW0606", note=f"cards:\n{shown_cards(cards)}" if cards else None, help=why_no_card())


def shown_cards(cards: Sequence[CardInfo]) -> str:
    """One a line."""
    return "\n".join(map(str, cards))


def why_no_card() -> str:
    """What hides a card most often."""
    found = next((path for path in _KERNEL_DRIVERS if os.path.exists(path)), None)
    if found is None:
        return f"{_KERNEL_DRIVERS[0]} is not there: load NVIDIA's kernel driver, or pass the device into the container"
    if not os.access(found, os.R_OK | os.W_OK):
        return f"{found} may not be opened: ask for the right to read and write it"
    return "CUDA_VISIBLE_DEVICES may hide it" if "CUDA_VISIBLE_DEVICES" in os.environ else "`nvidia-smi` lists what the driver sees"
