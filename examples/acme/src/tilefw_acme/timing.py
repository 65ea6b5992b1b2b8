"""The model of time of the ACME chips: their figures, and what an instruction costs by its row of the table."""

from __future__ import annotations

from typing import Any

from tilefw.api import TargetInfo
from tilefw.api.timing import ChipFigures, ChipTiming, InstructionCost, MemoryLevel
from tilefw_acme.isa import ROWS

_PROCESSORS, _RESIDENT_WAVES = 16, 16  # of both chips, invented as they are


def chip_timing(target: TargetInfo, figures: ChipFigures) -> ChipTiming:
    """The chip by its figures: each scheduler has a pipe for each unit of the table; banks and the way to memory are shared."""
    f, rows = figures, ROWS[target.chip]
    cycles = max(1.0, target.limits["lanes"] / f["lanes_a_cycle"])

    def cost(instruction: Any) -> InstructionCost:
        """Accesses to memory wait for the level that answers; the latencies of their rows are for the compiler."""
        unit = instruction.unit
        return InstructionCost(unit, cycles, 1 if unit == "memory" else rows[instruction.mnemonic].latency)

    return ChipTiming(
        figures=f, product=target.summary, clock_hz=f["clock"] * 1e6, processors=_PROCESSORS, dies=1,
        schedulers=int(f["schedulers"]), issue_interval=1,
        pipes={**{row.unit: "scheduler" for row in rows.values()}, "banks": "processor"}, shared_pipe="banks", shared_pass=1,
        barrier=f["barrier"],
        levels=(
            MemoryLevel("cache", "processor", int(f["cache_bytes"]), f["cache_latency"], f["cache_rate"], 64),
            MemoryLevel("DRAM", "chip", 0, f["memory_latency"], f["memory_rate"]),
        ),
        cost=cost, resident_waves=_RESIDENT_WAVES, launch_seconds=f["launch"] * 1e-6,
        workgroup_cycles=f["workgroup_cycles"], matrix_pipes=frozenset({"matrix"}),
    )
