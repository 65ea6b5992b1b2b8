"""What a chip does not serve is told row by row, with the row that would have to be added."""

from __future__ import annotations

import numpy as np
import pytest

from tilefw.api.errors import UnsupportedError
from tilefw.simt.expand import BASE_ROWS, legal
from tilefw.simt.expand.builder import key
from tilefw.simt.expand.missing import missing
from tilefw.testing.numpy_chip import Lanes, NumpyChip


def test_a_chip_with_the_base_set_lacks_f64_alone() -> None:
    found = missing(NumpyChip(BASE_ROWS, 1))
    assert found and all("f64" in row for row in found)
    assert found["addf.f64"] == "addf.f64" and found["castf.f64.f16"] == "castf.f64.f32"
    assert not set(found.values()) & (BASE_ROWS | found.keys() - set(found.values()))  # a reason is what no rule makes


@pytest.mark.parametrize("row", ["mulf.f32", "shru.i32", "select.i32", "castf.f64.f32"])
def test_what_is_missing_without_a_row_cannot_be_built_and_the_rest_can(row: str) -> None:
    """A share of the rows of one operand, built on a chip in NumPy: each ends as it was told."""
    f64 = {"castf.f64.f32", "castf.f32.f64", "eqf.f64", "ltf.f64"}
    chip = NumpyChip(frozenset(BASE_ROWS | f64) - {row}, 2)
    told = missing(chip)
    assert told.get(row) == row or row not in told
    some = [("negf", "f32", None), ("exp", "f16", None), ("clz", "i32", None), ("castf", "f64", "f16"), ("absi", "i8", None),
            ("s2f", "i64", "bf16"), ("f2u", "f32", "i16"), ("floor", "f32", None), ("exts", "i8", "i64"), ("isnan", "f64", None)]
    words = {"f64": np.float64, "f32": np.float32, "i64": np.uint64}
    for name, type_, to in some:
        operand = Lanes(np.ones(2, words.get(type_, np.uint32)), type_)
        if key(name, type_, to) in told:
            with pytest.raises((UnsupportedError, RecursionError)):
                legal(chip)(name, operand, to=to)
        else:
            legal(chip)(name, operand, to=to)


def test_rules_of_the_chip_count() -> None:
    class OfRules:
        rows = BASE_ROWS
        rules = {"negf.f32": lambda build, x: build("mulf", x, build.real(-1.0, "f32"))}

    found = missing(OfRules())
    assert "negf.f32" not in found and found["exp.f32"] == "exp.f32"
