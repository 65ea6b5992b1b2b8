"""Kernels of code objects run as on the chip: masks, calls, memory spaces; reports name instruction, wave, lane and address."""

from __future__ import annotations

import numpy as np
import pytest
from assembled import BACKEND, PROLOGUE, artifact, clean, run, store

from tilefw.api.errors import CodeError
from tilefw.api.integers import round_up

LANES = np.arange(64)


# --- EXEC -----------------------------------------------------------------------------------------------------------------


def test_exec_says_which_lanes_write_registers_and_memory() -> None:
    body = PROLOGUE + """
  v_mov_b32 v1, 1
  s_mov_b64 exec, 0xff00
  v_mov_b32 v1, 2
  s_mov_b32 exec_hi, 3
  v_add_u32 v1, v1, 4
  s_mov_b64 exec, -1
""" + store("v1")
    expected = np.ones(64)
    expected[8:16] = 2 + 4
    expected[32:34] = 1 + 4
    assert np.array_equal(clean(body), expected)


def test_comparisons_clear_the_bits_of_lanes_that_are_off() -> None:
    body = PROLOGUE + """
  s_mov_b64 vcc, -1
  s_mov_b64 exec, 0xffff
  v_cmp_gt_u32 vcc, 32, v40
  s_mov_b64 exec, -1
  s_nop 1
  v_mov_b32 v1, vcc_lo
  v_mov_b32 v2, vcc_hi
  v_add_u32 v1, v1, v2
""" + store("v1")
    assert clean(body).tolist() == [0xFF] * 64


def test_waves_of_a_workgroup_branch_apart_and_meet_at_a_barrier() -> None:
    body = PROLOGUE + """
  v_readfirstlane_b32 s5, v0
  s_mov_b32 s6, 10
  s_cmp_lt_u32 s5, 128
  s_cbranch_scc1 .Ljoin
  s_mov_b32 s6, 20
.Ljoin:
  s_barrier
""" + store("s6")
    assert clean(body, block=(256, 1, 1), words=256).tolist() == [10] * 128 + [20] * 128


def test_lanes_leave_a_loop_one_by_one() -> None:
    body = PROLOGUE + """
  v_mov_b32 v1, 0
  s_mov_b64 s[8:9], exec
.Lloop:
  v_add_u32 v1, v1, 3
  v_cmp_lt_u32 vcc, v1, v0
  s_and_b64 exec, exec, vcc
  s_cbranch_execnz .Lloop
  s_mov_b64 exec, s[8:9]
""" + store("v1")
    assert np.array_equal(clean(body), np.maximum(3, round_up(LANES, 3)))


# --- calls ------------------------------------------------------------------------------------------------------------------


FUNCTION = """
  .p2align 2
  .type double,@function
double:
  v_lshlrev_b32 v1, 1, v1
  s_setpc_b64 s[30:31]
.Ldouble_end:
  .size double, .Ldouble_end-double
"""


def test_a_function_is_called_and_returns() -> None:
    body = PROLOGUE + """
  v_add_u32 v1, v0, 5
  s_getpc_b64 s[10:11]
.Lhere:
  s_add_u32 s10, s10, double-.Lhere
  s_addc_u32 s11, s11, 0
  s_swappc_b64 s[30:31], s[10:11]
  v_add_u32 v1, v1, 1
""" + store("v1")
    assert np.array_equal(clean(body, functions=FUNCTION), 2 * (LANES + 5) + 1)


def test_a_jump_to_no_instruction_is_reported() -> None:
    findings = run("  s_mov_b64 s[4:5], 64\n  s_setpc_b64 s[4:5]\n").findings
    assert [(f.code, f.instruction) for f in findings] == [("TFW0814", "s_setpc_b64 s[4:5]")]


# --- memory spaces --------------------------------------------------------------------------------------------------------------


def test_scratch_is_a_lane_s_own() -> None:
    body = PROLOGUE + """
  v_mov_b32 v1, 8
  scratch_store_dword v1, v0, off offset:4
  s_waitcnt vmcnt(0)
  scratch_load_dword v2, off, off offset:12
  s_waitcnt vmcnt(0)
""" + store("v2")
    words = clean(body, directives="private_segment_fixed_size 32; enable_private_segment 1")
    assert np.array_equal(words, LANES)


def test_shared_memory_may_be_fixed_or_dynamic() -> None:
    body = PROLOGUE + """
  v_xor_b32 v1, 0xfc, v40
  ds_write_b32 v40, v0
  s_waitcnt lgkmcnt(0)
  s_barrier
  ds_read_b32 v2, v1
  s_waitcnt lgkmcnt(0)
""" + store("v2")
    assert np.array_equal(clean(body, dynamic_shared=256), LANES[::-1])
    assert np.array_equal(clean(body, directives="group_segment_fixed_size 256"), LANES[::-1])


