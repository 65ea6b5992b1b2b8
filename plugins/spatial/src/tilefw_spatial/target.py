"""The chip as data: SDM-1, our own machine after the published structure of stream processors. It is no vendor's chip.

Plain data: targets are listed without any of the compiler being imported.
"""

from __future__ import annotations

from tilefw.api import TargetInfo

INTEGERS = ("int1", "int8", "int16", "int32")
# Floats of 8 bits are converted, selected and multiplied, as everywhere; arithmetic is on the wider ones.
SMALL_FLOATS = ("fp8e4nv", "fp8e5")
FLOATS = ("fp16", "bf16", "fp32")
MACHINE_ELEMENTS = (*INTEGERS, *SMALL_FLOATS, *FLOATS)
# What the chip has no elements of, and is made of those: pairs of words, and codes in bytes (`elements.py`).
WIDE_AND_NARROW = ("int64", "int4")
CODES = ("fp8e5b16", "fp8e4b8", "fp8e4b15", "fp6e3m2", "fp6e2m3", "fp4e2m1")
ELEMENTS = (*MACHINE_ELEMENTS, *WIDE_AND_NARROW, *CODES)

_CASTS = ("ext", "trunc", "float", "s2f", "u2f", "f2s", "f2u", "bitcast")

ELEMENTWISE: frozenset[str] = frozenset(
    {f"int.*.{name}" for name in (*INTEGERS, *WIDE_AND_NARROW)}
    | {f"{group}.*.{name}" for group in ("float", "math") for name in FLOATS}
    | {f"cast.{kind}.{name}" for kind in _CASTS for name in ELEMENTS}
    | {f"select.{name}" for name in ELEMENTS}
)
"""Rows of the elementwise table by group and element type: each is a test (`tests/chain`, `tests/test_elements.py`)."""

_DOTS = ("fp16.fp16.fp32", "bf16.bf16.fp32", "fp16.fp16.fp16", "int8.int8.int32")
# Floats of a byte that the matrix unit has no elements of, or two unlike types of them, are multiplied as the numbers of fp16 that
# they are.
_FP8 = (*SMALL_FLOATS, "fp8e5b16", "fp8e4b8", "fp8e4b15")
_SMALL_DOTS = (f"{a}.{b}.{sums}" for a in _FP8 for b in _FP8 for sums in ("fp32", "fp16"))
# The ALUs multiply and add these: floats to fp32's own precision whatever is asked for.
_SLOW_DOTS = ("uint8.uint8.int32", *(f"fp32.fp32.fp32.{precision}" for precision in ("tf32", "tf32x3", "bf16x3", "bf16x6", "ieee")))

# Atomics whose old value nobody uses are sums that are ordered when the program is made. A compare-and-swap, and an old value,
# depend on the order of programs: neither is claimed.
_ATOMICS = {"int32": ("add", "max", "min", "and", "or", "xor", "xchg"), "fp32": ("add", "max", "min", "xchg")}

CAPABILITIES: frozenset[str] = ELEMENTWISE | frozenset(
    {"control.for", "control.if", "control.while", "shape.dims"}
    | {f"memory.{kind}.{name}" for kind in ("load", "store", "gather") for name in ELEMENTS}
    | {f"shape.*.{name}" for name in ELEMENTS}
    | {f"reduce.{name}" for name in (*INTEGERS, *FLOATS)}
    | {f"scan.{name}" for name in ELEMENTS}
    | {f"dot.{types}" for types in (*_DOTS, *_SMALL_DOTS, *_SLOW_DOTS)}
    | {f"atomic.{kind}.{name}" for name, kinds in _ATOMICS.items() for kind in kinds}
)
"""All of it. A kernel that needs more is refused by name before anything runs."""

SDM1 = TargetInfo(
    name="spatial-sdm1",
    vendor="spatial",
    chip="sdm-1",
    summary="SDM-1: a statically scheduled machine of slices and streams, whose cycle count is known before it runs; simulated",
    backend="tilefw_spatial.backend:SpatialBackend",
    provides=frozenset({"lower", "emit", "assemble", "simulate", "timeline"}),
    capabilities=CAPABILITIES,
    # A schedule is made for one launch: sizes, strides and the grid are constants of it, and so is which arguments share memory.
    wants=frozenset({"scalars", "grid", "extents"}),
    options={
        "chips": "chips of the node that share the launch, 1 to 8 (default 1)",
        "split": "how they share it: n (each a part of the results; the default), k (each a part of the sums, then added), "
        "gather (as n, with common operands sharded and broadcast), stages (a pipeline of chips)",
    },
    # `Machine.capacity` of data/sdm-1.yaml as a number: listing targets reads no machine file; a test compares the two.
    limits={"memory_bytes": 230_686_720},
)

TARGETS = (SDM1,)
