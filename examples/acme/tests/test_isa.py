"""THE TABLE: every row is a function of the lane algebra with the widths that it states; the set stays small."""

from __future__ import annotations

import pytest

from tilefw.api.sim import trace
from tilefw_acme.isa import BITS, ROWS, TABLE
from tilefw_acme.target import LANES


@pytest.mark.parametrize("mnemonic", [name for name, row in ROWS.items() if row.meaning is not None])
def test_a_meaning_traces_symbolically(mnemonic: str) -> None:
    row = ROWS[mnemonic]
    assert row.meaning is not None
    _, results = trace(row.meaning, [BITS[kind] for kind in row.operands], LANES)
    assert results == tuple(BITS[kind] for kind in row.results)


@pytest.mark.parametrize("mnemonic, row", ROWS.items(), ids=list(ROWS))
def test_a_row_has_a_meaning_or_a_control_flow(mnemonic: str, row) -> None:
    assert (row.meaning is None) == bool(row.control)
    assert row.unit and row.latency >= 1
    assert TABLE.traits(mnemonic) is row.traits


def test_the_set_is_a_few_dozen() -> None:
    assert len(ROWS) <= 60
