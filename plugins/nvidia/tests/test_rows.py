"""Every elementwise row at every type, run as PTX on the simulator, agrees with the reference interpreter's bounds.

Chips after the oldest have its code but for formats of 8 bits and less and bf16: they take all of those, every fourth of the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

import pytest
from chips_here import CHIPS, OLDEST, body
from row_kernels import BY_IR, RowCase, cases, check, compile_text, kernel

from tilefw.api import Artifact
from tilefw.api.ir import ROWS
from tilefw_nvidia.chips import Chip

_MOVES = {"select", "bitcast", "castf", "s2f", "u2f", "f2s", "f2u"}


def in_the_language(case: RowCase) -> bool:
    """Formats of 8 bits and less are moved, selected and cast; the front end refuses arithmetic on them."""
    return case.row in _MOVES or not any(BY_IR[t].is_float and BY_IR[t].bits <= 8 for t in (*case.operands, case.result))


BY_ROW = {name: list(group) for name, group in groupby(filter(in_the_language, cases()), key=lambda c: c.row)}


def test_every_row_is_tried():
    assert set(BY_ROW) == set(ROWS) - {"ptr_to_int", "int_to_ptr"}


def has_other_code(case: RowCase) -> bool:
    """Whether later chips convert or compute in one of its formats otherwise than the oldest."""
    return any(BY_IR[t].is_float and (BY_IR[t].bits <= 8 or t == "bf16") for t in (*case.operands, case.result))


def different(number: int, case: RowCase) -> Iterable[tuple[Chip, Artifact]]:
    """The chips that a row's case has code of its own for, with it: without those whose code is an earlier chip's."""
    tried = CHIPS if number % 4 == 0 or has_other_code(case) else (OLDEST,)
    made = {chip: compile_text(kernel(case), chip) for chip in tried}
    return {body(code): (chip, code) for chip, code in reversed(made.items())}.values()


@pytest.mark.parametrize("row", BY_ROW)
def test_row_agrees_with_the_reference(row: str) -> None:
    results = {
        (chip, case): check(case, chip, code=code) for n, case in enumerate(BY_ROW[row]) for chip, code in different(n, case)
    }
    assert results and {f"{chip} {case}": str(result) for (chip, case), result in results.items() if result.wrong} == {}
