"""Sums that take a product unrounded: only where the product is theirs alone."""

from __future__ import annotations

import numpy as np
import pytest

from tilefw_spatial.graph import AccessMap, Along, Axis, Elementwise, Load, Store, Value
from tilefw_spatial.link.fused_sums import fuse_sums

ROWS, COLUMNS = Axis("rows", 4), Axis("columns", 8)


def access(parameter: int, *axes: Axis) -> AccessMap:
    return AccessMap(parameter, 0, tuple(Along(axis, np.arange(axis.extent)) for axis in axes))


def loaded(parameter: int, *axes: Axis) -> Value:
    return Value(Load(access(parameter, *axes)), axes, "fp32")


def made(row: str, *operands: Value, dtype: str = "fp32") -> Value:
    axes = dict.fromkeys(axis for operand in operands for axis in operand.axes)
    return Value(Elementwise(row, operands), tuple(axes), dtype)


def stored(value: Value) -> Store:
    return Store(value, access(9, *value.axes))


def rows_of(value: Value) -> list[str]:
    """The rows from a value down to what is loaded, first operands first."""
    if not isinstance(value.op, Elementwise):
        return []
    return [value.op.row, *(row for part in value.op.operands for row in rows_of(part))]


X, Y, Z = (loaded(number, ROWS, COLUMNS) for number in range(3))


@pytest.mark.parametrize(("total", "rows"), [
    (lambda p: made("addf", p, Z), ["fma"]),
    (lambda p: made("addf", Z, p), ["fma"]),
    (lambda p: made("subf", p, Z), ["fma", "negf"]),
    (lambda p: made("subf", Z, p), ["fma", "negf"]),
])
def test_a_sum_takes_the_product_that_it_alone_reads(total, rows: list[str]) -> None:
    value = total(made("mulf", X, Y))
    fuse_sums([stored(value)])
    assert rows_of(value) == rows


def test_a_product_that_is_stored_or_read_twice_is_rounded() -> None:
    product = made("mulf", X, Y)
    total, square = made("addf", product, Z), made("mulf", X, Z)
    twice = made("addf", square, square)
    fuse_sums([stored(total), stored(product), stored(twice)])
    assert rows_of(total) == ["addf", "mulf"] and rows_of(twice) == ["addf", "mulf", "mulf"]


def test_a_product_of_fewer_axes_is_made_once_for_all_sums() -> None:
    total = made("addf", made("mulf", loaded(0, ROWS), loaded(1, ROWS)), Z)
    fuse_sums([stored(total)])
    assert rows_of(total) == ["addf", "mulf"]


def test_sums_of_integers_are_exact_and_stay() -> None:
    total = made("addi", made("muli", X, Y, dtype="int32"), Z, dtype="int32")
    fuse_sums([stored(total)])
    assert rows_of(total) == ["addi", "muli"]
