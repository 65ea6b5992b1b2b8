"""Scatters of any element type, written with those that memory does in one step, so that any order of the updates gives one result.

    y = scattered(b, x, updates, [index], [0], map, "int8", "addi")      # combined by a row of the elementwise table
    y = scattered(b, x, updates, [index], [0], map, "fp32", None)        # replaced: of several updates the last counts

Elements of fewer than 32 bits are combined in 32. The greatest and least of floats are those of whole numbers that order as they
do, so that NaN wins where the row says so. For what is replaced, each element gets the greatest number of an update that goes to
it, and that update is read. All results are exact but sums of floats: these are rounded in the order in which the updates come to
memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap

from tilefw.api.dtypes import dtype
from tilefw.api.errors import UnsupportedError
from tilefw.graph.builder import ModuleBuilder, shape_of
from tilefw.graph.dialect.moving_ops import SCATTERED
from tilefw.graph.index_maps import linear_map
from tilefw.graph.ordering import negatives_turned, order_key
from tilefw.tile import types

_EXTREMES: Mapping[str, str] = {
    "maxf": "maxs", "minf": "mins", "maxf_nan": "maxs", "minf_nan": "mins", "maxu": "maxs", "minu": "mins",
}


def is_scattered(row: str | None) -> bool:
    """Whether updates can be combined by this row, or replace what is there (None)."""
    return row is None or row in SCATTERED or row in _EXTREMES


def scattered(
    b: ModuleBuilder, source: SSAValue, updates: SSAValue, indices: Sequence[SSAValue], axes: Sequence[int], map: AffineMap,
    kind: str, row: str | None, trusted: bool = False,
) -> SSAValue:
    """`source`, of type `kind`, with the updates at the places of `map`, whose coordinates along `axes` the index tensors give;
    updates that go to no element are dropped, or a fault where the indices are `trusted`. Raises UnsupportedError TFW0992 for a row
    that memory cannot combine by."""
    if not is_scattered(row):
        raise UnsupportedError(f"updates that are combined by {row}", code="TFW0992")
    if not prod(shape_of(updates)) or not prod(shape_of(source)):
        return source
    if row is None:
        return _replaced(b, source, updates, indices, axes, map, trusted)
    if row in _EXTREMES:
        keys = [_extreme_key(b, value, kind, row) for value in (source, updates)]
        held = b.scatter(keys[0], keys[1], indices, axes, map, _EXTREMES[row], trusted)
        return _from_key(b, held, source, kind)
    wide = _wide(kind)
    given = [b.cast(value, wide) for value in (source, updates)]
    return b.cast(b.scatter(given[0], given[1], indices, axes, map, row, trusted), types.dtype_of(source.type).name, wide)


def _wide(kind: str) -> str:
    """The type in which elements are combined."""
    given = dtype(kind)
    return ("fp64" if given.bits == 64 else "fp32") if given.is_float else "int64" if given.bits == 64 else "int32"


def _replaced(
    b: ModuleBuilder, source: SSAValue, updates: SSAValue, indices: Sequence[SSAValue], axes: Sequence[int], map: AffineMap,
    trusted: bool,
) -> SSAValue:
    """Each element, or the update with the greatest number of those that go to it."""
    shape, own = shape_of(updates), shape_of(source)
    none = b.broadcast(b.fused_map(lambda s: s.number(-1, "int32"), shape=())[0], own)
    numbers = b.reshape(b.iota((prod(shape),), 0), shape)
    last = b.scatter(none, numbers, indices, axes, map, "maxs", trusted)
    rank = len(own)
    chosen = b.gather(b.reshape(updates, (prod(shape),)), [last], [0], linear_map([[0] * rank], [0], rank))
    return b.map("select", b.map("ges", last, 0), chosen, source)


def _extreme_key(b: ModuleBuilder, value: SSAValue, kind: str, row: str) -> SSAValue:
    """Numbers that order as the values; NaN beyond all others where it wins, and else where it loses to every other."""
    if not dtype(kind).is_float:
        return order_key(b, value, kind)
    wins = row.endswith("_nan")
    held = b.cast(value, _wide(kind))
    nan = b.map("isnan", held)
    key = order_key(b, b.map("select", nan, 0.0, held), _wide(kind), total=True)
    bits = types.dtype_of(key.type).bits
    beyond = (1 << (bits - 1)) - 1 if wins == row.startswith("max") else -(1 << (bits - 1))
    return b.map("select", nan, beyond, key)


def _from_key(b: ModuleBuilder, key: SSAValue, source: SSAValue, kind: str) -> SSAValue:
    """The values that have these keys."""
    given, name = dtype(kind), types.dtype_of(source.type).name
    if not given.is_float:
        if given.bits < 32:
            return b.cast(key, name, "int32")
        return key if given.is_signed else b.map("xori", key, -(1 << (given.bits - 1)))
    bits = types.dtype_of(key.type).bits
    low = (1 << (bits - 1)) - 1
    nan = b.map("ori", b.map("eqi", key, low), b.map("eqi", key, -(1 << (bits - 1))))
    value = b.map("select", nan, float("nan"), b.map("bitcast", negatives_turned(b, key), to=_wide(kind)))
    return b.cast(value, name)
