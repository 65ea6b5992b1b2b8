"""How many registers ptxas will need for a function, and what is done about a loop for which they do not last.

Registers are of 32 bits. ptxas reorders, so the count of those that are live in the order as written is only a bound.
"""

from __future__ import annotations

import math

from tilefw.api.integers import ceil_div
from tilefw.api.machine import Function, LivePeak, RematerialiseInLoops, entry_of
from tilefw_nvidia.chips import Chip
from tilefw_nvidia.select.lanes import TABLE

SIZES = {"rs": 1, "r": 1, "rd": 2}  # of a value of the class
DEAL = "setmaxnreg"


def needed_at_least(peak: LivePeak) -> int:
    """What ptxas's code needs at least; 0 where that is not known. Where half of the most that are live in the order as written are
    so all through a block, as sums are in a loop, it needs these and two thirds of the rest (ptxas 12.9, bench/works.py)."""
    return ceil_div(peak.least + 2 * peak.most, 3) if 2 * peak.least >= peak.most else 0


def rematerialise(chip: Chip, maxnreg: int | None) -> RematerialiseInLoops:
    """The pass that makes values in loops for which a thread has too few registers: ptxas would spill there."""

    def excess(function: Function, peak: LivePeak) -> int:
        if any(inst.opcode.startswith(DEAL) for inst in function.insts()):
            return 0  # a role has what it is dealt
        threads = math.prod(entry_of(function).workgroup)
        most = min(maxnreg or chip.registers_per_thread, chip.registers_per_thread, chip.registers_per_processor // threads)
        return peak.most - most if needed_at_least(peak) > most else 0  # the least is not enough, nor is a little less

    return RematerialiseInLoops(TABLE, SIZES, excess)
