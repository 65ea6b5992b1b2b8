"""Accesses of all ranks' copies at once, of the reference: each copy is loaded, stored to or updated as any element is.

What a load gives is bounded for every order in which the ranks' elements may be combined.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilefw.tile import types
from tilefw.tile.dialect.multicast_op import MulticastOp
from tilefw.tile.elementwise import ROWS
from tilefw.tile.reference.access import BufferAccess, anything
from tilefw.tile.reference.atomic_access import atomic
from tilefw.tile.reference.combine_function import AxisCombiner
from tilefw.tile.reference.evaluate import select
from tilefw.tile.reference.evaluate_combine import combine_by_row
from tilefw.tile.reference.value import Array, EvaluatedValue


def multicast(
    access: BufferAccess, op: MulticastOp, address: EvaluatedValue, value: EvaluatedValue, mask: EvaluatedValue | None,
    programs: Array, fusion: bool,
) -> EvaluatedValue:
    """Carry the op out on the copies of the elements at `address`; what a load gives."""
    dtype, shape = types.dtype_of(types.pointee_of(op.pointer.type)), (len(programs), *types.shape_of(op.value.type))
    window = access.memory.multicast
    active = np.broadcast_to(True if mask is None else mask.x, shape)
    wrong = active & ~np.broadcast_to(window.holds(address.x) if window is not None else False, shape)
    if wrong.any() or window is None:
        access.report(op, "bounds", wrong, address.x, programs, "multicast access to an address that is no multicast address", None)
        return anything(shape, dtype)
    copies = [_moved(address, distance) for distance in window.distances]
    if op.action == "load":
        loaded = [access.load(op, copy, mask, None, dtype, programs) for copy in copies]
        row = ROWS[op.row]
        found = combine_by_row(row, _stacked(loaded, shape), AxisCombiner(len(shape)), dtype, fusion)
        assert found is not None, row.name
        return found if mask is None else select(mask, found, value)
    for copy in copies:
        if op.action == "store":
            access.store(op, copy, value, mask, dtype, programs)
        else:
            atomic(access, op, copy, [value], mask, programs)
    return anything(shape, dtype)


def _moved(address: EvaluatedValue, distance: int) -> EvaluatedValue:
    return EvaluatedValue(address.x + distance, free=address.free, wrapped=address.wrapped)


def _stacked(values: list[EvaluatedValue], shape: tuple[int, ...]) -> EvaluatedValue:
    """Values of one shape as one with a last axis along them."""

    def joined(name: str, blank: float | bool) -> Any:
        parts = [getattr(value, name) for value in values]
        if all(part is None for part in parts):
            return None
        return np.stack([np.broadcast_to(blank if part is None else part, shape) for part in parts], axis=-1)

    return EvaluatedValue(joined("x", 0), joined("err", 0.0), joined("free", False))
