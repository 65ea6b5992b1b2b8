"""A launch of a rank: what is ready to be made, and where."""

from __future__ import annotations

from dataclasses import dataclass

from tilefw.runtime.launchable import Launchable


@dataclass(frozen=True, slots=True)
class RankLaunch:
    """A launch that is ready to be made, and the rank that it is made on."""

    rank: int
    made: Launchable
