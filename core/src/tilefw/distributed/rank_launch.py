"""A launch of a rank: what is ready to be made, and where."""

from __future__ import annotations

from dataclasses import dataclass

from tilefw.api.errors import Place
from tilefw.runtime.arguments.arrays import HostArray
from tilefw.runtime.launchable import Launchable


@dataclass(frozen=True, slots=True)
class RankLaunch:
    """A launch that is ready to be made, the rank that it is made on, the rank's node context, and where the kernel is written. All
    programs of one that is `cooperative` must be on the device at once. `prints`: what its kernel prints is written here."""

    rank: int
    made: Launchable
    context: HostArray
    place: Place | None = None
    cooperative: bool = False
    prints: bool = True
