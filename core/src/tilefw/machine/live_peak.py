"""The most registers that a function holds at once, of all classes together, where one file has them all.

Example: `live_peak(function, table, {"r": 1, "rd": 2})`, of registers of 32 bits, of which the class for 64 bits takes two.
The count is that of the order as written; who assigns the registers may reorder.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import NamedTuple

from tilefw.machine.inst import Function
from tilefw.machine.live_ranges import LiveRanges
from tilefw.machine.table import InstructionTable


class LivePeak(NamedTuple):
    """`most` are live at once; `least` at any place in the same block: no other order of the block needs fewer."""

    most: int
    least: int


def live_peak(function: Function, table: InstructionTable, sizes: Mapping[str, int]) -> LivePeak:
    """Counts what virtual registers take. `sizes`: by class what one register takes, 0 where it is not said."""
    ranges = LiveRanges(function, table)
    changes = [0] * (2 * ranges.starts[-1] + 3)
    for reg, parts in ranges.parts.items():
        size = sizes.get(reg.cls, 0)
        for part in parts if size else ():
            for start, end in part.segments:
                changes[start] += size * part.width
                changes[end] -= size * part.width
    live = list(accumulate(changes))
    blocks = [live[2 * start : 2 * end] for start, end in zip(ranges.starts, ranges.starts[1:], strict=False) if start < end]
    return max((LivePeak(max(block), min(block)) for block in blocks), default=LivePeak(0, 0))
