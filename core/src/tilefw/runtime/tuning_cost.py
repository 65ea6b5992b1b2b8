"""What a launch cost, for `autotune`: seconds of a card; on a simulator what it executed and moved, which is no time."""

from __future__ import annotations

from typing import Any

from tilefw.runtime.device_times import EXECUTE

# A byte of global memory counts as so many instructions of one lane: a GPU's processor executes 64 lanes' 32-bit instructions a
# cycle and has 10 bytes of memory bandwidth in it (of 64 lanes, 1,555 GB/s, 108 processors, 1.41 GHz).
LANE_INSTRUCTIONS_A_BYTE = 6


def cost(result: Any) -> float:
    """The cost of a LaunchResult: comparable among launches of one kernel on one target, and between nothing else."""
    counters = result.counters
    if result.executor == "hw":
        return result.times.get(EXECUTE, 0.0)
    for name in ("cycles", "instructions", "ops"):
        if name in counters:
            moved = sum(count for key, count in counters.items() if key.startswith("bytes.global."))
            return float(counters[name] + (LANE_INSTRUCTIONS_A_BYTE * moved if name == "instructions" else 0))
    return result.times.get(EXECUTE, 0.0)
