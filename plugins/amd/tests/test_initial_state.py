"""What a wave finds in its registers: LLVM's AMDGPUUsage, "Initial Kernel Execution State" for GFX942."""

from __future__ import annotations

import numpy as np
import pytest
from assembled import PROLOGUE, clean, run, store

GRID = "user_sgpr_count 2; system_sgpr_workgroup_id_x 1; system_sgpr_workgroup_id_y 1; system_sgpr_workgroup_id_z 1"


@pytest.mark.parametrize(("axis", "register"), [(0, "s2"), (1, "s3"), (2, "s4")])
def test_workgroup_ids_stand_behind_the_user_registers(axis: int, register: str) -> None:
    body = PROLOGUE + """
  s_mul_i32 s5, s4, 6
  s_mul_i32 s6, s3, 2
  s_add_i32 s5, s5, s6
  s_add_i32 s5, s5, s2
  s_lshl_b32 s5, s5, 8
  v_add_u32 v40, s5, v40
""" + store(register)
    words = clean(body, directives=GRID, grid=(2, 3, 2), words=12 * 64).reshape(2, 3, 2, 64)
    assert np.array_equal(words, np.broadcast_to(np.indices((2, 3, 2))[2 - axis][..., None], words.shape))


def test_an_axis_that_is_not_asked_for_takes_no_register() -> None:
    directives = "system_sgpr_workgroup_id_x 0; system_sgpr_workgroup_id_y 1"
    words = clean(PROLOGUE + "  s_lshl_b32 s5, s2, 8\n  v_add_u32 v40, s5, v40\n" + store("s2"), directives=directives, grid=(1, 3),
                  words=192)
    assert np.array_equal(words.reshape(3, 64), np.repeat([[0], [1], [2]], 64, axis=1))


def test_v0_packs_the_ids_of_the_work_item() -> None:
    body = """
  s_load_dwordx2 s[40:41], s[0:1], 0x0
  v_and_b32 v40, 0x3ff, v0
  v_bfe_u32 v1, v0, 10, 10
  v_bfe_u32 v2, v0, 20, 10
  v_lshl_add_u32 v40, v1, 2, v40
  v_lshl_add_u32 v40, v2, 3, v40
  v_lshlrev_b32 v40, 2, v40
  s_waitcnt lgkmcnt(0)
""" + store("v0")
    words = clean(body, directives="system_vgpr_workitem_id 2", block=(4, 2, 8)).reshape(8, 2, 4)
    z, y, x = np.indices((8, 2, 4))
    assert np.array_equal(words, x | y << 10 | z << 20)


def test_exec_has_the_lanes_that_there_are() -> None:
    body = PROLOGUE + "  s_bcnt1_i32_b64 s5, exec\n" + store("s5")
    words = clean(body, block=(100, 1, 1), words=128)
    assert words.tolist() == [64] * 64 + [36] * 36 + [0] * 28


def test_preloaded_arguments_stand_behind_the_user_registers_and_execution_begins_behind_the_prologue() -> None:
    body = """
  s_trap 2
  .p2align 8
  v_lshlrev_b32 v40, 2, v0
  s_mov_b64 s[40:41], s[2:3]
""" + store("s5")
    directives = "user_sgpr_kernarg_preload_length 4; user_sgpr_kernarg_preload_offset 0"
    assert clean(body, directives=directives, values=[7, 9]).tolist() == [9] * 64


def test_preloading_may_begin_later_in_the_arguments() -> None:
    body = "  s_trap 2\n  .p2align 8\n" + PROLOGUE + store("s2")
    directives = "user_sgpr_kernarg_preload_length 1; user_sgpr_kernarg_preload_offset 3"
    assert clean(body, directives=directives, values=[7, 9]).tolist() == [9] * 64


def test_the_dispatch_packet_says_the_sizes() -> None:
    body = """
  s_load_dwordx2 s[40:41], s[2:3], 0x0
  s_load_dword s6, s[0:1], 0x4
  s_load_dword s7, s[0:1], 0xc
  v_lshlrev_b32 v40, 2, v0
  s_waitcnt lgkmcnt(0)
  s_and_b32 s6, s6, 0xffff
  s_lshl_b32 s6, s6, 16
  s_or_b32 s6, s6, s7
""" + store("s6")
    assert clean(body, directives="user_sgpr_dispatch_ptr 1", grid=(3,)).tolist() == [64 << 16 | 192] * 64


HIDDEN = {
    "hidden_block_count_x": (4, 5), "hidden_block_count_z": (4, 1), "hidden_group_size_x": (2, 64), "hidden_remainder_x": (2, 0),
    "hidden_global_offset_x": (8, 0), "hidden_grid_dims": (2, 1), "hidden_dynamic_lds_size": (4, 1024),
    "hidden_shared_base": (4, 1 << 24), "hidden_private_base": (4, 2 << 24), "hidden_hostcall_buffer": (8, 0),
}


@pytest.mark.parametrize("kind", HIDDEN)
def test_hidden_arguments_are_filled_in(kind: str) -> None:
    size, expected = HIDDEN[kind]
    load = f"  s_load_dword s6, s[0:1], 0x10\n  s_waitcnt lgkmcnt(0)\n  s_and_b32 s6, s6, {(1 << 8 * min(size, 4)) - 1:#x}\n"
    hidden = [(kind, 16, size), ("hidden_none", 24, 8)]
    assert clean(PROLOGUE + load + store("s6"), hidden=hidden, grid=(5,), dynamic_shared=1024).tolist() == [expected] * 64


def test_a_register_that_nobody_set_is_undefined() -> None:
    findings = run(PROLOGUE + store("s20")).findings
    assert [f.check for f in findings] == ["initialisation"]
    assert findings[0].instruction == "global_store_dword v40, v41, s[40:41]"
