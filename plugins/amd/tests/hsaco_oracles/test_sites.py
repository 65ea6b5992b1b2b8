"""Which sites a mutation campaign finds in AMD's code, and what it makes of each."""

from __future__ import annotations

import pytest

from hsaco_oracles.sites import shorter, sites


@pytest.mark.parametrize(("line", "kind", "after"), [
    ("s_barrier", "barrier", [""]),
    ("\ts_nop 1", "nop", [""]),
    ("\ts_waitcnt vmcnt(0)", "weaken", ["s_waitcnt vmcnt(1)"]),
    ("\ts_waitcnt vmcnt(3) lgkmcnt(0)  ; wait", "weaken", ["s_waitcnt vmcnt(4) lgkmcnt(0)", "s_waitcnt vmcnt(3) lgkmcnt(1)"]),
    ("\ts_waitcnt vmcnt(63) lgkmcnt(14)", "weaken", ["s_waitcnt vmcnt(63) lgkmcnt(15)"]),
    ("\t; s_nop 1", "nop", []),
    ("\ts_waitcnt_depctr 1", "weaken", []),
])
def test_sites_of_a_line(line: str, kind: str, after: list[str]) -> None:
    found = list(sites(f"s_mov_b32 s0, 0\n{line}\ns_endpgm\n"))
    assert [(s.kind, s.line, s.after) for s in found] == [(kind, 2, text) for text in after]
    assert all(s.code == f"s_mov_b32 s0, 0\n{s.after}\ns_endpgm\n" for s in found)


def test_a_pause_that_nothing_asks_for_is_no_site() -> None:
    packed = "v_pk_add_f32 v[0:1], v[2:3], v[4:5]"
    lines = [packed, "s_nop 0", "v_mov_b32_e32 v6, v0", packed, "s_nop 0", "v_mov_b32_dpp v6, v0 row_shr:1"]
    assert [site.line for site in sites("\n".join(lines))] == [5]


def test_pauses_of_more_than_one_state_can_be_shorter() -> None:
    assert [(s.kind, s.line, s.after) for s in shorter("s_nop 0\ns_nop 4 ; pause\ns_endpgm")] == [("shorter", 2, "s_nop 3")]
