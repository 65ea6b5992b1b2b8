"""What the proofs of equivalence prove, and what they must not, on made-up code."""

from __future__ import annotations

import pytest

from hsaco_oracles.equivalence import proof
from hsaco_oracles.flow import Flow
from hsaco_oracles.sites import sites

_IDLE = {
    "at the start": "s_barrier ; here\n ds_write_b32 v0, v1\n s_endpgm",
    "at the end": "global_store_dword v0, v1, s[0:1]\n s_barrier ; here\n s_endpgm",
    "two in a row": "ds_write_b32 v0, v1\n s_waitcnt lgkmcnt(0)\n s_barrier ; here\n s_barrier\n ds_read_b32 v2, v3\n s_endpgm",
    "reads on both sides": "ds_read_b32 v0, v1\n s_waitcnt lgkmcnt(0)\n s_barrier ; here\n ds_read_b32 v2, v3\n s_endpgm",
    "lanes exchanged": "ds_write_b32 v4, v5\n s_barrier ; here\n ds_bpermute_b32 v0, v1, v2\n s_endpgm",
    "another space": "ds_read_b32 v0, v1\n s_waitcnt lgkmcnt(0)\n s_barrier ; here\n global_atomic_add v3, v0, s[4:5]\n s_endpgm",
    "two in a row behind a store":
        "global_store_dword v0, v1, s[0:1]\n s_or_b64 exec, exec, s[2:3]\n s_barrier\n s_barrier ; here\n"
        " global_atomic_add v2, v3, s[0:1]\n s_endpgm",
    "an older access, waited for some instructions before the barrier that orders it":
        "ds_write_b32 v0, v1\n s_waitcnt lgkmcnt(0)\n v_mov_b32_e32 v2, 0\n s_barrier\n s_barrier ; here\n ds_read_b32 v4, v5\n"
        " s_endpgm",
    "an access waited for on both ways to the barrier that orders it":
        "ds_write_b32 v0, v1\n s_cbranch_scc0 .LBB0_1\n s_waitcnt lgkmcnt(0)\n s_branch .LBB0_2\n.LBB0_1:\n"
        " s_waitcnt lgkmcnt(0)\n.LBB0_2:\n s_barrier\n s_barrier ; here\n ds_read_b32 v2, v3\n s_endpgm",
    "a load to shared memory that a barrier has ordered":
        "global_load_lds_dword v[0:1], off\n s_waitcnt vmcnt(0) lgkmcnt(0)\n s_barrier\n s_barrier ; here\n ds_read_b32 v2, v3\n"
        " s_endpgm",
    "an older access that a barrier has ordered":
        "ds_write_b32 v0, v1\n s_waitcnt lgkmcnt(0)\n s_barrier\n global_load_dword v2, v3, s[0:1]\n s_barrier ; here\n"
        " ds_read_b32 v4, v5\n s_endpgm",
}
_BUSY = {
    "a write, then a read": "ds_write_b32 v0, v1\n s_waitcnt lgkmcnt(0)\n s_barrier ; here\n ds_read_b32 v2, v3\n s_endpgm",
    "a read, then a write": "ds_read_b32 v0, v1\n s_waitcnt lgkmcnt(0)\n s_barrier ; here\n ds_write_b32 v2, v3\n s_endpgm",
    "a write that no barrier has ordered yet":
        "ds_write_b32 v0, v1\n s_barrier\n s_waitcnt lgkmcnt(0)\n s_barrier ; here\n ds_read_b32 v4, v5\n s_endpgm",
    "global memory": "global_store_dword v0, v1, s[0:1]\n s_barrier ; here\n global_load_dword v2, v3, s[0:1]\n s_endpgm",
    "an atomic behind a load": "global_load_dword v0, v1, s[0:1]\n s_barrier ; here\n global_atomic_add v2, v3, s[0:1]\n s_endpgm",
    "a load to shared memory": "global_load_lds_dword v[0:1], off\n s_barrier ; here\n ds_read_b32 v2, v3\n s_endpgm",
    "a load to shared memory that passes a barrier":
        "global_load_lds_dword v[0:1], off\n s_waitcnt lgkmcnt(0)\n s_barrier\n s_waitcnt vmcnt(0)\n s_barrier ; here\n"
        " ds_read_b32 v2, v3\n s_endpgm",
    "a write behind the wait for others":
        "s_waitcnt lgkmcnt(0)\n ds_write_b32 v0, v1\n s_barrier\n s_barrier ; here\n ds_read_b32 v2, v3\n s_endpgm",
    "a flat store": "flat_store_dword v[0:1], v2\n s_barrier ; here\n ds_read_b32 v2, v3\n s_endpgm",
    "around a loop":
        ".LBB0_1:\n ds_read_b32 v0, v1\n s_waitcnt lgkmcnt(0)\n s_barrier ; here\n s_cbranch_scc1 .LBB0_2\n ds_write_b32 v2, v3\n"
        " s_branch .LBB0_1\n.LBB0_2:\n s_endpgm",
    "on one of two paths": "s_cbranch_scc0 .LBB0_1\n ds_write_b32 v0, v1\n.LBB0_1:\n s_waitcnt lgkmcnt(0)\n s_barrier ; here\n"
                           " ds_read_b32 v2, v3\n s_endpgm",
    "where the code goes is computed": "s_barrier ; here\n s_setpc_b64 s[0:1]\n s_endpgm",
}


