"""Occupancy: the part of a compute unit's waves that can be resident at once, from what a kernel takes of each of its stores.

Sources: LLVM's AMDGPUBaseInfo.cpp (`getNumWavesPerEUWithNumVGPRs`, `getMaxWorkGroupsPerCU`, `getVGPRAllocGranule`) for gfx90a and
later; scalar registers limit nothing there, as every wave has all of them.
"""

from __future__ import annotations

import math

from tilefw.api.integers import ceil_div, round_up
from tilefw_amd.chips import Chip

# Scalar registers cost no occupancy; what is left of the 102 is for what assignment loses between pairs and fours.
SCALAR_STEPS = (96,)


def waves_per_simd(chip: Chip, vector_registers: int) -> int:
    """Waves that the registers of one SIMD hold, `vector_registers` a lane, accumulation registers among them; 0: not even one."""
    each = round_up(max(1, vector_registers), chip.vector_granule)
    return min(chip.limits["waves_per_simd"], chip.limits["registers_per_thread"] // each)


def steps(chip: Chip) -> dict[str, tuple[int, ...]]:
    """The most registers with which so many waves fit on a SIMD, by class, ascending: one more costs a wave."""
    most, waves, granule = chip.limits["registers_per_thread"], range(chip.limits["waves_per_simd"], 0, -1), chip.vector_granule
    return {"v": tuple(most // count // granule * granule for count in waves), "s": SCALAR_STEPS}


def reachable(chip: Chip, threads: int, shared_bytes: int) -> dict[str, tuple[int, ...]]:
    """Those of `steps` with no more waves than LDS has room for, for workgroups of `threads`."""
    if not shared_bytes:
        return steps(chip)
    limits = chip.limits
    groups = limits["shared_bytes_per_processor"] // round_up(shared_bytes, chip.shared_granule)
    waves = groups * ceil_div(threads, limits["lanes"]) / limits["simds_per_processor"]
    least = limits["registers_per_thread"] // max(1, math.ceil(waves)) // chip.vector_granule * chip.vector_granule
    return {"v": tuple(step for step in steps(chip)["v"] if step >= least)}


def occupancy(chip: Chip, threads: int, vector_registers: int, shared_bytes: int) -> float:
    """Resident waves over the most there can be, for workgroups of `threads`. 0 means that not even one workgroup fits."""
    limits = chip.limits
    simds = limits["simds_per_processor"]
    waves, most = round_up(threads, limits["lanes"]) // limits["lanes"], simds * limits["waves_per_simd"]
    groups = simds * waves_per_simd(chip, vector_registers) // waves
    if waves > 1:
        groups = min(groups, chip.workgroups)
    if shared_bytes:
        groups = min(groups, limits["shared_bytes_per_processor"] // round_up(shared_bytes, chip.shared_granule))
    return groups * waves / most
