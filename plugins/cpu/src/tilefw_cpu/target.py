"""The processor at hand as data. Which instructions it has is asked when code is made (`processor.py`)."""

from __future__ import annotations

from tilefw.api import TargetInfo

CAPABILITIES = frozenset({
    "control.*", "cf.*", "memory.*", "int.*", "float.*", "math.*", "cast.*", "select.*", "shape.*", "reduce.*", "scan.*",
    "gather.*", "dot.*", "atomic.*.*", "print", "observe.*",
})
"""All but inline assembly, as LLVM ends the process at text that it cannot assemble, and fences, which only nodes need so far."""

CPU = TargetInfo(
    name="cpu-native",
    vendor="cpu",
    chip="native",
    summary="the processor at hand: native code by LLVM, programs of the grid over threads",
    backend="tilefw_cpu.backend:CpuBackend",
    provides=frozenset({"lower", "emit", "assemble", "device"}),
    capabilities=CAPABILITIES,
    aliases=("cpu",),
    limits={"product_rows": 256, "product_columns": 128, "product_depth": 128},
    wants=frozenset({"divisible_by_16", "equal_to_1", "disjoint", "checks"}),
)

TARGETS = (CPU,)