def _proof(text: str) -> str:
    line = next(i for i, found in enumerate(text.splitlines(), 1) if "; here" in found)
    return proof(text, next(site for site in sites(text) if site.line == line))


@pytest.mark.parametrize("name", _IDLE)
def test_idle_barriers(name: str) -> None:
    assert _proof(_IDLE[name]).startswith("proved")


@pytest.mark.parametrize("name", _BUSY)
def test_barriers_that_may_order_something(name: str) -> None:
    assert _proof(_BUSY[name]) == ""


_IDLE_WAITS = {
    "nothing under way": "v_mov_b32_e32 v0, 0\n s_waitcnt vmcnt(0) ; here\n s_endpgm",
    "another counter": "ds_read_b32 v0, v1\n s_waitcnt vmcnt(0) ; here\n s_endpgm",
    "fewer than it lets through": "ds_read_b32 v0, v1\n s_waitcnt lgkmcnt(1) ; here\n s_endpgm",
    "waited for on both ways":
        "global_load_dword v0, v1, s[0:1]\n s_cbranch_scc0 .LBB0_1\n s_waitcnt vmcnt(0)\n s_branch .LBB0_2\n.LBB0_1:\n"
        " s_waitcnt vmcnt(0)\n.LBB0_2:\n s_waitcnt vmcnt(0) ; here\n s_endpgm",
    "a write-back of nothing": "global_load_dword v0, v1, s[0:1]\n buffer_wbl2 sc1\n s_waitcnt vmcnt(0) ; here\n"
                               " global_atomic_add v2, v3, s[0:1]\n s_endpgm",
}
_IDLE_WAITS |= {
    "waited for before it is touched":
        "ds_read_b32 v0, v1\n s_waitcnt lgkmcnt(0) ; here\n v_mov_b32_e32 v2, 0\n s_waitcnt lgkmcnt(0)\n"
        " v_mov_b32_e32 v3, v0\n s_endpgm",
    "overwritten in order": "ds_read_b32 v0, v1\n s_waitcnt lgkmcnt(0) ; here\n ds_read_b32 v0, v2\n s_waitcnt lgkmcnt(0)\n"
                            " v_mov_b32_e32 v3, v0\n s_endpgm",
    "the older of two is used": "ds_read_b32 v0, v1\n ds_read_b32 v2, v1\n s_waitcnt lgkmcnt(0) ; here\n v_mov_b32_e32 v3, v0\n"
                                " s_waitcnt lgkmcnt(0)\n v_mov_b32_e32 v3, v2\n s_endpgm",
    "a read at a barrier behind which nothing is written":
        "ds_read_b32 v0, v1\n s_waitcnt lgkmcnt(0) ; here\n s_barrier\n ds_read_b32 v2, v1\n s_waitcnt lgkmcnt(0)\n"
        " v_mov_b32_e32 v3, v0\n s_endpgm",
    "an older one than a scalar load and the newest of LDS":
        "ds_read_b32 v0, v1\n ds_read_b32 v2, v1\n s_load_dword s0, s[2:3], 0x0\n s_waitcnt lgkmcnt(0) ; here\n"
        " v_mov_b32_e32 v3, v0\n s_waitcnt lgkmcnt(0)\n v_mov_b32_e32 v3, v2\n s_endpgm",
    "a scalar load waited for before it is used": "s_load_dword s0, s[2:3], 0x0\n s_waitcnt lgkmcnt(0) ; here\n s_mov_b32 s4, 0\n"
                                                  " s_waitcnt lgkmcnt(0)\n s_mov_b32 s5, s0\n s_endpgm",
}
_NEEDED_WAITS = {
    "used on one of two ways": "ds_read_b32 v0, v1\n s_waitcnt lgkmcnt(0) ; here\n s_cbranch_scc0 .LBB0_1\n s_waitcnt lgkmcnt(0)\n"
                               ".LBB0_1:\n v_mov_b32_e32 v3, v0\n s_endpgm",
    "a read at a barrier behind which its place may be written":
        "ds_read_b32 v0, v1\n s_waitcnt lgkmcnt(0) ; here\n s_barrier\n ds_write_b32 v1, v2\n s_waitcnt lgkmcnt(0)\n"
        " v_mov_b32_e32 v3, v0\n s_endpgm",
    "a scalar load beside one of LDS":
        "ds_read_b32 v0, v1\n s_load_dword s0, s[2:3], 0x0\n s_waitcnt lgkmcnt(0) ; here\n s_mov_b32 s1, s0\n"
        " s_waitcnt lgkmcnt(0)\n v_mov_b32_e32 v3, v0\n s_endpgm",
    "an address that is read":
        "ds_read_b32 v0, v1\n s_waitcnt lgkmcnt(0) ; here\n ds_read_b32 v2, v0\n s_waitcnt lgkmcnt(0)\n s_endpgm",
    "data that is written":
        "ds_read_b32 v0, v1\n s_waitcnt lgkmcnt(0) ; here\n ds_write_b32 v0, v2\n s_waitcnt lgkmcnt(0)\n s_endpgm",
    "overwritten by arithmetic":
        "ds_read_b32 v0, v1\n s_waitcnt lgkmcnt(0) ; here\n v_mov_b32_e32 v0, 0\n s_waitcnt lgkmcnt(0)\n s_endpgm",
    "a scalar load that a count does not tell from another":
        "s_load_dword s0, s[2:3], 0x0\n s_load_dword s1, s[2:3], 0x4\n s_waitcnt lgkmcnt(0) ; here\n s_mov_b32 s5, s0\n"
        " s_waitcnt lgkmcnt(0)\n s_endpgm",
    "a write before a barrier": "ds_write_b32 v0, v1\n s_waitcnt lgkmcnt(0) ; here\n s_barrier\n s_waitcnt lgkmcnt(0)\n s_endpgm",
    "a read of what a load to LDS overwrites":
        "ds_read_b32 v0, v1\n s_waitcnt lgkmcnt(0) ; here\n global_load_lds_dword v[2:3], off\n s_waitcnt lgkmcnt(0)\n s_endpgm",
    "one under way": "v_mov_b32_e32 v3, 0\n ds_read_b32 v0, v1\n s_waitcnt lgkmcnt(0) ; here\n v_mov_b32_e32 v3, v0\n s_endpgm",
    "one of two": "ds_read_b32 v0, v1\n ds_read_b32 v2, v1\n s_waitcnt lgkmcnt(1) ; here\n v_mov_b32_e32 v3, v0\n s_endpgm",
    "a flat load": "flat_load_dword v0, v[2:3]\n s_waitcnt vmcnt(0) ; here\n s_endpgm",
    "a load straight to LDS": "global_load_lds_dwordx4 v[0:1], off\n s_waitcnt vmcnt(0) ; here\n s_endpgm",
    "waited for on one of two ways":
        "global_load_dword v0, v1, s[0:1]\n s_cbranch_scc0 .LBB0_1\n s_waitcnt vmcnt(0)\n.LBB0_1:\n s_waitcnt vmcnt(0) ; here\n"
        " s_endpgm",
    "from the turn before": ".LBB0_1:\n s_waitcnt vmcnt(0) ; here\n global_load_dword v0, v1, s[0:1]\n s_cbranch_scc1 .LBB0_1\n"
                            " s_endpgm",
    "a write-back of a store": "global_store_dword v0, v1, s[0:1]\n buffer_wbl2 sc1\n s_waitcnt vmcnt(0) ; here\n"
                               " global_atomic_add v2, v3, s[0:1]\n s_endpgm",
}
_IDLE_CACHES = {
    "nothing stored": "global_load_dword v0, v1, s[0:1]\n buffer_wbl2 sc1 ; here\n global_store_dword v0, v1, s[0:1]\n s_endpgm",
    "atomics before it": "global_atomic_add v2, v3, s[0:1]\n buffer_wbl2 sc1 ; here\n s_endpgm",
    "nothing loaded": "global_load_dword v0, v1, s[0:1]\n buffer_inv sc1 ; here\n global_store_dword v0, v1, s[0:1]\n s_endpgm",
}
_NEEDED_CACHES = {
    "a store": "global_store_dword v0, v1, s[0:1]\n s_barrier\n buffer_wbl2 sc1 ; here\n s_endpgm",
    "a store of the turn before":
        ".LBB0_1:\n buffer_wbl2 sc1 ; here\n global_store_dword v0, v1, s[0:1]\n s_cbranch_scc1 .LBB0_1\n s_endpgm",
    "a load": "buffer_inv sc1 ; here\n s_barrier\n global_load_dword v0, v1, s[0:1]\n s_endpgm",
    "a flat load": "buffer_inv sc1 ; here\n flat_load_dword v0, v[2:3]\n s_endpgm",
    "a load straight to LDS": "buffer_inv sc1 ; here\n global_load_lds_dword v[0:1], off\n s_endpgm",
}


@pytest.mark.parametrize("text", [*_IDLE_WAITS.values(), *_IDLE_CACHES.values()], ids=[*_IDLE_WAITS, *_IDLE_CACHES])
def test_idle_waits_and_cache_actions(text: str) -> None:
    assert _proof(text).startswith("proved")


@pytest.mark.parametrize("text", [*_NEEDED_WAITS.values(), *_NEEDED_CACHES.values()], ids=[*_NEEDED_WAITS, *_NEEDED_CACHES])
def test_waits_and_cache_actions_that_may_matter(text: str) -> None:
    assert _proof(text) == ""


def test_a_scalar_load_of_two_words_counts_twice() -> None:
    flow = Flow("s_load_dwordx2 s[0:1], s[2:3], 0x0\n s_waitcnt lgkmcnt(1)\n s_endpgm")
    assert flow.most("lgkmcnt") == [0, 2, 1]


def test_pauses_are_not_proved() -> None:
    text = "v_mov_b32_e32 v0, v1\n s_nop 0\n s_endpgm"
    assert [proof(text, site) for site in sites(text)] == [""]
