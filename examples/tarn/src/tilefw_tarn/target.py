"""The target as data: the Tarn N1, an NPU of one core."""

from __future__ import annotations

from tilefw.api import TargetInfo

INTEGERS = ("int1", "int4", "int8", "int16", "int32", "int64")
FLOATS = ("fp16", "bf16", "fp32")
SMALL = ("fp8e5", "fp8e4nv", "fp8e5b16", "fp8e4b8", "fp8e4b15", "fp6e3m2", "fp6e2m3", "fp4e2m1")
COMPUTED = (*INTEGERS, *FLOATS, *SMALL)
CAPABILITIES = frozenset(
    {"control.*", "cf.*", "shape.*", "print", "dot.*.fp16", "dot.*.fp32", "dot.*.fp32.*", "dot.*.int32"}
    | {f"int.*.{name}" for name in INTEGERS}
    | {f"{group}.*.{name}" for group in ("float", "math") for name in (*FLOATS, *SMALL)}
    | {f"cast.*.{name}" for name in COMPUTED}
    | {f"{group}.{name}" for group in ("select", "reduce", "scan") for name in COMPUTED}
    | {"cast.pointer.*", "select.pointer", "select.fp64"}
    | {f"memory.*.{name}" for name in ("fp64", *COMPUTED)}
    | {f"atomic.*.{name}" for name in ("int16", "int32", "int64", *FLOATS)}
    | {f"atomic.{kind}.fp64" for kind in ("xchg", "cas", "max", "min")}
)
"""Nothing computes in fp64, and there is no clock to observe: those cases are unsupported by name."""

N1 = TargetInfo(
    name="tarn-n1", vendor="tarn", chip="n1", summary="Tarn N1, a made-up NPU: 64 KiB of scratch, DMA, 64 lanes, 16x16 products",
    backend="tilefw_tarn.backend:TarnBackend", provides=frozenset({"lower", "emit", "simulate"}), capabilities=CAPABILITIES,
    wants=frozenset({"divisible_by_16", "equal_to_1", "disjoint"}), limits={"local_bytes": 64 << 10, "lanes": 64},
)
TARGETS = (N1,)
