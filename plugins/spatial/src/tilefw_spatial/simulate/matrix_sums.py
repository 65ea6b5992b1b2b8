"""Sums of products of the matrix unit: exact, rounded once to fp32, and as fast as plain float64 products where the data allow.

A float64 product of matrices is exact wherever no partial sum needs more than 53 bits: all terms of row i and column j are
multiples of the product of their units, and by Cauchy and Schwarz no partial sum exceeds |row| · |column|. Rows and columns that
are too wide for that are cut into pieces that are not; the pieces' sums are added without error (Shewchuk 1997) and rounded to odd
(Boldo and Melquiond 2008), so that the one rounding to fp32 that follows is that of the exact sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.uint8] | NDArray[np.uint16]
Doubles = NDArray[np.float64]

QUIET_NAN = np.array([0x7FC00000], np.uint32).view(np.float32)[0]
"""The only NaN that the matrix unit makes."""
# log2 of the largest integer up to which float64 holds all of them, less what the estimates of norms may err.
_EXACT_BITS = 52.9
# Where rows and columns are both cut, a piece has at most 2**26 of its units in norm: the product of two is exact.
_PART_BITS = 25
# Cut into fewer bits than this, one side makes more pieces than both sides together.
_LEAST_BITS = 13


@dataclass(frozen=True, slots=True)
class SumFormat:
    """What the width of a row needs of an element type: bits of fraction, bias, first special code, all bits but the sign."""

    mantissa: int
    bias: int
    first_special: int
    magnitude: int


# IEEE 754-2019 §3.6 (fp16), bfloat16 as the upper half of fp32, and OCP OFP8 §5 (fp8).
FORMATS = {
    "fp16": SumFormat(10, 15, 0x7C00, 0x7FFF),
    "bf16": SumFormat(7, 127, 0x7F80, 0x7FFF),
    "fp8e5": SumFormat(2, 15, 0x7C, 0x7F),
    "fp8e4nv": SumFormat(3, 7, 0x7F, 0x7F),
}


def products(activations: Codes, weights: Codes, dtype: str) -> NDArray[np.float32]:
    """[n, k] by [k, columns], both as codes of `dtype`: each sum exact and rounded once to fp32 (nearest even; zero is +0)."""
    form = FORMATS[dtype]
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        a, b = _decode(activations, dtype), _decode(weights, dtype)
        sums = a @ b
        sums += 0.0  # not -0, whatever the order of the terms
        result = sums.astype(np.float32)
        _quiet(result)
        a, b = _finite(a, activations, form), _finite(b, weights, form)
        widths = _widths(a, activations, form), _widths(b.T, weights.T, form)
        for block in _inexact(*widths):
            where = np.ix_(block.rows, block.columns)
            exact = _in_parts(a[block.rows], b[:, block.columns], block)
            # A plain sum that is not finite comes from infinities and NaN, and is right.
            result[where] = np.where(np.isfinite(sums[where]), exact, result[where])
    return result


def integer_products(activations: NDArray[np.int8], weights: NDArray[np.int8]) -> NDArray[np.int32]:
    """[n, k] by [k, columns] of int8. Up to k = 1024 no sum exceeds 2**24: fp32 holds them all."""
    assert activations.shape[1] <= 1024
    return (activations.astype(np.float32) @ weights.astype(np.float32)).astype(np.int32)


def add(accumulator: NDArray[Any], sums: NDArray[Any]) -> NDArray[Any]:
    """The accumulator after `sums` came in: fp32 rounded to nearest even with one kind of NaN, int32 wrapping."""
    with np.errstate(invalid="ignore", over="ignore"):
        total = accumulator + sums
    if total.dtype == np.float32:
        _quiet(total)
    return total


def _quiet(values: NDArray[np.float32]) -> None:
    """One kind of NaN instead of every NaN; the greatest value is NaN where there is any."""
    if values.size and np.isnan(values.max()):
        values[np.isnan(values)] = QUIET_NAN


def _decode(codes: Codes, dtype: str) -> Doubles:
    if dtype == "fp16":
        return codes.view(np.float16).astype(np.float64)
    if dtype == "bf16":
        return (codes.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if dtype == "fp8e5":  # the upper half of fp16
        return (codes.astype(np.uint16) << 8).view(np.float16).astype(np.float64)
    return _fp8e4nv()[codes]


def _fp8e4nv() -> Doubles:
    """The value of each code (OCP OFP8 §5.2: no infinities, NaN only where all bits but the sign are set)."""
    code = np.arange(256)
    exponent, fraction = code >> 3 & 15, code & 7
    magnitude = np.where(exponent == 0, fraction * 2.0**-9, (8 + fraction) * 2.0 ** (exponent - 10.0))
    magnitude[code & 0x7F == 0x7F] = np.nan
    return np.where(code < 128, magnitude, -magnitude)


def _finite(values: Doubles, codes: Codes, form: SumFormat) -> Doubles:
    """The values with 0 instead of infinities and NaN: where one of those takes part, the plain sum is already right."""
    if not codes.size or int((codes & codes.dtype.type(form.magnitude)).max()) < form.first_special:
        return values
    return np.where(np.isfinite(values), values, 0.0)


def _widths(rows: Doubles, codes: Codes, form: SumFormat) -> Doubles:
    """log2 of each row's norm in units of its smallest element's last place."""
    magnitudes = codes & codes.dtype.type(form.magnitude)
    one = codes.dtype.type(1)
    smallest = (magnitudes - one).min(axis=1) + one  # zero wraps to the largest code: it counts for nothing
    unit = np.maximum(smallest >> form.mantissa, 1).astype(np.int64) - form.bias - form.mantissa
    norms = np.einsum("ij,ij->i", rows, rows)
    return np.where(norms > 0, 0.5 * np.log2(np.where(norms > 0, norms, 1.0)) - unit, 0.0)


@dataclass(frozen=True, slots=True)
class _Block:
    """Rows and columns whose sums need pieces of so many bits (None: as they are)."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    row_bits: int | None
    column_bits: int | None


