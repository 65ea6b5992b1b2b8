"""Atomic accesses: read, change and write one element of global memory as one step that no other access comes between.

Signatures, types and defaults are those of Triton 3.9. All take a pointer or a tile of pointers and give what was in memory
before, in its shape; a tile is one access an element, in no promised order, and equal addresses in it are as many
accesses. `val` broadcasts to the pointers and is cast to their element type. Where `mask` is false nothing is accessed
and the result is undefined.

`sem` is one of "acq_rel" (the default), "acquire", "release", "relaxed": with acquire, what the program accesses after it is
accessed after it; with release, what it accessed before is seen by whoever acquires the new value. `scope` says who may be
that: "cta" or "workgroup" the same program, "gpu" (the default) or "device" every program of the launch, "sys", "system" or "node"
everybody.
"""

from __future__ import annotations

from typing import Any

from tilefw.language.markers import builtin
from tilefw.language.tensor import tensor


@builtin
def atomic_add(pointer: Any, val: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> tensor:
    """Add `val`; int32, uint32, int64, uint64 (wrapping) and float16, bfloat16, float32, float64 (each addition rounded).

    The order of additions differs from run to run, and so does the last bit of a float sum.
    """
    ...


@builtin
def atomic_max(pointer: Any, val: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> tensor:
    """Keep the larger; int32, uint32, int64, uint64, float32, float64 (-0 below +0; with a NaN either may be kept)."""
    ...


@builtin
def atomic_min(pointer: Any, val: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> tensor:
    """Keep the smaller; int32, uint32, int64, uint64, float32, float64 (-0 below +0; with a NaN either may be kept)."""
    ...


@builtin
def atomic_and(pointer: Any, val: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> tensor:
    """Keep the bits set in both; int32, uint32, int64, uint64."""
    ...


@builtin
def atomic_or(pointer: Any, val: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> tensor:
    """Keep the bits set in either; int32, uint32, int64, uint64."""
    ...


@builtin
def atomic_xor(pointer: Any, val: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> tensor:
    """Keep the bits set in one of the two; int32, uint32, int64, uint64."""
    ...


@builtin
def atomic_xchg(pointer: Any, val: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> tensor:
    """Write `val`; int32, uint32, int64, uint64, float32, float64."""
    ...


@builtin
def atomic_cas(pointer: Any, cmp: Any, val: Any, sem: str | None = None, scope: str | None = None) -> tensor:
    """Write `val` where memory holds `cmp`, bit by bit the same; elements of 16, 32 and 64 bits.

    The result equals `cmp` where `val` was written. `cmp` and `val` broadcast to the pointers and are cast to their type.
    """
    ...


@builtin
def atomic_load(pointer: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> tensor:
    """What memory holds, read in one step; elements of 16, 32 and 64 bits, those of 16 without a mask.

    `sem` is "acquire" (the default) or "relaxed". It is an atomic read-modify-write that changes nothing, so the array must be
    writable.
    """
    ...


@builtin
def atomic_store(pointer: Any, val: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> None:
    """Write `val` in one step; int32, uint32, int64, uint64, float32, float64.

    `sem` is "release" (the default) or "relaxed". It is an exchange whose result is not used.
    """
    ...


@builtin
def atomic_poll(
    pointer: Any, expected_value: Any, sem: str | None = None, scope: str | None = None, timeout_ns: int | None = None
) -> tensor:
    """Wait until each element at `pointer` was seen to equal `expected_value`; integers of 16, 32 and 64 bits.

    `sem` is "acquire" (the default) or "relaxed". The result is int1 in the pointers' shape: true, unless `timeout_ns` is given.
    Then the wait ends after so many nanoseconds, after one reading of each element or more; the result says which were equal.
    """
    ...
