"""The releases of PTX, and the first `.version` that has a `.target`, for targets without a page: older chips, whose code later
ones run.

PTX ISA, "Release Notes", "PTX Release History".
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tilefw_nvidia.chips.chip import Version

FIRST_VERSIONS: Mapping[int, Version] = MappingProxyType({
    50: (4, 0), 52: (4, 1), 53: (4, 2), 60: (5, 0), 61: (5, 0), 62: (5, 0), 70: (6, 0), 72: (6, 1), 75: (6, 3), 87: (7, 4),
    90: (7, 8),
})

SPECIFIC_TARGETS = "sm_90a sm_100a sm_101a sm_103a sm_110a sm_120a sm_121a"
"""Targets that alone have setmaxnreg and tensormap.replace (their "Target ISA Notes"); all but the first are of later chips."""
WARPGROUP_TARGETS = "sm_90a"
"""Targets that have wgmma ("Asynchronous Warpgroup Level Matrix Instructions")."""

LAST_RELEASES: Mapping[int, int] = MappingProxyType({1: 5, 2: 3, 3: 2, 4: 3, 5: 1, 6: 5, 7: 8, 8: 8, 9: 4})
"""By the major number of a `.version` the last minor one: what the ptxas of CUDA 13.4 accepts."""


def is_release(version: Version) -> bool:
    major, minor = version
    return 0 <= minor <= LAST_RELEASES.get(major, -1)
