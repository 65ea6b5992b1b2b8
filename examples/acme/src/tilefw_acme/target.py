"""The Acme M1 as data. It is an invented chip; its numbers come from its own (equally invented) manual, "Acme M1", chapter 2."""

from __future__ import annotations

from tilefw.api import TargetInfo

LANES = 16
REGISTERS = 256  # of 32 bits in each lane
PREDICATES = 32

_ARITHMETIC = ("int1", "int4", "int8", "int16", "int32", "int64", "fp16", "bf16", "fp32", "fp64")

M1 = TargetInfo(
    name="acme-m1",
    vendor="acme",
    chip="m1",
    summary="Acme M1: sixteen lanes a warp, forty instructions, simulated",
    backend="tilefw_acme.backend:AcmeBackend",
    provides=frozenset({"lower", "emit", "simulate"}),
    # The chip has 32-bit arithmetic only; tilefw's core expands all else, so all of it is served.
    capabilities=frozenset(
        {"control.*", "memory.*", "cast.*", "select.*"}
        | {f"{group}.*.{name}" for group in ("int", "float", "math") for name in _ARITHMETIC}
    ),
    limits={"lanes": LANES, "threads_per_workgroup": 32 * LANES, "registers_per_thread": REGISTERS},
)
