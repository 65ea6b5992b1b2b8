"""What the chip serves, as capabilities. Plain data: targets are listed without any of the compiler being imported."""

from __future__ import annotations

INTEGERS = ("int1", "int8", "int16", "int32")
# Floats of 8 bits are converted, selected and multiplied, as everywhere; arithmetic is on the wider ones.
SMALL_FLOATS = ("fp8e4nv", "fp8e5")
FLOATS = ("fp16", "bf16", "fp32")
ELEMENTS = (*INTEGERS, *SMALL_FLOATS, *FLOATS)

_CASTS = ("ext", "trunc", "float", "s2f", "u2f", "f2s", "f2u", "bitcast")

ELEMENTWISE: frozenset[str] = frozenset(
    {f"int.*.{name}" for name in INTEGERS}
    | {f"{group}.*.{name}" for group in ("float", "math") for name in FLOATS}
    | {f"cast.{kind}.{name}" for kind in _CASTS for name in ELEMENTS}
    | {f"select.{name}" for name in ELEMENTS}
)
"""Rows of the elementwise table by group and element type: each is a test of the chains (`tests/chain`)."""

_DOTS = ("fp16.fp16.fp32", "bf16.bf16.fp32", "fp16.fp16.fp16", "int8.int8.int32")
_SMALL_DOTS = (f"{a}.{b}.fp32" for a in SMALL_FLOATS for b in SMALL_FLOATS)

CAPABILITIES: frozenset[str] = ELEMENTWISE | frozenset(
    {"control.for", "control.if", "shape.dims"}
    | {f"memory.{kind}.{name}" for kind in ("load", "store") for name in ELEMENTS}
    | {f"shape.*.{name}" for name in ELEMENTS}
    | {f"reduce.{name}" for name in (*INTEGERS, *FLOATS)}
    | {f"dot.{types}" for types in (*_DOTS, *_SMALL_DOTS)}
)
"""All of it. A kernel that needs more is refused by name before anything runs."""
