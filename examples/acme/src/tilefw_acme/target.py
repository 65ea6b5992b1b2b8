"""The ACME X1 as data. The chip is invented for this example, and so are its numbers: they are defined here."""

from __future__ import annotations

from tilefw.api import TargetInfo

LANES = 16  # a warp
VECTORS = 1024  # registers `v` of 32 bits in each lane
PREDICATES = 256  # registers `p` of one bit in each lane
MAX_WARPS = 32  # a workgroup

_INTEGERS = ("int1", "int4", "int8", "int16", "int32", "int64")
_FLOATS = ("fp16", "bf16", "fp32")
_SMALL = ("fp8e5", "fp8e4nv", "fp8e5b16", "fp8e4b8", "fp8e4b15", "fp6e3m2", "fp6e2m3", "fp4e2m1")

# The chip computes on 32-bit integers and f32; core expands the other formats to that. fp64 is moved, never computed on.
CAPABILITIES = frozenset(
    {"control.*", "memory.*", "cast.*.pointer"}
    | {f"int.*.{name}" for name in _INTEGERS}
    | {f"{group}.*.{name}" for group in ("float", "math") for name in _FLOATS}
    | {f"cast.*.{name}" for name in (*_INTEGERS, *_FLOATS, *_SMALL)}
    | {f"select.{name}" for name in (*_INTEGERS, *_FLOATS, *_SMALL, "fp64")}
)

X1 = TargetInfo(
    name="acme-x1",
    vendor="acme",
    chip="x1",
    summary="ACME X1: sixteen lanes a warp, fifty instructions, simulated",
    backend="tilefw_acme.backend:AcmeBackend",
    provides=frozenset({"lower", "emit", "simulate"}),
    capabilities=CAPABILITIES,
    limits={"lanes": LANES, "threads_per_workgroup": MAX_WARPS * LANES, "registers_per_thread": VECTORS},
)
