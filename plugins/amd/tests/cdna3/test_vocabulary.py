"""What the machine layer is told of instructions, and the page: both come from the table, and cover it."""

from __future__ import annotations

import pytest
from served import ISA, TABLE

from tilefw_amd.isa.page import page

TRAITS = TABLE.traits


def test_every_mnemonic_has_traits_and_nothing_else_has() -> None:
    assert all(TRAITS(mnemonic).latency >= 1 for mnemonic in ISA.forms_by_mnemonic)
    with pytest.raises(KeyError):
        TRAITS("v_add_f31")
    assert ISA.nearest("v_add_f31") is not None


ACTING = ["global_store_dword", "ds_write_b32", "ds_append", "s_barrier", "s_waitcnt", "global_atomic_add", "s_trap"]


@pytest.mark.parametrize("opcode", ACTING)
def test_what_acts_beyond_its_results_is_kept(opcode: str) -> None:
    assert TRAITS(opcode).effects


COMPUTING = [
    "v_add_f32_e32", "global_load_dwordx4", "ds_read_b128", "ds_bpermute_b32", "s_load_dwordx2", "v_mfma_f32_32x32x8_f16",
]


@pytest.mark.parametrize("opcode", COMPUTING)
def test_what_only_computes_may_go_when_nobody_reads_it(opcode: str) -> None:
    assert not TRAITS(opcode).effects


def test_only_what_never_falls_through_ends_a_block() -> None:
    assert TRAITS("s_branch").terminator and TRAITS("s_endpgm").terminator
    assert not TRAITS("s_cbranch_scc0").terminator


def test_the_page_has_every_row() -> None:
    text = page(ISA)
    assert all(f"| {name} |" in text for name in ISA.rows)
    assert "`v_add_f32_e32 v, v or s or constant or literal, v`" in text
