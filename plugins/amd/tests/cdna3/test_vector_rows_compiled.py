"""Vector rows give the same bits compiled as in NumPy's form, on numbers at the edges and at random."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

import pytest
from served import having

from cdna3.test_vector_rows_trace import MODES, REFUSED, WIDE, sources
from cdna3.vector import VECTOR
from tilefw.testing.compiled_rows import disagreements
from tilefw_amd.isa.row import Mode, Modifiers

pytest.importorskip("llvmlite")

ROWS = [(name, mode) for name in sorted(VECTOR.keys() - REFUSED - WIDE) for mode in MODES.values()]


def compared(rows: Iterable[tuple[str, Mode]]) -> Iterator[tuple[str, list[str] | None]]:
    for name, mode in rows:
        modifiers = Modifiers()
        modifiers.mode, modifiers.form, modifiers.chip = mode, None, having(name)
        yield name, disagreements(VECTOR[name].build(modifiers), sources(VECTOR[name]), count=64)


def test_rows_mean_the_same_compiled() -> None:
    found = dict(compared(random.Random(3).sample(ROWS, 160)))
    assert {name: wrong for name, wrong in found.items() if wrong} == {}
    assert sum(wrong == [] for wrong in found.values()) > 60, "few of them have a compiled form"


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(8))
def test_every_row_means_the_same_compiled(part: int) -> None:
    assert {name: wrong for name, wrong in compared(ROWS[part::8]) if wrong} == {}
