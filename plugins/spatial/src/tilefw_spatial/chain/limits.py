"""What one piece may take of the vector unit and of the streams."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """`alus` of the unit's 16, and bytes of streams: what comes in passes the unit and stays on its streams to the chip's edge, so
    that a result needs streams of its own in that direction. All `streams` together fit one direction's 32, whichever hemispheres
    the arrays stand in."""

    alus: int = 16
    streams: int = 32
