"""Which pauses count as needed, on made-up code; and that the simulator agrees about those that do not."""

from __future__ import annotations

import pytest

from hsaco_oracles.pauses import needed

_UNNEEDED = {
    "two loads": "global_load_dword v0, v[2:3], off\n s_nop 0\n global_load_dword v4, v[6:7], off",
    "two scalar loads": "s_load_dword s4, s[0:1], 0x0\n s_nop 0\n s_load_dwordx2 s[0:1], s[0:1], 0x8",
    "a packed sum": "v_pk_add_f32 v[0:1], v[2:3], v[4:5]\n s_nop 0\n v_mul_f32_e32 v6, v1, v7",
    "a packed sum, overwritten": "v_pk_add_f32 v[0:1], v[2:3], v[4:5]\n s_nop 0\n v_mov_b32_e32 v0, v7",
    "a mixed product": "v_fma_mix_f32 v3, v2, s0, v1 op_sel_hi:[1,0,0]\n ; implicit-def\n s_nop 0\n v_fma_mix_f32 v4, v3, v2, v2",
    "a comparison of a packed product": "v_pk_mul_f32 v[0:1], v[2:3], s[0:1]\n s_nop 0\n v_cmp_gt_f32_e32 vcc, s1, v1",
}
_STORED = "v_mfma_f32_4x4x1_16b_f32 v[0:3], v8, v9, v[0:3]\n s_nop 5\n scratch_store_dwordx2 off, {first}, off\n s_nop 0\n" \
          " scratch_store_dwordx2 off, v[2:3], off offset:8"
_UNNEEDED["the rest of a product's result"] = _STORED.format(first="v[0:1]").replace("s_nop 5", "s_mov_b32 s0, 0\n" * 6)
_UNNEEDED["a debugger's label"] = _UNNEEDED["a packed sum"].replace(" s_nop", ".Ltmp1:\n s_nop")
_UNNEEDED["a block's label before"] = ".LBB0_1:\n" + _UNNEEDED["a packed sum"]
_NEEDED = {
    "a product's result behind another store": _STORED.format(first="v[6:7]").replace("s_nop 5", "s_mov_b32 s0, 0\n" * 6),
    "a scalar that a comparison wrote": "v_cmp_lt_i32_e64 s[0:1], v0, v1\n s_nop 1\n v_cndmask_b32_e64 v2, v3, v4, s[0:1]",
    "the same across a packed sum":
        "v_cmp_lt_i32_e64 s[0:1], v0, v1\n v_pk_add_f32 v[4:5], v[2:3], v[2:3]\n s_nop 0\n v_cndmask_b32_e64 v2, v3, v4, s[0:1]",
    "an address that a lane gave": "v_readfirstlane_b32 s4, v9\n global_load_dword v0, v1, s[2:3]\n s_nop 3\n"
                                   " global_load_dword v4, v1, s[4:5]",
    "a packed sum through DPP": "v_pk_add_f32 v[0:1], v[2:3], v[4:5]\n s_nop 0\n v_mov_b32_dpp v6, v1 row_shr:1",
    "a packed sum exchanged between lanes": "v_pk_add_f32 v[0:1], v[2:3], v[4:5]\n s_nop 0\n v_permlane32_swap_b32_e32 v1, v6",
    "a packed sum read by a lane": "v_pk_add_f32 v[0:1], v[2:3], v[4:5]\n s_nop 0\n v_readlane_b32 s0, v1, 3",
    "a packed sum of a product": "v_mfma_f32_4x4x1_16b_f32 v[0:3], v8, v9, v[0:3]\n v_pk_add_f32 v[4:5], v[4:5], v[6:7]\n s_nop 0\n"
                                 " v_pk_add_f32 v[0:1], v[4:5], v[2:3]",
    "a packed sum nobody touches": "v_pk_add_f32 v[0:1], v[2:3], v[4:5]\n s_nop 0\n v_mul_f32_e32 v6, v2, v7",
    "at a label": "v_pk_add_f32 v[0:1], v[2:3], v[4:5]\n.LBB0_1:\n s_nop 0\n v_mul_f32_e32 v6, v1, v7",
    "a load, then arithmetic": "global_load_dword v0, v[2:3], off\n s_nop 0\n v_mov_b32_e32 v4, v5",
    "a plain sum": "v_add_f32_e32 v0, v2, v4\n s_nop 0\n v_mov_b32_e32 v6, v0",
    "a product in a file with labels":
        "v_mfma_f32_4x4x1_16b_f32 v[0:3], v8, v9, v[0:3]\n s_branch .LBB0_1\n" + " s_mov_b32 s0, 0\n" * 30
        + ".LBB0_1:\n v_pk_add_f32 v[4:5], v[4:5], v[6:7]\n s_nop 0\n v_pk_add_f32 v[0:1], v[4:5], v[2:3]",
    "a scalar behind a label":
        ".LBB0_1:\n v_pk_add_f32 v[4:5], v[2:3], v[2:3]\n s_nop 0\n v_cndmask_b32_e64 v2, v3, v4, s[0:1]",
    "at the end": "v_pk_add_f32 v[0:1], v[2:3], v[4:5]\n s_nop 0",
}


def _pause(text: str) -> tuple[list[str], int]:
    lines = text.splitlines()
    return lines, next(i for i, line in enumerate(lines) if line.strip().startswith("s_nop"))


@pytest.mark.parametrize("name", _UNNEEDED)
def test_pauses_that_only_llvm_asks_for(name: str) -> None:
    assert not needed(*_pause(_UNNEEDED[name]))


@pytest.mark.parametrize("name", _NEEDED)
def test_any_other_pause_counts_as_needed(name: str) -> None:
    assert needed(*_pause(_NEEDED[name]))
