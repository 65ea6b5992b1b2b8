"""Scalar code as whole programs: calls, computed jumps, loops, conditions, scalar memory, and what the simulator refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from served import assemble

from cdna3.llc import launch

_KERNEL = """.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
.text
.globl k
.p2align 8
.type k,@function
k:
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  s_waitcnt lgkmcnt(0)
{body}
  s_endpgm
{functions}
.Lend:
.size k, .Lend-k
.section .rodata,"a",@progbits
.p2align 6
.amdhsa_kernel k
  .amdhsa_kernarg_size 16
  .amdhsa_user_sgpr_count 2
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_system_sgpr_workgroup_id_x 1
  .amdhsa_system_vgpr_workitem_id 0
  .amdhsa_next_free_vgpr 16
  .amdhsa_next_free_sgpr 48
  .amdhsa_accum_offset 16
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx942
amdhsa.kernels:
  - .name: k
    .symbol: k.kd
    .kernarg_segment_size: 16
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 48
    .vgpr_count: 16
    .max_flat_workgroup_size: 1024
    .args:
      - {{.size: 8, .offset: 0, .value_kind: global_buffer, .address_space: global}}
      - {{.size: 8, .offset: 8, .value_kind: global_buffer, .address_space: global}}
...
.end_amdgpu_metadata
"""
INPUT = np.arange(100, 132, dtype=np.uint32)


def run(body: str, functions: str = "") -> tuple[np.ndarray, tuple[Any, ...]]:
    """What a wave's code leaves in 64 words at s[6:7], with INPUT at s[4:5]; and the findings."""
    text = _KERNEL.format(body=body, functions=functions)
    (_, out), findings = launch(assemble(text, "scalar.s"), [INPUT, np.zeros(64, np.uint32)])
    return out, findings


def clean(body: str, functions: str = "") -> list[int]:
    out, findings = run(body, functions)
    assert findings == (), findings
    return [int(word) for word in out]


_STORE = "s_store_dword s{0}, s[6:7], 0x{1:x}\n"


def stores(*registers: int) -> str:
    """These SGPRs, as words from the first on."""
    return "".join(_STORE.format(register, 4 * place) for place, register in enumerate(registers)) + "s_dcache_wb\n"


def test_a_call_comes_back_behind_itself() -> None:
    body = f"s_movk_i32 s10, 5\ns_call_b64 s[12:13], double\ns_call_b64 s[12:13], double\n{stores(10)}"
    assert clean(body, "double:\n  s_lshl_b32 s10, s10, 1\n  s_setpc_b64 s[12:13]")[0] == 20


def test_a_computed_call_goes_to_an_address_and_remembers_the_next_one() -> None:
    body = f"""  s_movk_i32 s10, 3
  s_getpc_b64 s[14:15]
.Lhere:
  s_add_u32 s14, s14, triple-.Lhere
  s_addc_u32 s15, s15, 0
  s_swappc_b64 s[12:13], s[14:15]
{stores(10)}"""
    assert clean(body, "triple:\n  s_mul_i32 s10, s10, 3\n  s_setpc_b64 s[12:13]")[0] == 9


def test_a_jump_to_no_instruction_is_reported() -> None:
    _, findings = run("s_mov_b64 s[12:13], 0\ns_setpc_b64 s[12:13]")
    assert len(findings) == 1 and "s_setpc_b64" in str(findings[0])


def test_a_loop_counts_with_scc() -> None:
    body = f"""  s_mov_b32 s10, 0
  s_mov_b32 s11, 10
.Lloop:
  s_add_u32 s10, s10, s11
  s_sub_u32 s11, s11, 1
  s_cmp_lg_u32 s11, 0
  s_cbranch_scc1 .Lloop
{stores(10)}"""
    assert clean(body)[0] == 55


@pytest.mark.parametrize(("branch", "register"), [("vcc", "vcc"), ("exec", "exec")])
@pytest.mark.parametrize("value", [0, 1, 1 << 33])
def test_branches_on_masks(branch: str, register: str, value: int) -> None:
    body = f"""  s_mov_b32 s10, 1
  s_mov_b32 {register}_lo, {value & 0xFFFFFFFF}
  s_mov_b32 {register}_hi, {value >> 32}
  s_cbranch_{branch}z .Lzero
  s_mov_b32 s10, 2
.Lzero:
  s_cbranch_{branch}nz .Lother
  s_add_u32 s10, s10, 10
.Lother:
{stores(10)}"""
    assert clean(body)[0] == (11 if value == 0 else 2)


