"""Modifiers of operands in running kernels: signs, halves, SDWA, DPP, clamp and omod, against the words that they stand for."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from assembled import PROLOGUE, clean, store

LANES = np.arange(64)


def f32(value: float) -> int:
    return int.from_bytes(struct.pack("<f", value), "little")


def after(code: str, **how: str) -> int:
    """The word that v3 holds in every lane after the code."""
    words = clean(PROLOGUE + code + "\n  s_nop 1\n" + store("v3"), **how)
    assert len(set(words.tolist())) == 1
    return int(words[0])


NAN = "0x7fc00000"
FLOATS = {
    "v_add_f32 v3, -v1, v2": 1.0, "v_add_f32 v3, |v4|, v2": 6.5, "v_add_f32 v3, -|v4|, v2": -0.5,
    "v_add_f32_e64 v3, v1, v2 clamp": 1.0, "v_sub_f32_e64 v3, v1, v2 clamp": 0.0, "v_mul_f32_e64 v3, v5, v2 clamp": 0.0,
    "v_fma_f32 v3, -v1, v2, |v4|": -2.5,
}


@pytest.mark.parametrize("code", FLOATS)
def test_signs_scales_and_limits_of_floats(code: str) -> None:
    values = f"  v_mov_b32 v1, 2.0\n  v_mov_b32 v2, 0x40400000\n  v_mov_b32 v4, {f32(-3.5):#x}\n  v_mov_b32 v5, {NAN}\n"
    assert after(values + "  " + code) == f32(FLOATS[code])


SCALED = {
    ("v_add_f32_e64 v3, v1, v2 mul:2", False): 10.0, ("v_add_f32_e64 v3, v1, v2 mul:4", False): 20.0,
    ("v_add_f32_e64 v3, v1, v2 div:2", False): 2.5, ("v_mul_f32_e64 v3, v4, v5 mul:2", False): 0.0,
    ("v_sub_f32_e64 v3, v2, v1 clamp div:2", False): 0.5,
    ("v_add_f32_e64 v3, v1, v2 mul:2", True): 5.0, ("v_mul_f32_e64 v3, v4, v5 mul:2", True): -0.0,
}


@pytest.mark.parametrize(("code", "ieee"), SCALED)
def test_omod_scales_without_ieee_and_subnormals_only(code: str, ieee: bool) -> None:
    values = f"  v_mov_b32 v1, 2.0\n  v_mov_b32 v2, 0x40400000\n  v_mov_b32 v4, {f32(-0.0):#x}\n  v_mov_b32 v5, 1.0\n"
    wanted = f32(SCALED[code, ieee])
    assert after(values + "  " + code, directives=f"ieee_mode {int(ieee)}") == wanted
    kept = after(values + "  " + code, directives="ieee_mode 0; float_denorm_mode_32 3")
    assert kept == after(values + "  " + code, directives="ieee_mode 1")


WORDS = "  v_mov_b32 v1, 0x89abcdef\n  v_mov_b32 v2, 0x01234567\n  v_mov_b32 v3, 0x55555555\n"
SDWA = {
    "v_or_b32_sdwa v3, v1, v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_3 src1_sel:WORD_1": 0x89 | 0x0123,
    "v_or_b32_sdwa v3, v1, v2 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:BYTE_3 src1_sel:BYTE_0": 0xEF0000,
    "v_or_b32_sdwa v3, v1, v2 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_3 src1_sel:BYTE_0": 0x5555EF55,
    "v_mov_b32_sdwa v3, sext(v1) dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1": 0xFFFF89AB,
    "v_mov_b32_sdwa v3, v1 dst_sel:WORD_0 dst_unused:UNUSED_SEXT src0_sel:WORD_1": 0xFFFF89AB,
}


@pytest.mark.parametrize("code", SDWA)
def test_sdwa_selects_parts(code: str) -> None:
    assert after(WORDS + "  s_nop 1\n  " + code) == SDWA[code]


HALVES = "  v_mov_b32 v1, 0x40003c00\n  v_mov_b32 v2, 0x44004200\n  v_mov_b32 v3, 0x55555555\n"  # halves (1, 2) and (3, 4)
PACKED = {
    "v_pk_add_f16 v3, v1, v2": 0x46004400,
    "v_pk_add_f16 v3, v1, v2 op_sel:[1,0] op_sel_hi:[0,1]": 0x45004500,
    "v_pk_add_f16 v3, v1, v2 neg_lo:[1,0] neg_hi:[0,1]": 0xC0004000,
    "v_pk_add_f16 v3, v1, 1.0 op_sel_hi:[1,0]": 0x42004000,
    "v_pk_add_f16 v3, v1, v2 clamp": 0x3C003C00,
    "v_add_f16 v3, v1, v2": 0x4400,
    "v_mad_f16 v3, v1, v2, v2 op_sel:[1,0,0,1]": 0x48805555,
    "v_mad_f16 v3, v1, v2, v2": 0x55554600,
    "v_mad_legacy_f16 v3, v1, v2, v2": 0x4600,
    "v_fma_mix_f32 v3, v1, 1.0, v1 op_sel:[1,0,0] op_sel_hi:[1,1,1]": f32(3.0),
}


@pytest.mark.parametrize("code", PACKED)
def test_halves_of_registers(code: str) -> None:
    assert after(HALVES + "  s_nop 1\n  " + code) == PACKED[code]


def test_lanes_that_dpp_does_not_write_keep_their_value() -> None:
    body = PROLOGUE + """
  v_mov_b32 v1, 7
  v_mov_b32 v2, v0
  s_nop 1
  v_add_u32_dpp v1, v2, v2 row_shr:1 row_mask:0xa bank_mask:0xf
  s_nop 1
