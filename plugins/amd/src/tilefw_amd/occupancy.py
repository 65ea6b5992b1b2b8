"""Occupancy: the part of a compute unit's waves that can be resident at once, from what a kernel takes of each of its stores.

Sources: LLVM's AMDGPUBaseInfo.cpp (`getNumWavesPerEUWithNumVGPRs`, `getMaxWorkGroupsPerCU`, `getVGPRAllocGranule`) for gfx90a and
later; scalar registers limit nothing there, as every wave has all of them.
"""

from __future__ import annotations

from collections.abc import Mapping

VGPR_GRANULE = 8  # registers of a lane are allocated in these
LDS_GRANULE = 512  # bytes (CDNA3 ISA, section "Local Data Share": allocation in blocks of 128 dwords)
WORKGROUPS = 16  # of several waves, as many as a compute unit has barriers


def waves_per_simd(limits: Mapping[str, int], vector_registers: int) -> int:
    """Waves that the registers of one SIMD hold, `vector_registers` a lane, accumulation registers among them; 0: not even one."""
    each = _up(max(1, vector_registers), VGPR_GRANULE)
    return min(limits["waves_per_simd"], limits["registers_per_thread"] // each)


# Scalar registers cost no occupancy; what is left of the 102 is for what assignment loses between pairs and fours.
SCALAR_STEPS = (96,)


def steps(limits: Mapping[str, int]) -> tuple[int, ...]:
    """The most registers of a lane with which so many waves fit on a SIMD, ascending: one more costs a wave."""
    most, waves = limits["registers_per_thread"], range(limits["waves_per_simd"], 0, -1)
    return tuple(most // count // VGPR_GRANULE * VGPR_GRANULE for count in waves)


def occupancy(limits: Mapping[str, int], threads: int, vector_registers: int, shared_bytes: int) -> float:
    """Resident waves over the most there can be, for workgroups of `threads`. 0 means that not even one workgroup fits."""
    simds = limits["simds_per_processor"]
    waves, most = _up(threads, limits["lanes"]) // limits["lanes"], simds * limits["waves_per_simd"]
    groups = simds * waves_per_simd(limits, vector_registers) // waves
    if waves > 1:
        groups = min(groups, WORKGROUPS)
    if shared_bytes:
        groups = min(groups, limits["shared_bytes_per_processor"] // _up(shared_bytes, LDS_GRANULE))
    return groups * waves / most


def _up(number: int, unit: int) -> int:
    return -(-number // unit) * unit
