"""Elements in order, written with sorts of whole numbers: keys with places behind, and long rows as parts that are merged.

    places = places_in_order(b, [order_key(b, x, "fp32")], axis=1)     # int32: which element of its row comes where, stably
    y = taken_along(b, x, places, 1)

The key of a number is a whole number of 32 or 64 bits that orders as it does: NaN behind all others, zeros of both signs equal. A
key and the place of its element make one number, so that equal keys keep their order. Keys of more than 32 bits, and several keys,
are sorted by their last 32 bits first. A sort of n elements takes n log² n steps; the first few of them, of long rows, about n.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import SSAValue

from tilefw.api.dtypes import dtype
from tilefw.api.integers import ceil_div
from tilefw.graph.builder import ModuleBuilder, shape_of
from tilefw.graph.index_maps import own_places
from tilefw.tile import types

_PART = 2048  # elements that one tile sorts
_APART = 64  # elements, each a part or more from the next, that one tile merges
_NAN = {32: 0x7FC0_0000, 64: 0x7FF8_0000_0000_0000}  # beyond infinity's
_LEAST, _GREATEST = -(1 << 31), (1 << 63) - 1


def order_key(b: ModuleBuilder, value: SSAValue, kind: str, falling: bool = False, total: bool = False) -> SSAValue:
    """Whole numbers, int32 or int64, that order as the values of type `kind` do, or with `falling` the other way round. With
    `total` floats are in the total order of their bits: zeros have signs, and NaN stands at the end that its sign says."""
    given = dtype(kind)
    if given.is_float:
        key = _float_key(b, value if given.bits >= 32 else b.cast(value, "fp32"), total)
    elif given.is_signed and given.bits > 1:
        key = b.cast(value, "int32") if given.bits < 32 else value
    elif given.bits < 32:
        key = b.cast(value, "int32", kind)
    else:
        key = b.map("xori", value, -(1 << (given.bits - 1)))
    return b.map("xori", key, -1) if falling else key


def _float_key(b: ModuleBuilder, value: SSAValue, total: bool) -> SSAValue:
    """NaN has a number of its own, not that of its bits, which are those of whoever computed it."""
    bits = types.dtype_of(value.type).bits
    if total:
        return negatives_turned(b, b.map("bitcast", value, to=f"int{bits}"))
    nan = b.map("isnan", value)
    known = b.map("select", b.map("ori", nan, b.map("eqf", value, 0.0)), 0.0, value)
    return b.map("select", nan, _NAN[bits], negatives_turned(b, b.map("bitcast", known, to=f"int{bits}")))


def negatives_turned(b: ModuleBuilder, held: SSAValue) -> SSAValue:
    """All bits but the sign of negative numbers turned: whole numbers that order as floats of these bits do, and back."""
    bits = types.dtype_of(held.type).bits
    return b.map("xori", held, b.map("andi", b.map("shrs", held, bits - 1), (1 << (bits - 1)) - 1))


def places_in_order(b: ModuleBuilder, keys: Sequence[SSAValue], axis: int, count: int | None = None) -> SSAValue:
    """The places, int32, of the elements of each row in rising order of the keys, of which the first counts most; equal ones stay
    in their order. The first `count` alone, if it is given."""
    shape = shape_of(keys[0])
    rank, length = len(shape), shape[axis]
    kept = length if count is None else count
    order = [*(dim for dim in range(rank) if dim != axis), axis]
    back = [*range(axis), rank - 1, *range(axis, rank - 1)]
    if length < 2 or not prod(shape) or not kept:
        return b.iota((*shape[:axis], kept, *shape[axis + 1 :]), axis)
    digits = [digit for key in keys for digit in _digits(b, b.transpose(key, order))]
    places = None
    for digit in reversed(digits):
        turned = digit if places is None else taken_along(b, digit, places, rank - 1)
        numbered = b.fused_map(
            lambda s, key: s("ori", s("shl", s("exts", key, to="int64"), 32), s("exts", s.index(rank - 1), to="int64")), turned
        )[0]
        ordered = _first(b, numbered, kept) if digit is digits[0] else sorted_rows(b, numbered)
        found = b.map("trunci", ordered, to="int32")
        places = found if places is None else taken_along(b, places, found, rank - 1)
    assert places is not None
    return b.transpose(places, back)


def taken_along(b: ModuleBuilder, value: SSAValue, places: SSAValue, axis: int, trusted: bool = False) -> SSAValue:
    """The elements of each row at places in the same row."""
    return b.gather(value, [places], [axis], own_places(len(shape_of(value)), axis), trusted)


def _digits(b: ModuleBuilder, key: SSAValue) -> list[SSAValue]:
    """The key as numbers of 32 bits, of which the first counts most."""
    if types.dtype_of(key.type).bits == 32:
        return [key]
    high = b.map("trunci", b.map("shrs", key, 32), to="int32")
    return [high, b.map("xori", b.map("trunci", key, to="int32"), _LEAST)]


def sorted_rows(b: ModuleBuilder, source: SSAValue) -> SSAValue:
    """int64 in rising order along the last dim: parts that a tile sorts, merged two by two."""
    *rows, length = shape_of(source)
    if length <= _PART:
        return b.sort(source, len(rows))
    parts, run = 1 << (ceil_div(length, _PART) - 1).bit_length(), _PART
    held = b.sort(_in_parts(b, source, parts), len(rows) + 1)
    while parts > 1:
        parts, run = parts // 2, run * 2
        held = _merged(b, held, (*rows, parts, run))
    return b.slice(b.reshape(held, (*rows, run)), [0] * (len(rows) + 1), (*rows, length))


def _in_parts(b: ModuleBuilder, source: SSAValue, parts: int) -> SSAValue:
    """The last dim as parts, with what comes behind everything in those that are not whole."""
    *rows, length = shape_of(source)
    behind = [0] * len(rows) + [parts * _PART - length]
    whole = b.pad(source, [0] * len(behind), behind, _GREATEST) if behind[-1] else source
    return b.reshape(whole, (*rows, parts, _PART))


def _merged(b: ModuleBuilder, held: SSAValue, shape: Sequence[int]) -> SSAValue:
    """Sorted runs, two by two one: the second turned round, the two are bitonic, and so are parts of them once elements that are
    far apart have been exchanged."""
    *rows, parts, run = shape
    pairs, rank = b.reshape(held, (*rows, parts, 2, run // 2)), len(rows) + 3
    half, none = (*rows, parts, 1, run // 2), [0] * rank
    turned = [*[0] * (rank - 2), 1, run // 2 - 1]
    second = b.slice(pairs, turned, half, [*[1] * (rank - 1), -1])
    now = b.concat([b.slice(pairs, none, half), second], rank - 2)
    apart = run
    while apart > _PART:
        wide = min(apart // _PART, _APART)
        apart //= wide
        now = b.sort(b.reshape(now, (*rows, parts * run // (wide * apart), wide, apart)), rank - 2, bitonic=True)
    now = b.sort(b.reshape(now, (*rows, parts * run // _PART, _PART)), rank - 2, bitonic=True)
    return b.reshape(now, tuple(shape))


def _first(b: ModuleBuilder, source: SSAValue, count: int) -> SSAValue:
    """The first of int64 in rising order along the last dim: where they are few, the first of each part, and of these again."""
    *rows, length = shape_of(source)
    if length > _PART and count * 2 <= _PART:
        parts = ceil_div(length, _PART)
        ordered = b.sort(_in_parts(b, source, parts), len(rows) + 1)
        kept = b.slice(ordered, [0] * (len(rows) + 2), (*rows, parts, count))
        return _first(b, b.reshape(kept, (*rows, parts * count)), count)
    ordered = sorted_rows(b, source)
    return ordered if count == length else b.slice(ordered, [0] * (len(rows) + 1), (*rows, count))
