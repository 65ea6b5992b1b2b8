"""What one segment may take of the vector unit and of the streams."""

from __future__ import annotations

from dataclasses import dataclass

from tilefw_spatial.machine import Machine


@dataclass(frozen=True, slots=True)
class ChainLimits:
    """`alus` of the unit, and bytes of streams: what comes in passes the unit and stays on its streams to the chip's edge, so that
    a result needs streams of its own in that direction. All `streams` together fit one direction, whichever hemispheres the
    arrays are in."""

    alus: int
    streams: int

    @staticmethod
    def of(machine: Machine) -> ChainLimits:
        """All that a machine has."""
        return ChainLimits(machine.alus, machine.streams)
