"""The pipes of a streaming multiprocessor that instructions go to, with the latency of a dependent result.

Latencies are cycles of Accel-Sim's tested configuration `SM90_H100` (ALU 4, special functions 23, shared memory 29, L1 41)
and are assumed alike for sm_80; none is calibrated on hardware by us. 0: nothing waits for a result.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unit:
    name: str
    latency: int
    doc: str


_ACCEL_SIM = "Accel-Sim configs/tested-cfgs/SM90_H100"

UNITS: dict[str, Unit] = {
    u.name: u
    for u in (
        Unit("alu", 4, f"32-bit integer and logic; {_ACCEL_SIM}"),
        Unit("fma", 4, f"f32, f16 and bf16 arithmetic, integer multiply; {_ACCEL_SIM}"),
        Unit("fp64", 8, "f64 arithmetic; twice the f32 latency, an assumption"),
        Unit("sfu", 23, f"special functions; {_ACCEL_SIM}"),
        Unit("convert", 6, "conversions; between ALU and special functions, an assumption"),
        Unit("tensor", 33, "matrix instructions; arXiv 2402.13499 gives 33 cycles for mma.sync m16n8k16 on A100"),
        Unit("shared", 29, f"shared memory; {_ACCEL_SIM}"),
        Unit("memory", 41, f"other memory, on a hit of L1; {_ACCEL_SIM}"),
        Unit("async", 0, "asynchronous copies"),
        Unit("shuffle", 29, "across lanes, on the shared-memory pipe; assumed alike to shared memory"),
        Unit("control", 0, "branches, barriers, fences"),
    )
}