""" + store("v1")
    written = (LANES // 16 % 2 == 1) & (LANES % 16 > 0)
    assert np.array_equal(clean(body), np.where(written, LANES - 1 + LANES, 7))


def test_dpp_takes_nothing_from_lanes_that_are_off() -> None:
    body = PROLOGUE + """
  v_mov_b32 v1, 7
  v_mov_b32 v2, 5
  s_mov_b32 s10, 0xaaaaaaaa
  s_mov_b32 s11, s10
  s_mov_b64 exec, s[10:11]
  s_nop 4
  v_mov_b32_dpp v1, v2 row_shr:1 row_mask:0xf bank_mask:0xf
  v_mov_b32_dpp v2, v2 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1
  s_mov_b64 exec, -1
  v_lshl_or_b32 v1, v2, 8, v1
""" + store("v1")
    odd = LANES % 2 == 1
    assert np.array_equal(clean(body), np.where(odd, 0 << 8 | 7, 5 << 8 | 7))


# Scalar operands that are not registers: high halves of apertures (0x01000000 of LDS, 0x02000000 of scratch), conditions as 0 or 1.
NO_REGISTERS = {
    "v_mov_b32 v3, src_private_base": 0x02000000, "v_mov_b32 v3, src_scc": 1, "v_mov_b32 v3, src_vccz": 1,
    "v_mov_b32 v3, src_execz": 0,
    "v_add_f16 v3, src_shared_base, v1": 0x4000, "v_add_f16_sdwa v3, src_private_base, v1 dst_sel:DWORD src0_sel:BYTE_3": 0x4000,
    "v_add_f32 v3, -v2, src_scc": 0xC0400000, "v_pk_add_u16 v3, src_scc, v5 op_sel_hi:[1,1]": 0x00030003,
    "v_pk_add_u16 v3, src_vccz, v5 op_sel_hi:[0,1]": 0x00040003, "v_pk_mul_lo_u16 v3, v5, src_shared_base": 0x03000000,
    "v_cmp_eq_i16_e64 s[6:7], src_vccz, v6\n  s_nop 1\n  v_mov_b32 v3, s6": 0xFFFFFFFF,
    "s_mov_b64 s[6:7], src_private_base\n  v_mov_b32 v3, s7": 0x02000000, "s_mov_b32 s6, src_scc\n  v_mov_b32 v3, s6": 1,
}


@pytest.mark.parametrize("code", NO_REGISTERS)
def test_operands_that_are_no_registers(code: str) -> None:
    """In every type of operand: halves, packed halves and parts are taken of them as of registers."""
    values = "  v_mov_b32 v1, 0x4000\n  v_mov_b32 v2, 0x40400000\n  v_mov_b32 v5, 0x00030002\n  v_mov_b32 v6, 1\n"
    assert after(values + "  s_mov_b64 vcc, 0\n  s_cmp_eq_u32 s0, s0\n  " + code) == NO_REGISTERS[code]
