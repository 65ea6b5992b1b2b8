"""Occupancy: the part of a multiprocessor's warps that can be resident at once, from what ptxas reports and the chip's limits.

Source: the CUDA Occupancy Calculator's data for a compute capability (allocation units), and the CUDA C++ Programming Guide,
"Technical Specifications per Compute Capability". The numbers are in the chip's page.
"""

from __future__ import annotations

from tilefw.api.integers import round_up
from tilefw_nvidia.chips import Chip


def occupancy(chip: Chip, threads: int, registers: int, shared_bytes: int) -> float:
    """Resident warps over the most there can be, for blocks of `threads`, `registers` a thread and `shared_bytes` a block.

    0 means that not even one block fits.
    """
    lanes = chip.lanes
    warps, most = round_up(threads, lanes) // lanes, chip.threads_per_processor // lanes
    by_registers = most
    if registers:
        whole = chip.registers_per_processor // round_up(registers * lanes, chip.register_unit)
        by_registers = whole // chip.warp_unit * chip.warp_unit
    by_shared = chip.shared_bytes_per_processor // round_up(shared_bytes + chip.system_shared_bytes, chip.shared_unit)
    blocks = min(most // warps, by_registers // warps, by_shared, chip.workgroups_per_processor)
    return blocks * warps / most
