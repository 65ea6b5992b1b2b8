"""The Rook R1 as data: a `TargetInfo`. The chip is invented for this example, and its numbers are defined here."""

from __future__ import annotations

from tilefw.api import TargetInfo

_INTEGERS = ("int1", "int4", "int8", "int16", "int32", "int64")
_FLOATS = ("fp16", "bf16", "fp32")
_SMALL = ("fp8e5", "fp8e4nv", "fp8e5b16", "fp8e4b8", "fp8e4b15", "fp6e3m2", "fp6e2m3", "fp4e2m1")

# The chip computes on 32-bit integers and binary32, and core expands other formats to that. It moves fp64, no more.
CAPABILITIES = frozenset(
    {"control.*", "cf.*", "memory.*", "cast.*.pointer", "shape.*", "dot.*.fp32", "dot.*.fp32.*", "dot.*.fp16", "dot.*.int32"}
    | {f"int.*.{name}" for name in _INTEGERS}
    | {f"{group}.*.{name}" for group in ("float", "math") for name in _FLOATS}
    | {f"{group}.{name}" for group in ("reduce", "scan") for name in (*_INTEGERS, *_FLOATS)}
    | {f"cast.*.{name}" for name in (*_INTEGERS, *_FLOATS, *_SMALL)}
    | {f"select.{name}" for name in (*_INTEGERS, *_FLOATS, *_SMALL, "fp64")}
    | {f"atomic.*.{name}" for name in ("int16", "int32", "int64", *_FLOATS)}
    | {"atomic.fence", *(f"atomic.{kind}.fp64" for kind in ("max", "min", "xchg", "cas"))}
)

R1 = TargetInfo(
    name="rook-r1", vendor="rook", chip="r1",
    summary="Rook R1: a RISC chip with sixteen lanes a wave, 32-bit pointers and a mask stack, simulated",
    backend="tilefw_rook.backend:RookBackend", provides=frozenset({"lower", "emit", "simulate"}), capabilities=CAPABILITIES,
    limits={
        "lanes": 16, "threads_per_workgroup": 512, "integer_registers": 25, "float_registers": 32, "mask_depth": 31,
        "shared_bytes": 64 << 10, "banks": 16, "private_bytes": 64 << 10,
    },
)
