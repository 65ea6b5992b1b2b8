"""The ACME chips as data: each is a `TargetInfo`. They are invented for this example, and their numbers are defined here.

The X1 computes with sixteen lanes and shares memory within a workgroup. The X2 has waves of 64 lanes, reads registers across them,
and multiplies small matrices (`matrix.py`).
"""

from __future__ import annotations

from tilefw.api import TargetInfo

_INTEGERS = ("int1", "int4", "int8", "int16", "int32", "int64")
_FLOATS = ("fp16", "bf16", "fp32")
_SMALL = ("fp8e5", "fp8e4nv", "fp8e5b16", "fp8e4b8", "fp8e4b15", "fp6e3m2", "fp6e2m3", "fp4e2m1")

# The chips compute on 32-bit integers and f32; core expands the other formats to that. fp64 is moved, never computed on.
CAPABILITIES = frozenset(
    {"control.*", "cf.*", "memory.*", "cast.*.pointer", "shape.*", "dot.*.fp32", "dot.*.fp32.*", "dot.*.fp16", "dot.*.int32"}
    | {f"int.*.{name}" for name in _INTEGERS}
    | {f"{group}.*.{name}" for group in ("float", "math") for name in _FLOATS}
    | {f"{group}.{name}" for group in ("reduce", "scan") for name in (*_INTEGERS, *_FLOATS)}
    | {f"cast.*.{name}" for name in (*_INTEGERS, *_FLOATS, *_SMALL)}
    | {f"select.{name}" for name in (*_INTEGERS, *_FLOATS, *_SMALL, "fp64")}
    | {f"atomic.*.{name}" for name in ("int16", "int32", "int64", *_FLOATS)}
    | {"atomic.fence"}
    | {f"atomic.{kind}.fp64" for kind in ("max", "min", "xchg", "cas")}
)


def _target(chip: str, summary: str, **limits: int) -> TargetInfo:
    return TargetInfo(
        name=f"acme-{chip}", vendor="acme", chip=chip, summary=summary, backend="tilefw_acme.backend:AcmeBackend",
        provides=frozenset({"lower", "emit", "simulate"}), capabilities=CAPABILITIES, limits=limits,
    )


# Registers of 32 bits (`v`) and of one bit (`p`) are those of a lane; a workgroup's shared memory lies in banks of 4 bytes.
X1 = _target(
    "x1", "ACME X1: sixteen lanes a wave and shared memory, simulated",
    lanes=16, threads_per_workgroup=512, registers_per_thread=2048, predicates_per_thread=256, shared_bytes=64 << 10, banks=16,
)
X2 = _target(
    "x2", "ACME X2: waves of 64 lanes, shuffles and matrix instructions, simulated",
    lanes=64, threads_per_workgroup=1024, registers_per_thread=512, predicates_per_thread=128, shared_bytes=64 << 10, banks=32,
)
