"""The launch keywords `chips` and `split`: how many chips, and how they share a launch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilefw.api import LaunchError
from tilefw_spatial.machine import Machine
from tilefw_spatial.partition import SPLITS


def node_options(given: Mapping[str, Any], machine: Machine) -> tuple[int, str]:
    """The number of chips and the strategy. Raises LaunchError TFW0655 for values that are none."""
    chips, split = given.get("chips", 1), given.get("split", "n")
    if type(chips) is not int or not 1 <= chips <= machine.node_chips:
        raise LaunchError(
            f"chips is a whole number from 1 to {machine.node_chips}, not {chips!r}", code="TFW0655",
            note=f"a node of {machine.name} has {machine.node_chips} chips",
        )
    if split not in SPLITS:
        raise LaunchError(f"split is one of {', '.join(SPLITS)}, not {split!r}", code="TFW0655")
    return chips, split
