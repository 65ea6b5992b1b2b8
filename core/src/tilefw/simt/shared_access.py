"""Reads and writes of a tile in shared memory by all threads, each in its layout, with the widest accesses."""

from __future__ import annotations

from typing import Any

from xdsl.ir import Attribute, SSAValue

from tilefw.api.errors import InternalError
from tilefw.simt.layout import LinearLayout
from tilefw.simt.shared_layout import SharedLayout


def write(
    context: Any, address: SSAValue, shared: SharedLayout, layout: LinearLayout, value: SSAValue,
    predicate: SSAValue | None = None, *, buffer: int, phase: int = 0, slots: int = 0,
) -> None:
    """Stores `value`, a tile in `layout`, to the buffer at `address` (uniform i32); one of the copies in several warps stores."""
    raise InternalError("shared_access.write is not there yet")


def read(
    context: Any, address: SSAValue, shared: SharedLayout, layout: LinearLayout, element_type: Attribute,
    *, buffer: int, phase: int = 0, slots: int = 0, flip: int = 0,
) -> SSAValue:
    """The tile in the buffer at `address` in `layout`: by fragment loads where one fits, else by the widest reads."""
    raise InternalError("shared_access.read is not there yet")


def copy_addresses(
    context: Any, address: SSAValue, shared: SharedLayout, layout: LinearLayout, width: int, bits: int
) -> tuple[SSAValue, list[int], list[int]]:
    """Where an asynchronous copy of `width` registers at a time lands: addresses, and a slot and an immediate for each copy.

    Copy k takes registers k·width … (k+1)·width - 1.
    """
    raise InternalError("shared_access.copy_addresses is not there yet")
