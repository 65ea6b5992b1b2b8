"""`tl.extra.libdevice`: bits, bytes and integer arithmetic."""

from __future__ import annotations

from typing import Any

from tilefw.language.markers import library
from tilefw.language.tensor import tensor


@library
def ffs(x: Any) -> tensor:
    """The place of the lowest one bit, counted from 1; 0 where there is none. As int32; int32, int64."""
    ...


@library
def brev(x: Any) -> tensor:
    """The bits in reverse order; int32, int64."""
    ...


@library
def byte_perm(x: Any, y: Any, s: Any) -> tensor:
    """Four bytes of the eight of `y` and `x`, as `s` names them: three bits choose a byte, a fourth one its sign alone; int32."""
    ...


@library
def hadd(x: Any, y: Any) -> tensor:
    """(x + y) >> 1 without overflow; int32, uint32."""
    ...


@library
def rhadd(x: Any, y: Any) -> tensor:
    """(x + y + 1) >> 1 without overflow; int32, uint32."""
    ...


@library
def mul24(x: Any, y: Any) -> tensor:
    """The low 32 bits of the product of the low 24 bits; int32, uint32."""
    ...


@library
def sad(x: Any, y: Any, z: Any) -> tensor:
    """|x - y| + z: `x` and `y` int32 or uint32, `z` uint32; of the type of `x`."""
    ...