def test_saved_masks_choose_lanes() -> None:
    body = """  v_cmp_gt_u32_e32 vcc, 5, v0
  v_mov_b32_e32 v1, 7
  v_lshlrev_b32_e32 v2, 2, v0
  s_and_saveexec_b64 s[10:11], vcc
  global_store_dword v2, v1, s[6:7]
  s_xor_b64 exec, exec, s[10:11]
  v_mov_b32_e32 v1, 9
  global_store_dword v2, v1, s[6:7]
  s_mov_b64 exec, s[10:11]"""
    assert clean(body) == [7] * 5 + [9] * 59


def test_wide_scalar_loads_and_stores() -> None:
    body = """  s_load_dwordx16 s[16:31], s[4:5], 0x10
  s_load_dwordx8 s[32:39], s[4:5], 0x50
  s_movk_i32 s9, 0x8
  s_load_dwordx2 s[40:41], s[4:5], s9
  s_waitcnt lgkmcnt(0)
  s_store_dwordx4 s[16:19], s[6:7], 0x0
  s_store_dwordx4 s[28:31], s[6:7], 0x10
  s_store_dwordx4 s[36:39], s[6:7], 0x20
  s_store_dwordx2 s[40:41], s[6:7], 0x30
  s_dcache_wb"""
    assert clean(body)[:14] == [*range(104, 108), *range(116, 120), *range(124, 128), 102, 103]


def test_a_scalar_load_is_pending_until_the_wait() -> None:
    _, findings = run(f"s_load_dword s10, s[4:5], 0x0\ns_add_u32 s10, s10, 1\n{stores(10)}")
    assert "pending" in {f.check for f in findings}


def test_scalar_loads_are_covered_by_zero_only() -> None:
    body = f"s_load_dword s10, s[4:5], 0x0\ns_load_dword s11, s[4:5], 0x4\ns_waitcnt lgkmcnt(1)\n{stores(10)}"
    assert "pending" in {f.check for f in run(body)[1]}


def test_scalar_atomics_return_what_was_there() -> None:
    body = f"""  s_mov_b32 s10, 5
  s_mov_b32 s11, 6
  s_atomic_add s10, s[6:7], 0x40
  s_waitcnt lgkmcnt(0)
  s_atomic_umax s11, s[6:7], 0x40 glc
  s_waitcnt lgkmcnt(0)
  s_mov_b32 s12, 77
  s_mov_b32 s13, 6
  s_atomic_cmpswap s[12:13], s[6:7], 0x40 glc
  s_waitcnt lgkmcnt(0)
{stores(11, 12)}"""
    out = clean(body)
    assert out[:2] == [5, 6] and out[16] == 77


def test_a_scalar_buffer_load_gives_zero_out_of_range() -> None:
    body = f"""  s_mov_b64 s[16:17], s[4:5]
  s_mov_b32 s18, 12
  s_mov_b32 s19, 0
  s_buffer_load_dwordx4 s[20:23], s[16:19], 0x4
  s_waitcnt lgkmcnt(0)
{stores(20, 21, 22, 23)}"""
    assert clean(body)[:4] == [101, 102, 0, 0]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("s_trap 2", "s_trap 2: the kernel gave up"),
        ("s_sendmsg sendmsg(MSG_INTERRUPT)", "no receiver of messages"),
        ("s_movrels_b32 s8, s9", "does not choose registers by a number"),
        ("s_set_gpr_idx_on s9, gpr_idx(SRC0)", "does not choose registers by a number"),
        ("s_setvskip s9, 1", "does not skip vector instructions"),
        ("s_getreg_b32 s8, hwreg(HW_REG_HW_ID)", "does not know bits 0 to 31 of register 4"),
        ("s_scratch_load_dwordx4 s[8:11], s[4:5], 0x0", "not published"),
    ],
)
def test_what_it_cannot_do_stops_the_launch_and_says_so(line: str, words: str) -> None:
    out, findings = run(f"s_mov_b32 s9, 0\ns_mov_b32 m0, 0\ns_nop 4\n{line}\ns_mov_b32 s10, 1\n{stores(10)}")
    (finding,) = [f for f in findings if f.check == "trap"]
    assert words in str(finding) and int(out[0]) == 0
