"""The first `.version` that has a `.target`, for targets without a page: older chips, whose code later ones run.

PTX ISA, "Release Notes", "PTX Release History".
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tilefw_nvidia.chips.chip import Version

FIRST_VERSIONS: Mapping[int, Version] = MappingProxyType({
    50: (4, 0), 52: (4, 1), 53: (4, 2), 60: (5, 0), 61: (5, 0), 62: (5, 0), 70: (6, 0), 72: (6, 1), 75: (6, 3), 87: (7, 4),
})
