"""The pipes of a compute unit that instructions go to. How long each takes is in the chip's page (`Rates.latency`)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_LLVM = "LLVM SISchedule.td"

UNITS: Mapping[str, str] = MappingProxyType({
    "salu": f"scalar arithmetic and logic; {_LLVM}",
    "smem": f"scalar memory; {_LLVM}",
    "valu": f"vector arithmetic of 32 bits and less; {_LLVM}",
    "valu64": f"vector arithmetic of 64 bits at full rate; {_LLVM}",
    "trans": f"reciprocals, roots, exponentials, logarithms, sines; {_LLVM}",
    "matrix": "matrix instructions: four cycles a pass; AMD matrix instruction calculator, LLVM SISchedule.td",
    "lds": f"local data share; {_LLVM}",
    "vmem": f"global, flat, scratch and buffer access; {_LLVM}",
    "export": "messages",
    "control": "branches, waits, barriers, the end",
})
"""What each does, by its name in rows."""
