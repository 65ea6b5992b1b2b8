"""Constant tiles: whatever is added, multiplied, wrapped and compared, the sums of terms equal NumPy's results element by
element."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tilefw.api import DTYPES
from tilefw_spatial.graph import Axis
from tilefw_spatial.lower.arithmetic import apply
from tilefw_spatial.lower.constant_tile import Array, ConstantTerm, ConstantTile, canonical, iota, of_term, splat

_INT32 = DTYPES["int32"]
_PROGRAM, _LOOP = Axis("program", 3), Axis("loop", 4)
_KEYS = (_PROGRAM, _LOOP, 0, 1)
_SHAPE = (5, 2)
_WHOLE = (3, 4, *_SHAPE)
_SUMS = ("addi", "subi", "muli")
_OTHERS = ("divs", "rems", "mins", "maxs", "shl", "andi")


@st.composite
def _tiles(draw: st.DrawFn) -> tuple[ConstantTile, Array]:
    """A constant tile of one key, or of a few at random, and its elements over all keys."""
    data = st.integers(-9, 2**31 - 1) if draw(st.booleans()) else st.integers(1, 9)
    if draw(st.booleans()):
        key = draw(st.sampled_from(_KEYS))
        extent = _WHOLE[_KEYS.index(key)]
        tile = iota(_INT32, _SHAPE, key, extent, draw(st.integers(-5, 5)), draw(st.integers(1, 7)))
    else:
        keys = tuple(draw(st.lists(st.sampled_from(_KEYS), unique=True, max_size=2)))
        extents = [_WHOLE[_KEYS.index(key)] for key in keys]
        numbers = draw(st.lists(data, min_size=int(np.prod(extents)), max_size=int(np.prod(extents))))
        tile = of_term(_INT32, _SHAPE, ConstantTerm(np.asarray(numbers, np.int64).reshape(extents), keys))
    return tile, _elements(tile)


def _elements(tile: ConstantTile) -> Array:
    return np.broadcast_to(tile.whole().over(_KEYS), _WHOLE)


def _direct(row: str, a: Array, b: Array) -> Array:
    x, y = a.astype(object), b.astype(object)
    if row in _SUMS:
        found = {"addi": x + y, "subi": x - y, "muli": x * y}[row]
    elif row in ("divs", "rems"):
        quotient = np.vectorize(lambda p, q: int(np.sign(p) * np.sign(q)) * (abs(p) // abs(q)) if q else 0, otypes=[object])(x, y)
        found = quotient if row == "divs" else x - quotient * y
    elif row == "shl":
        found = np.vectorize(lambda p, q: p << q if 0 <= q < 32 else 0, otypes=[object])(x, y)
    else:
        found = {"mins": np.minimum, "maxs": np.maximum, "andi": np.bitwise_and}[row](x, y)
    return np.vectorize(lambda v: (int(v) + 2**31) % 2**32 - 2**31, otypes=[np.int64])(found)


@settings(max_examples=150, deadline=None)
@given(_tiles(), st.lists(st.tuples(st.sampled_from(_SUMS + _OTHERS), _tiles()), min_size=1, max_size=4))
def test_chains_of_rows_are_exact(start: tuple[ConstantTile, Array], steps: list[tuple[str, tuple[ConstantTile, Array]]]) -> None:
    tile, due = start
    for row, (operand, elements) in steps:
        if row in ("divs", "rems") and not elements.all():
            continue  # anything is right there
        tile, due = apply(row, [tile, operand], _INT32), _direct(row, due, elements)
    assert np.array_equal(_elements(tile), due)


def test_an_address_keeps_one_term_a_key() -> None:
    """The block's row times the stride, the row in the block times the stride, and the column stay apart."""
    row = apply("addi", [iota(_INT32, _SHAPE, _PROGRAM, 3, 0, 64), iota(_INT32, _SHAPE, 0, 5)], _INT32)
    address = apply("addi", [apply("muli", [row, splat(4096, _INT32, _SHAPE)], _INT32), iota(_INT32, _SHAPE, 1, 2)], _INT32)
    assert sorted(len(term.keys) for term in address.terms) == [1, 1, 1]


def test_a_wrap_that_never_wraps_keeps_its_terms() -> None:
    row = apply("addi", [iota(_INT32, _SHAPE, _PROGRAM, 3, 0, 5), iota(_INT32, _SHAPE, 0, 5)], _INT32)
    assert apply("rems", [row, splat(15, _INT32, _SHAPE)], _INT32) is row
    assert len(apply("rems", [row, splat(14, _INT32, _SHAPE)], _INT32).terms) == 1


@given(st.integers(-(2**63), 2**64 - 1), st.sampled_from(["int1", "int8", "int32", "int64"]))
def test_a_scalar_of_any_reading_is_held_as_its_type_holds_it(value: int, name: str) -> None:
    """Unsigned arguments and truth values are bits of the signless type."""
    value_held = canonical(value, DTYPES[name])
    if name == "int1":
        assert value_held is not True and value_held == bool(value)
    else:
        assert (value_held - value) % 2 ** DTYPES[name].bits == 0 and np.asarray(value_held, np.dtype(name)) == value_held
