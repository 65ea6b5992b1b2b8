"""A card that runs the target's PTX: which one, and what of an artifact it loads."""

from __future__ import annotations

import os

from tilefw.api import Artifact, CodeError, TargetInfo, UnsupportedError
from tilefw.api.hardware import Card, CardInfo, CardProgram, CardSearch
from tilefw_nvidia import isa
from tilefw_nvidia.chips import Architecture, chip_of
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


class CudaSearch(CardSearch[CudaDriver]):
    """Cards of the chip's generation and of later ones, which run its PTX; where that is for one chip alone, cards of that chip
    (PTX ISA, ".target")."""

    product = "CUDA driver"
    unlike = "does not run"

    def __init__(self, target: TargetInfo) -> None:
        self._chip = chip_of(target)
        super().__init__(target, self._chip.name, first_cuda(self._chip))

    def open(self) -> tuple[CudaDriver, tuple[int, ...], str]:
        """Raises UnsupportedError TFW0604 without a CUDA driver, TFW0605 where it does not tell its version."""
        used = driver()
        return used, version(used.library), used.library.path

    def too_old(self, version: tuple[int, ...], path: str) -> UnsupportedError:
        return too_old(version, self._chip, path)

    def runs(self, card: CardInfo) -> bool:
        """A card also runs what is for its own compute capability alone."""
        return self._chip.architecture.runs_on(Architecture(Architecture.parse(card.chip).number, "a"))

    def misfit(self, card: CardInfo) -> tuple[str, str]:
        return (
            f"{self.target.name} is code for {self.chip}, which card {card.number} ({card.name}), {card.chip}, does not run",
            "name a target that the card runs; `tilefw targets` lists them, with their chips",
        )

    def hidden(self) -> str:
        found = next((path for path in _KERNEL_DRIVERS if os.path.exists(path)), None)
        if found is None:
            return f"{_KERNEL_DRIVERS[0]} is not there: load NVIDIA's kernel driver, or pass the device into the container"
        if not os.access(found, os.R_OK | os.W_OK):
            return f"{found} may not be opened: ask for the right to read and write it"
        if "CUDA_VISIBLE_DEVICES" in os.environ:
            return "CUDA_VISIBLE_DEVICES may hide it"
        return "`nvidia-smi` lists what the driver sees"


def card(target: TargetInfo, number: int | None = None) -> CudaCard:
    """The card of that number, or the first one of the target's chip, else the first that runs its PTX.

    Raises UnsupportedError: TFW0604 without a CUDA driver, TFW0605 for one that is too old, TFW0606 without a card (or that card),
    TFW0607 where the card does not run the PTX."""
    return CudaCard(target.name, *CudaSearch(target).chosen(number))
