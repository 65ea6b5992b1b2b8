"""Integers that are a constant multiple of a loaded one plus a constant: what an address may be, where data chooses a row."""

from __future__ import annotations

from collections.abc import Sequence

from tilefw_spatial.lower.arithmetic import INT64, as_offset
from tilefw_spatial.lower.constant_tile import ConstantTile, product, splat, total
from tilefw_spatial.lower.tiles import Data, Entry, Linear


def linear(data: Data) -> Linear:
    """A loaded integer as a multiple of another, or of itself."""
    return data.linear or Linear(data, 1, splat(0, INT64, data.shape))


def followed(row: str, entries: Sequence[Entry]) -> Linear | None:
    """What a row makes of such an integer; None where it makes none."""
    first = entries[0]
    if row == "exts" and isinstance(first, Data):
        return linear(first)
    if row not in ("addi", "subi", "muli", "shl") or len(entries) != 2:
        return None
    left, right = entries
    if isinstance(left, ConstantTile) and isinstance(right, Data) and row in ("addi", "muli"):
        left, right = right, left
    if not isinstance(left, Data) or not isinstance(right, ConstantTile) or right.dtype.bits == 1:
        return None
    form = linear(left)
    if row in ("addi", "subi"):
        return Linear(form.base, form.scale, total(form.offset, as_offset(right), 1 if row == "addi" else -1))
    number = right.number
    if number is None or (row == "shl" and not 0 <= number < right.dtype.bits):
        return None
    factor = 1 << number if row == "shl" else number
    moved = product(form.offset, splat(factor, INT64, form.offset.shape))
    return None if moved is None else Linear(form.base, form.scale * factor, moved)