def _inexact(rows: Doubles, columns: Doubles) -> list[_Block]:
    """What plain products do not give exactly, from the widths. The limit between wide and narrow is where the fewest are wide."""
    if not len(rows) or not len(columns) or rows.max() + columns.max() <= _EXACT_BITS:
        return []
    limits = np.unique(np.concatenate([rows, _EXACT_BITS - columns]))
    wide = 2 - np.searchsorted(np.sort(rows), limits, side="right") / len(rows)
    wide -= np.searchsorted(np.sort(columns), _EXACT_BITS - limits, side="right") / len(columns)
    limit = limits[np.argmin(wide)]
    narrow_rows, wide_rows = np.flatnonzero(rows <= limit), np.flatnonzero(rows > limit)
    narrow_columns, wide_columns = np.flatnonzero(columns <= _EXACT_BITS - limit), np.flatnonzero(columns > _EXACT_BITS - limit)
    blocks = [_Block(wide_rows, wide_columns, _PART_BITS, _PART_BITS)]
    blocks.append(_Block(wide_rows, narrow_columns, *_bits_beside(columns[narrow_columns])))
    blocks.append(_Block(narrow_rows, wide_columns, *reversed(_bits_beside(rows[narrow_rows]))))
    return [block for block in blocks if len(block.rows) and len(block.columns)]


def _bits_beside(narrow: Doubles) -> tuple[int, int | None]:
    """Bits of the wide side's pieces, so that the narrow side need not be cut; of both, where too few would be left."""
    bits = int(_EXACT_BITS - 1 - (narrow.max() if len(narrow) else 0.0))
    return (bits, None) if bits >= _LEAST_BITS else (_PART_BITS, _PART_BITS)


def _in_parts(a: Doubles, b: Doubles, block: _Block) -> NDArray[np.float32]:
    expansion: list[Doubles] = []
    rights = _parts_of(b.T, block.column_bits)
    for left in _parts_of(a, block.row_bits):
        for right in rights:
            _grow(expansion, left @ right.T)
    return _round(expansion, (len(a), b.shape[1]))


def _parts_of(rows: Doubles, bits: int | None) -> list[Doubles]:
    """Addends of the rows, each less than 2**(bits + 1) of its own row's units in norm. Every step is exact."""
    if bits is None:
        return [rows]
    found: list[Doubles] = []
    while rows.any():
        norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        exponent = np.frexp(norms)[1].astype(np.int64)[:, None] - bits
        part = np.ldexp(np.rint(np.ldexp(rows, -exponent)), exponent)
        found.append(part)
        rows = rows - part
    return found


def _two_sum(a: Doubles, b: Doubles) -> tuple[Doubles, Doubles]:
    """fl(a + b) and its error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _grow(expansion: list[Doubles], term: Doubles) -> None:
    """Add a term to a sum kept as addends that do not overlap, least first (Shewchuk's Grow-Expansion)."""
    for place, addend in enumerate(expansion):
        term, expansion[place] = _two_sum(term, addend)
    expansion.append(term)


def _round(expansion: list[Doubles], shape: tuple[int, int]) -> NDArray[np.float32]:
    """The sum of an expansion rounded once to fp32: to odd in float64 first, which keeps what a nearest-even rounding needs."""
    if not expansion:
        return np.zeros(shape, np.float32)
    total, rest = expansion[0], []
    for addend in expansion[1:]:
        total, error = _two_sum(addend, total)
        rest.append(error)
    sign = np.zeros(shape)
    for error in rest:  # least first: the sign is that of the largest that is not zero
        sign = np.where(error != 0, np.sign(error), sign)
    even = np.ascontiguousarray(total).view(np.int64) & 1 == 0
    odd = np.where((sign != 0) & even, np.nextafter(total, np.copysign(np.inf, sign)), total)
    return (odd + 0.0).astype(np.float32)
