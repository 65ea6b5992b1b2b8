"""The pipes of a compute unit that instructions go to, with the latency of a dependent result.

Latencies are cycles: four times the figures of LLVM's scheduling model SIDPGFX940FullSpeedModel (`SISchedule.td`), which counts in
fours, and whose own comments call those of LDS, vector memory and barriers guesses; none is calibrated on hardware by us.
0: nothing waits for a result.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unit:
    name: str
    latency: int
    doc: str


_LLVM = "LLVM SISchedule.td"

UNITS: dict[str, Unit] = {
    u.name: u
    for u in (
        Unit("salu", 4, f"scalar arithmetic and logic; {_LLVM}"),
        Unit("smem", 20, f"scalar memory; {_LLVM}"),
        Unit("valu", 4, f"vector arithmetic of 32 bits and less; {_LLVM}"),
        Unit("valu64", 4, f"vector arithmetic of 64 bits at full rate; {_LLVM}"),
        Unit("trans", 16, f"reciprocals, roots, exponentials, logarithms, sines; {_LLVM}"),
        Unit("matrix", 16, "matrix instructions: four cycles a pass; AMD matrix instruction calculator, LLVM SISchedule.td"),
        Unit("lds", 20, f"local data share; {_LLVM}"),
        Unit("vmem", 320, f"global, flat, scratch and buffer access; {_LLVM}"),
        Unit("export", 0, "messages"),
        Unit("control", 0, "branches, waits, barriers, the end"),
    )
}
