"""THE TABLES: every row is a function of the lane algebra with the widths that it states; the sets stay small."""

from __future__ import annotations

import pytest

from tilefw.api.sim import trace
from tilefw_acme.isa import BITS, ROWS, table
from tilefw_acme.target import X1, X2

ALL = ROWS["x2"]  # and with them those of the X1


@pytest.mark.parametrize("mnemonic", [name for name, row in ALL.items() if row.meaning is not None])
def test_a_meaning_traces_symbolically(mnemonic: str) -> None:
    row = ALL[mnemonic]
    assert row.meaning is not None
    _, results = trace(row.meaning, [BITS[kind] for kind in row.operands], X2.limits["lanes"])
    assert results == tuple(BITS[kind] for kind in row.results)


@pytest.mark.parametrize("mnemonic, row", ALL.items(), ids=list(ALL))
def test_a_row_has_a_meaning_or_a_control_flow(mnemonic: str, row) -> None:
    assert (row.meaning is None) == bool(row.control)
    assert row.unit and row.latency >= 1
    assert table(X2).traits(mnemonic) is row.traits


def test_the_sets_are_a_few_dozen_and_the_second_adds_few() -> None:
    assert ROWS["x1"].items() <= ALL.items()
    assert len(ROWS["x1"]) <= 70 and len(ALL) - len(ROWS["x1"]) <= 10


@pytest.mark.parametrize("target", [X1, X2], ids=lambda target: target.name)
def test_the_register_files_are_those_of_the_target(target) -> None:
    classes = table(target).classes
    assert classes["v"].count == target.limits["registers_per_thread"]
    assert classes["p"].count == target.limits["predicates_per_thread"]
