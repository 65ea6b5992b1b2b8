"""What the vector unit's chains serve, as capabilities: every claim is a test (`tests/chain`), and there is no other."""

from __future__ import annotations

INTEGERS = ("int1", "int8", "int16", "int32")
# Floats of 8 bits are converted and selected, as everywhere; arithmetic is on the wider ones.
SMALL_FLOATS = ("fp8e4nv", "fp8e5")
FLOATS = ("fp16", "bf16", "fp32")
ELEMENTS = (*INTEGERS, *SMALL_FLOATS, *FLOATS)

_CASTS = ("ext", "trunc", "float", "s2f", "u2f", "f2s", "f2u", "bitcast")

CAPABILITIES: frozenset[str] = frozenset(
    {f"int.*.{name}" for name in INTEGERS}
    | {f"{group}.*.{name}" for group in ("float", "math") for name in FLOATS}
    | {f"cast.{kind}.{name}" for kind in _CASTS for name in ELEMENTS}
    | {f"select.{name}" for name in ELEMENTS}
)
"""Rows of the elementwise table by group and element type."""
