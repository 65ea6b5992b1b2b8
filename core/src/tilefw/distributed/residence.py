"""How many workgroups of a launch its device holds at once: what waits for a workgroup beyond those waits for ever."""

from __future__ import annotations

import math

from tilefw.api.errors import UnsupportedError
from tilefw.runtime.launchable import Launchable


def residence_of(made: Launchable) -> int | None:
    """By the target's model of time, from the occupancy of the code or, where no tool has told it, from the waves alone; None where
    nobody knows."""
    try:
        chip = made.target.backend.timing()
    except UnsupportedError:
        return None
    threads = math.prod(made.block or made.entry.workgroup or (0,))
    if not threads:
        return None
    waves = math.ceil(threads / made.target.info.limits["lanes"])
    occupancy = made.compiled.artifact.resources.occupancy
    waves_of_processor = chip.resident_waves if occupancy is None else round(occupancy * chip.resident_waves)
    return max(1, waves_of_processor // waves) * chip.processors
