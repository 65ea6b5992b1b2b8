"""What is wrong with assembly text is told with a code, at its place, with what helps; whatever the text, never otherwise."""

from __future__ import annotations

import random
import time

import pytest
from served import assemble, assemble_code

from tilefw.api import CodeError

KERNEL = """\t.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
\t.amdhsa_code_object_version 5
\t.text
\t.globl\tadd                      ; -- Begin function add
\t.p2align\t8
\t.type\tadd,@function
add:                             ; @add
.Lfunc_begin0:
\t.cfi_startproc
\t.file\t1 "/a" "b.py"
\t.loc\t1 10 0 prologue_end             ; b.py:10:0
\ts_load_dwordx4 s[4:7], s[0:1], 0x0
\tv_lshl_or_b32 v0, s8, 9, v0
\ts_mov_b32 s2, .Ltable@rel32@lo+4
\ts_waitcnt lgkmcnt(0) & vmcnt(3)
\tv_cmp_gt_i32_e32 vcc, s4, v0
\ts_and_saveexec_b64 s[0:1], vcc
\ts_cbranch_execz .LBB0_2
\tglobal_load_dword v1, v0, s[4:5] offset:4*4 nt
\tv_mfma_f32_32x32x8_f16 a[0:15], v[2:3], v[4:5], a[0:15] cbsz:1
\tv_mov_b32_dpp v1, v2 quad_perm:[0,1,2,3] row_mask:0xf bank_mask:0xf
\tv_fma_f32 v0, -|v1|, 0.5, v3 clamp mul:2
.LBB0_2:
\ts_endpgm
.Lfunc_end0:
\t.size\tadd, .Lfunc_end0-add
\t.section\t.rodata,"a",@progbits
\t.p2align\t6, 0x0
\t.amdhsa_kernel add
\t\t.amdhsa_next_free_vgpr .Lvgprs
\t\t.amdhsa_next_free_sgpr 16
\t\t.amdhsa_accum_offset 8
\t\t.amdhsa_user_sgpr_kernarg_segment_ptr 1
\t.end_amdhsa_kernel
\t.p2align 2
.Ltable:
\t.long 1, -2, .Lfunc_end0-add
\t.asciz "a\\tb"
\t.set .Lvgprs, max(24, 8*2)
\t.amdgpu_metadata
---
amdhsa.kernels:
  - .name: add
    .symbol: add.kd
    .kernarg_segment_size: 16
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .max_flat_workgroup_size: 256
    .wavefront_size: 64
    .sgpr_count: 16
    .vgpr_count: 24
amdhsa.version:
  - 1
  - 2
...
\t.end_amdgpu_metadata
"""
# Instruction -> code, what the carets stand under, words of the message or the help.
MISTAKES = {
    "v_add_f23 v0, v1, v2": ("TFW0720", "v_add_f23", "v_add_f32"),
    "v_add_f64 v[0:1], v[3:4], v[6:7]": ("TFW0721", "v[3:4]", "even"),
    "s_load_dwordx4 s[2:5], s[0:1], 0x0": ("TFW0721", "s[2:5]", "multiple of 4"),
    "v_mov_b32 v0, v256": ("TFW0721", "v256", "last register"),
    "v_mov_b32 v0, s102": ("TFW0721", "s102", "no register"),
    "s_mov_b32 ttmp16, 0": ("TFW0721", "ttmp16", "ttmp15"),
    "s_mov_b32 s0, nowhere": ("TFW0726", "s_mov_b32 s0, nowhere", "not defined"),
    "s_sub_u32 s0, one, other": ("TFW0721", "other", "one literal"),
    "v_sqrt_f32 v2, lit(v1)": ("TFW0725", "v1", "a number"),
    "s_mov_b32 s0": ("TFW0721", "s_mov_b32", "2 operands"),
    "s_mov_b32 s0, s1, s2": ("TFW0721", "s2", "no operand"),
    "v_fma_f32 v0, s1, s2, v3": ("TFW0721", "v0, s1, s2, v3", "one scalar register"),
    "v_add_f32_e64 v0, v1, 0x1234": ("TFW0721", "0x1234", "no room for a literal"),
    "v_add_f32_e32 v0, v1, s2": ("TFW0721", "s2", "VGPR"),
    "ds_write2_b32 v0, v1, a1": ("TFW0721", "v0, v1, a1", "all in accumulation"),
    "v_mfma_f32_32x32x8_f16 v[0:15], v[20:21], v[4:5], v[2:17]": ("TFW0721", "v[0:15], v[20:21], v[4:5], v[2:17]", "overlap"),
    "v_mov_b64_dpp v[0:1], v[2:3] row_shl:1": ("TFW0721", "row_shl:1", "row_newbcast"),
    "s_waitcnt vmcnt(64)": ("TFW0722", "vmcnt(64)", "0 to 63"),
    "s_waitcnt vmcnt(0) lgkmcnt(16)": ("TFW0722", "lgkmcnt(16)", "0 to 15"),
    "s_nop 16": ("TFW0722", "16", "0 to 15"),
    "global_load_dword v0, v1, s[0:1] offset:4096": ("TFW0722", "offset:4096", "-4096 to 4095"),
    "s_movk_i32 s0, 65536": ("TFW0722", "65536", "16 bits"),
    "s_getreg_b32 s0, hwreg(HW_REG_FOO)": ("TFW0722", "hwreg(HW_REG_FOO)", "no hardware register"),
    "v_add_f32 v0, v1, v2 lds": ("TFW0721", "lds", "no modifier"),
    "v_mov_b32 v0, 0x": ("TFW0725", "0x", "not an integer"),
    "v_mov_b32 v0, 0xp3": ("TFW0725", "0xp3", "not a number"),
    "v_mov_b32 v0, 0x1p99999": ("TFW0725", "0x1p99999", "not a number"),
    "s_mov_b64 s[0:1, exec": ("TFW0725", ",", "']'"),
    "s_branch nowhere": ("TFW0726", "s_branch nowhere", "not defined"),
    ".macro x": ("TFW0726", ".macro", "not served"),
}


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_is_told_at_its_place(line: str) -> None:
    code, marked, words = MISTAKES[line]
    with pytest.raises(CodeError) as caught:
        assemble_code(f"s_nop 0\n\t{line} ; why\n", "a.s")
    error, place = caught.value, caught.value.place
    assert place is not None
    assert (error.code, place.line, place.text[place.column - 1 : place.end_column - 1]) == (code, 2, marked)
    assert words in f"{error.message} {error.note} {error.help}"


