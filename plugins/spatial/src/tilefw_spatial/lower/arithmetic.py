"""Rows of the elementwise table on constant tiles: sums keep their terms, everything else is computed over what it depends on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import prod

import numpy as np

from tilefw.api import DTYPES, DType
from tilefw.api.ir import ROWS, evaluate_known
from tilefw_spatial.index_tables import check_size
from tilefw_spatial.lower.below import compared
from tilefw_spatial.lower.constant_tile import ConstantTerm, ConstantTile, both, fits, of_term, product, splat, total

_Rule = Callable[[Sequence[ConstantTile], DType], ConstantTile | None]

INT64 = DTYPES["int64"]


def apply(row: str, operands: Sequence[ConstantTile], result: DType, rounding: str = "rtne") -> ConstantTile:
    """The row on constant tiles of one shape (scalars: none). Raises TooLarge."""
    rule = _RULES.get(row)
    found = None if rule is None else rule(operands, result)
    return _computed(row, operands, result, rounding) if found is None else found


def _computed(row: str, operands: Sequence[ConstantTile], result: DType, rounding: str) -> ConstantTile:
    wholes = [operand.whole() for operand in operands]
    keys = tuple(dict.fromkeys(key for whole in wholes for key in whole.keys))
    arrays = [whole.over(keys) for whole in wholes]
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    check_size(prod(shape))
    source = operands[ROWS[row].typed_by].dtype
    found = evaluate_known(ROWS[row], arrays, source, result, "rtz" if rounding == "rtz" else "rtne")
    return of_term(result, operands[0].shape, ConstantTerm(np.reshape(found, shape), keys))  # NumPy gives some scalars a dim


def as_offset(tile: ConstantTile) -> ConstantTile:
    """Signed integers of any width as 64-bit ones, their terms kept where the sum cannot wrap."""
    if tile.dtype.bits == 64:
        return tile
    if tile.dtype.bits > 1 and fits(tile, tile.dtype):
        return tile.as_type(INT64)
    return of_term(INT64, tile.shape, tile.whole())


def _add(operands: Sequence[ConstantTile], result: DType) -> ConstantTile | None:
    return None if result.bits == 1 else total(operands[0], operands[1])


def _subtract(operands: Sequence[ConstantTile], result: DType) -> ConstantTile | None:
    return None if result.bits == 1 else total(operands[0], operands[1], -1)


def _multiply(operands: Sequence[ConstantTile], result: DType) -> ConstantTile | None:
    return None if result.bits == 1 else product(operands[0], operands[1])


def _shift_left(operands: Sequence[ConstantTile], result: DType) -> ConstantTile | None:
    distance = operands[1].number
    if result.bits == 1 or distance is None or not 0 <= distance < result.bits:
        return None
    return product(operands[0], splat(1 << distance, result, operands[0].shape))


def _and(operands: Sequence[ConstantTile], result: DType) -> ConstantTile | None:
    return both(operands[0], operands[1]) if result.bits == 1 else None


def _extend_signed(operands: Sequence[ConstantTile], result: DType) -> ConstantTile | None:
    tile = operands[0]
    return tile.as_type(result) if tile.dtype.bits > 1 and fits(tile, tile.dtype) else None


def _extend_unsigned(operands: Sequence[ConstantTile], result: DType) -> ConstantTile | None:
    tile = operands[0]
    return tile.as_type(result) if tile.dtype.bits > 1 and fits(tile, tile.dtype, signed=False) else None


def _truncate(operands: Sequence[ConstantTile], result: DType) -> ConstantTile | None:
    return operands[0].as_type(result) if result.bits > 1 else None


def _remainder(operands: Sequence[ConstantTile], result: DType) -> ConstantTile | None:
    """x % n is x where x surely lies below n: a kernel's wrap of rows that end with the array."""
    tile, divisor = operands[0], operands[1].number
    if result.bits == 1 or divisor is None:
        return None
    low, high = tile.bounds()
    return tile if low >= 0 and high < divisor and fits(tile, result) else None


def _smaller(operands: Sequence[ConstantTile], result: DType) -> ConstantTile | None:
    return _extreme(operands, result, 0)


def _larger(operands: Sequence[ConstantTile], result: DType) -> ConstantTile | None:
    return _extreme(operands, result, 1)


def _extreme(operands: Sequence[ConstantTile], result: DType, end: int) -> ConstantTile | None:
    """One of the two where its bounds say that it always is the extreme."""
    if result.bits == 1 or not all(fits(operand, result) for operand in operands):
        return None
    a, b = operands
    below, above = (a, b) if a.bounds()[1] <= b.bounds()[0] else (b, a)
    if below.bounds()[1] > above.bounds()[0]:
        return None
    return above if end else below


def _select(operands: Sequence[ConstantTile], result: DType) -> ConstantTile | None:
    condition = operands[0].number
    return None if condition is None else replace(operands[1 if condition else 2], dtype=result)


_RULES: dict[str, _Rule] = {
    "addi": _add, "subi": _subtract, "muli": _multiply, "shl": _shift_left, "andi": _and,
    "exts": _extend_signed, "extu": _extend_unsigned, "trunci": _truncate,
    "rems": _remainder, "remu": _remainder, "mins": _smaller, "maxs": _larger, "select": _select,
    **{row: partial(compared, row) for row in ("lts", "les", "gts", "ges", "ltu", "leu", "gtu", "geu")},
}
