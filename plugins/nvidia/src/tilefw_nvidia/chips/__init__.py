"""The chips of this vendor, a page each: a generation is added here, and in the instruction table by the rows that it alone has."""

from __future__ import annotations

from collections.abc import Mapping

from tilefw_nvidia.chips.chip import Architecture, Chip, Sums
from tilefw_nvidia.chips.sm80 import SM80
from tilefw_nvidia.chips.sm86 import SM86
from tilefw_nvidia.chips.sm89 import SM89

CHIPS: tuple[Chip, ...] = (SM80, SM86, SM89)
_BY_NAME: Mapping[str, Chip] = {name: chip for chip in CHIPS for name in (chip.name, chip.target)}

__all__ = ["CHIPS", "Architecture", "Chip", "Sums", "chip_named"]


def chip_named(name: str) -> Chip:
    """The chip with this name (`sm_80`), or this target's name (`nvidia-sm80`); raises KeyError."""
    return _BY_NAME[name]
