"""The most registers that a function holds at once, of all classes together, where one file has them all.

Example: `live_peak(function, table, {"r": 1, "rd": 2})`, of registers of 32 bits, of which the class for 64 bits takes two.
The count is that of the order as written; who assigns the registers may reorder.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate

from tilefw.machine.inst import Function
from tilefw.machine.live_ranges import LiveRanges
from tilefw.machine.table import InstructionTable


def live_peak(function: Function, table: InstructionTable, sizes: Mapping[str, int]) -> int:
    """The most that virtual registers take at once. `sizes`: by class what one register takes, 0 where it is not said."""
    ranges = LiveRanges(function, table)
    changes = [0] * (2 * ranges.starts[-1] + 3)
    for reg, parts in ranges.parts.items():
        size = sizes.get(reg.cls, 0)
        for part in parts if size else ():
            for start, end in part.segments:
                changes[start] += size * part.width
                changes[end] -= size * part.width
    return max(accumulate(changes))
