"""The Acme M1 as data. It is an invented chip; its numbers come from its own (equally invented) manual, "Acme M1", chapter 2."""

from __future__ import annotations

from tilefw.api import TargetInfo

LANES = 16
REGISTERS = 256  # of 32 bits in each lane
PREDICATES = 32

_INTEGERS = ("int1", "int4", "int8", "int16", "int32", "int64")
_FLOATS = ("fp16", "bf16", "fp32")
_NARROW = ("fp8e5", "fp8e4nv", "fp8e5b16", "fp8e4b8", "fp8e4b15", "fp6e3m2", "fp6e2m3", "fp4e2m1")

M1 = TargetInfo(
    name="acme-m1",
    vendor="acme",
    chip="m1",
    summary="Acme M1: sixteen lanes a warp, forty instructions, simulated",
    backend="tilefw_acme.backend:AcmeBackend",
    provides=frozenset({"lower", "emit", "simulate"}),
    # The chip has 32-bit arithmetic only; tilefw's core expands the rest of it to that, but for binary64, which is only moved.
    capabilities=frozenset(
        {"control.*", "memory.*"}
        | {f"int.*.{name}" for name in _INTEGERS}
        | {f"{group}.*.{name}" for group in ("float", "math") for name in _FLOATS}
        | {f"cast.*.{name}" for name in (*_INTEGERS, *_FLOATS, *_NARROW, "pointer")}
        | {f"select.{name}" for name in (*_INTEGERS, *_FLOATS, *_NARROW, "fp64")}
    ),
    limits={"lanes": LANES, "threads_per_workgroup": 32 * LANES, "registers_per_thread": REGISTERS},
)