def test_the_whole_file_assembles() -> None:
    assert assemble(KERNEL, "add.s")[:4] == b"\x7fELF"


PIECES = ["", "0", "-1", "99999999999999999999", "v[", "]", "(", ")", "|", ":", ",", '"', "neg(", "s[0:", "@", "/*", "\x00", "é",
          ".set ", "=", "v[4:1]", "{", "vmcnt(", "offset:", "-" * 200, "(" * 200, ".p2align 99", ".fill 99999999, 8",
          ".L", "lit("]  # fmt: skip


def test_damaged_text_is_an_error_of_ours_or_a_file() -> None:
    rng = random.Random(7)
    began = time.monotonic()
    for _ in range(1500):
        text = KERNEL
        for _ in range(rng.randint(1, 3)):
            start = rng.randrange(len(text))
            end = start + rng.choice([0, 1, 2, 8, 60])
            text = text[:start] + rng.choice([*PIECES, text[start:end][::-1]]) + text[end:]
        try:
            assemble(text, "damaged.s")
        except CodeError as error:
            assert error.code.startswith("TFW07")
    assert time.monotonic() - began < 60


@pytest.mark.parametrize(("line", "said"), [
    ("\ts_add_u32 s0, s0, counter@gotpcrel32@lo+4", "@gotpcrel32@lo asks for an address"),
    ("\ts_add_u32 s0, s0, .Ltable@abs32@lo", "@abs32@lo asks for an address"),
    ("\t.data\n\t.quad .Ltable+16", "an address in data is one"),
])
def test_what_needs_a_relocation_is_refused_at_its_line(line: str, said: str) -> None:
    text = KERNEL + "\t.text\ncounter:\n" + line + "\n"
    with pytest.raises(CodeError) as caught:
        assemble(text, "kernel.s")
    assert said in caught.value.message and caught.value.code == "TFW0726"
    assert caught.value.place is not None and caught.value.place.line == text.count("\n")


@pytest.mark.parametrize("line", [
    "v_mov_b32 v{}, 1", "v_mov_b32 v[{0}:{0}], 1", "v_mov_b32 v0, {}", "v_mov_b32 v0, 0x{}", "s_waitcnt vmcnt({})", ".p2align {}",
])
def test_numbers_beyond_all_limits_are_mistakes_too(line: str) -> None:
    """Python itself refuses to read a decimal number of more than 4,300 digits."""
    with pytest.raises(CodeError, match="TFW072"):
        assemble_code(line.format("9" * 7000))
