"""Every elementwise row at every type, run as PTX on the simulator, agrees with the reference interpreter's bounds."""

from __future__ import annotations

from itertools import groupby

import pytest
from row_kernels import BY_IR, RowCase, cases, check

from tilefw.api.ir import ROWS

_MOVES = {"select", "bitcast", "castf", "s2f", "u2f", "f2s", "f2u"}


def in_the_language(case: RowCase) -> bool:
    """Formats of 8 bits and less are moved, selected and cast; the front end refuses arithmetic on them."""
    return case.row in _MOVES or not any(BY_IR[t].is_float and BY_IR[t].bits <= 8 for t in (*case.operands, case.result))


BY_ROW = {name: list(group) for name, group in groupby(filter(in_the_language, cases()), key=lambda c: c.row)}


def test_every_row_is_tried():
    assert set(BY_ROW) == set(ROWS) - {"ptr_to_int", "int_to_ptr"}


@pytest.mark.parametrize("row", BY_ROW)
def test_row_agrees_with_the_reference(row, chip):
    wrong = {str(case): str(result) for case in BY_ROW[row] if (result := check(case, chip)).wrong}
    assert not wrong
