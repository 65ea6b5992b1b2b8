"""Chooses the layout of a tile in shared memory: widest vectors for its writers and readers, and no bank conflicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilefw.api.errors import InternalError
from tilefw.simt.layout import LinearLayout
from tilefw.simt.shared_layout import SharedLayout

if TYPE_CHECKING:
    from tilefw.simt.description import ChipDescription


def choose(
    shape: tuple[int, ...], bits: int, writers: Sequence[LinearLayout], readers: Sequence[LinearLayout],
    description: ChipDescription, copies: Sequence[tuple[LinearLayout, int]] = (),
) -> SharedLayout:
    """The buffer's layout for elements of `bits` bits that `writers` store and `readers` load.

    `copies` are asynchronous writers: a layout and how many elements one copy takes; those first registers stay together in
    the buffer, in their order.
    """
    raise InternalError("swizzle.choose is not there yet")


def bank_conflicts(shared: SharedLayout, layout: LinearLayout, bits: int, description: ChipDescription) -> int:
    """The cycles that one access of a wave takes beyond those it would take without bank conflicts; 0 means none."""
    raise InternalError("swizzle.bank_conflicts is not there yet")
