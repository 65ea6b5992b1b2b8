"""Occupancy: the part of a multiprocessor's warps that can be resident at once, from what ptxas reports and the chip's limits.

Source: the CUDA Occupancy Calculator's data for a compute capability (allocation units), and the CUDA C++ Programming Guide,
"Technical Specifications per Compute Capability"; from compute capability 8.0 on, one KiB of the shared memory of each block is the
system's.
"""

from __future__ import annotations

from collections.abc import Mapping

REGISTER_UNIT = 256  # registers of a warp are allocated in these
WARP_UNIT = 4  # and warps in these, one for each of the multiprocessor's four partitions
SHARED_UNIT = 128  # bytes
SYSTEM_SHARED = 1024  # bytes of each block


def occupancy(limits: Mapping[str, int], threads: int, registers: int, shared_bytes: int) -> float:
    """Resident warps over the most there can be, for blocks of `threads`, `registers` a thread and `shared_bytes` a block.

    0 means that not even one block fits.
    """
    lanes = limits["lanes"]
    warps, most = _up(threads, lanes) // lanes, limits["threads_per_processor"] // lanes
    by_registers = most
    if registers:
        whole = limits["registers_per_processor"] // _up(registers * lanes, REGISTER_UNIT)
        by_registers = whole // WARP_UNIT * WARP_UNIT
    by_shared = limits["shared_bytes_per_processor"] // _up(shared_bytes + SYSTEM_SHARED, SHARED_UNIT)
    blocks = min(most // warps, by_registers // warps, by_shared, limits["workgroups_per_processor"])
    return blocks * warps / most


def _up(number: int, unit: int) -> int:
    return -(-number // unit) * unit
