"""The memory spaces of which each workgroup, wave or lane has its own copy: shared, local, and those that the chip declares."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tilefw.api.errors import PluginError
from tilefw.sim.engine.frame import Frame
from tilefw.sim.floats import Array
from tilefw.sim.program import SimulatedChip, SpaceOwner


def owners_of(chip: SimulatedChip) -> Mapping[str, SpaceOwner]:
    """Who has a copy of each space; parameters, constants and global memory belong to all and are not there."""
    return {"shared": "workgroup", "local": "lane", **{space.name: space.owner for space in chip.spaces}}


def copies(owner: SpaceOwner, shape: tuple[int, int, int]) -> int:
    """How many owners there are in so many workgroups, waves of each and lanes of each."""
    groups, waves, lanes = shape
    return {"workgroup": groups, "wave": groups * waves, "lane": groups * waves * lanes}[owner]


def copy_of(owner: SpaceOwner | None, frame: Frame, shape: tuple[int, int, int]) -> Array:
    """Which copy each lane of a frame has, of a batch of this shape."""
    _, waves, lanes = shape
    if owner == "workgroup":
        return frame.group
    if owner is None:
        return np.zeros((1, 1, 1), dtype=np.int64)
    wave = frame.group * waves + frame.wave
    return wave if owner == "wave" else wave * lanes + frame.lane


def no_space(chip: SimulatedChip, space: str) -> PluginError:
    """The plugin names a space that its chip does not have."""
    known = ", ".join(("global", "param", "const", "generic", *owners_of(chip)))
    return PluginError(
        f"{chip.name} has no memory space '{space}'", code="TFW0516", note=f"its spaces: {known}",
        help="declare it in `Chip.spaces`",
    )