def test_flat_addresses_reach_shared_memory_through_its_aperture() -> None:
    body = PROLOGUE + """
  s_mov_b64 s[8:9], src_shared_base
  v_mov_b32 v2, v40
  v_mov_b32 v3, s9
  flat_store_dword v[2:3], v0
  s_waitcnt vmcnt(0) lgkmcnt(0)
  ds_read_b32 v4, v40
  s_waitcnt lgkmcnt(0)
""" + store("v4")
    assert np.array_equal(clean(body, dynamic_shared=256), LANES)


def test_a_kernel_may_read_its_own_image() -> None:
    body = PROLOGUE + """
  s_getpc_b64 s[10:11]
.Lhere:
  s_add_u32 s10, s10, .Ldata-.Lhere
  s_addc_u32 s11, s11, 0
  s_load_dword s12, s[10:11], 0x0
  s_waitcnt lgkmcnt(0)
""" + store("s12") + ".Ldata:\n  .long 0x12345678\n"
    assert clean(body).tolist() == [0x12345678] * 64


# --- what is not code, and what is not served ------------------------------------------------------------------------------


def test_bytes_that_mean_nothing_trap_only_when_they_are_executed() -> None:
    bad = "  .long 0xffffffff\n"
    assert clean(PROLOGUE + "  s_branch .Lover\n" + bad + ".Lover:\n" + store("v0")).tolist() == LANES.tolist()
    (finding,) = run(PROLOGUE + bad + store("v0")).findings
    assert (finding.check, finding.instruction) == ("trap", ".long 0xffffffff")
    assert str(finding.code_place).endswith(": kernel+0x18")


def test_running_past_the_end_is_told() -> None:
    (finding,) = run("  s_nop 0\n").findings
    assert finding.message == "execution runs past the end of kernel"


def test_a_branch_to_no_instruction_is_told_when_it_is_taken() -> None:
    (finding,) = run("  s_branch 1000\n  s_endpgm\n").findings
    assert "goes to an address where the kernel has no instruction" in finding.message


def test_what_is_no_code_object_is_refused() -> None:
    with pytest.raises(CodeError) as caught:
        BACKEND.parse(b"\x7fELF and then nothing", "broken.hsaco")
    assert caught.value.code == "TFW0724"


def test_the_artifact_says_what_the_metadata_says() -> None:
    (entry,) = artifact(store("v0"), values=2, hidden=[("hidden_grid_dims", 16, 2)]).entries
    assert [(p.kind, p.offset, p.size) for p in entry.parameters] == [("pointer", 0, 8), ("scalar", 8, 4), ("scalar", 12, 4)]


# --- reports ----------------------------------------------------------------------------------------------------------------------


def test_a_result_used_before_its_wait_is_reported_with_the_load() -> None:
    body = PROLOGUE + "  global_load_dword v1, v40, s[40:41]\n  v_add_u32 v2, v1, v1\n  s_waitcnt vmcnt(0)\n" + store("v2")
    (finding,) = run(body).findings
    assert (finding.code, finding.instruction) == ("TFW0820", "v_add_u32_e32 v2, v1, v1")
    assert "global_load_dword v1, v40, s[40:41]" in (finding.other or "")


def test_missing_wait_states_are_counted() -> None:
    body = PROLOGUE + "  v_mov_b32 v1, v0\n  v_mov_b32_dpp v2, v1 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1\n" + store("v2")
    (finding,) = run(body).findings
    assert finding.code == "TFW0821"
    assert "v1 is accessed 0 wait states after" in finding.message and "2 are needed" in finding.message


def test_a_wild_access_names_wave_lane_and_address() -> None:
    body = PROLOGUE + "  v_add_u32 v40, 8, v40\n" + store("v0")
    (finding,) = run(body, block=(128, 1, 1), words=128).findings
    assert (finding.check, finding.wave, finding.lane, finding.instruction) == (
        "bounds", 1, 62, "global_store_dword v40, v0, s[40:41]",
    )
    assert finding.address is not None


@pytest.mark.parametrize(("pair", "checks"), [("  s_branch beyond\n", []), ("", ["hazards"])])
def test_a_conditional_branch_before_a_plain_one_gives_two_wait_states(pair: str, checks: list[str]) -> None:
    """The select of a lane needs four behind what wrote it: the comparison, the branch, its partner and s_nop 0."""
    body = PROLOGUE + f"""
  v_readfirstlane_b32 s4, v0
  s_cmp_eq_u32 s4, s4
  s_cbranch_scc1 taken
{pair}beyond:
  s_endpgm
taken:
  s_nop 0
  v_readlane_b32 s5, v0, s4
  s_nop 1
  v_mov_b32 v2, s5
""" + store("v2")
    assert [f.check for f in run(body).findings] == checks
