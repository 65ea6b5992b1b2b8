"""Latencies of the pipes of a streaming multiprocessor, in cycles from an instruction to one that uses its result.

From Accel-Sim's tested configuration `SM90_H100` (ALU 4, special functions 23, shared memory 29, L1 41), assumed alike for earlier
chips; none is calibrated on hardware by us. 0: nothing waits for a result.
"""

from __future__ import annotations

from collections.abc import Mapping

ACCEL_SIM: Mapping[str, int] = {
    "alu": 4,
    "fma": 4,
    "fp64": 8,  # twice the f32 latency, an assumption
    "sfu": 23,
    "convert": 6,  # between ALU and special functions, an assumption
    "tensor": 33,  # mma.sync m16n8k16 on A100: arXiv 2402.13499
    "shared": 29,
    "memory": 41,
    "async": 0,
    "shuffle": 29,  # across lanes, on the shared-memory pipe: assumed alike
    "control": 0,
}
