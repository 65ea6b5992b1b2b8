"""THE TABLE: every row is a function of the lane algebra with the widths that it states, and knows what memory it accesses."""

from __future__ import annotations

import pytest

from tilefw.api.sim import trace
from tilefw_rook.isa import BITS, ROWS, table
from tilefw_rook.target import R1


@pytest.mark.parametrize("mnemonic", [name for name, row in ROWS.items() if row.meaning is not None])
def test_a_meaning_traces_symbolically(mnemonic: str) -> None:
    row = ROWS[mnemonic]
    assert row.meaning is not None
    steps, results = trace(row.meaning, [BITS[kind] for kind in row.operands], R1.limits["lanes"])
    assert row.control == "branch" or results == tuple(BITS[kind] for kind in row.results)
    accesses = {step.operands[0] for step in steps if step.name in ("load", "store")} - {"param"}
    assert not accesses or accesses == {row.traits.memory}


@pytest.mark.parametrize("mnemonic, row", ROWS.items(), ids=list(ROWS))
def test_a_row_has_a_meaning_or_a_control_flow(mnemonic: str, row) -> None:
    assert row.meaning is not None or row.control
    assert table().traits(mnemonic).latency == row.latency >= 1 and row.unit


def test_the_register_files_have_25_and_32_registers() -> None:
    assert {name: cls.count for name, cls in table().classes.items()} == {"x": 25, "f": 32}
