"""Test files of LLVM's kind are read as what their checks say, and statements that such files taught assemble to LLVM's bytes."""

from __future__ import annotations

import re

import pytest
from served import ISAS, having

from cdna3 import vector_files
from cdna3.vectors import Difference, _differences
from tilefw.api import CodeError
from tilefw_amd.isa.encoding.encode import encode
from tilefw_amd.isa.set import instruction_set
from tilefw_amd.isa.text.parser import parse

ASSEMBLY = """\
// RUN: llvm-mc -triple=amdgcn -mcpu=gfx942 -show-encoding %s | FileCheck --check-prefixes=NEW,BOTH %s
// RUN: not llvm-mc -triple=amdgcn -mcpu=gfx90a %s -filetype=null 2>&1 \\
// RUN:   | FileCheck --check-prefix=OLD %s
// RUN: llvm-mc -triple=amdgcn -mcpu=gfx942 -mattr=+wavefrontsize32 -show-encoding %s | FileCheck --check-prefix=NARROW %s

v_nop   // with a comment
// NEW: v_nop          ; encoding: [0x00,0x00,0x00,0x7e]
// NARROW: v_nop ; encoding: [0x01,0x00,0x00,0x7e]

// OLD: :[[@LINE+2]]:{{[0-9]+}}: error: not on this chip
// BOTH: s_nop 1 ; encoding: [0x01,0x00,0x80,0xbf]
s_nop 1

s_nop 2
s_nop 3
// BOTH: s_nop 3 ; encoding: [0x03,0x00,0x80,0xbf]
"""
CODE = """\
# RUN: llvm-mc -triple=amdgcn -mcpu=gfx950 -disassemble -show-encoding < %s | FileCheck %s
# CHECK: s_nop 1
0x01 0x00 0x80 0xbf

# CHECK: s_nop {{[0-9]}}
0x02,0x00,0x80,0xbf
"""


def test_checks_belong_to_the_instructions_of_their_paragraph() -> None:
    vectors, unsaid = vector_files.read(ASSEMBLY, "a.s").vectors("gfx942")
    assert [(v.statement.line, v.statement.text, v.text, v.data.hex()) for v in vectors] == [
        (6, "v_nop", "v_nop", "0000007e"), (12, "s_nop 1", "s_nop 1", "010080bf"),
    ]
    assert unsaid == 2  # two instructions and one check: nobody is guessed


def test_an_error_belongs_to_the_line_that_it_names() -> None:
    vectors, _ = vector_files.read(ASSEMBLY, "a.s").vectors("gfx90a")
    assert [(v.statement.line, v.refused) for v in vectors] == [(12, "not on this chip")]


def test_bytes_are_read_and_patterns_are_no_vectors() -> None:
    vectors, unsaid = vector_files.read(CODE, "a.txt").vectors("gfx950")
    assert [(v.statement.data.hex(), v.text, v.data) for v in vectors] == [("010080bf", "s_nop 1", b"")]
    assert unsaid == 1


def test_a_wrong_expectation_is_a_difference_without_a_reason() -> None:
    wrong = ASSEMBLY.replace("[0x01,0x00,0x80", "[0x07,0x00,0x80")
    vectors, _ = vector_files.read(wrong, "a.s").vectors("gfx942")
    found = [Difference("a.s", v.statement.line, "gfx942", *d) for v in vectors for d in _differences(ISAS[0], v)]
    assert [d.line for d in found] == [12, 12, 12] and not any(d.reason for d in found)
    assert re.search(r"a\.s:12: s_nop 1: 010080bf, LLVM 070080bf", str(found[0]))


def test_text_that_llvm_prints_and_reads_otherwise_is_read_as_llvm_reads_it() -> None:
    vectors, _ = vector_files.read(ASSEMBLY, "a.s").vectors("gfx942")
    others = list(_differences(ISAS[0], vectors[0], lambda printed, data: "refused (it does not read v_nop)"))
    assert [(asked, theirs) for asked, _, theirs in others] == [("v_nop", "refused (it does not read v_nop)")]


BYTES = {
    "v_dot2c_f32_bf16_e32 v5, 10.1, v2": "ff040a2c22410000",
    "v_dot2c_f32_bf16_e32 v5, 0x3f80, v2": "f2040a2c",
    "v_cvt_f32_bf16_e32 v5, 0x3c00": "ffb60a7e003c0000",
    "v_cvt_f32_bf16_e32 v5, 0.15915494": "f8b60a7e",
    "v_writelane_b32 v1, s13, m0": "01008ad20df80000",
    "s_load_dword s1, s[2:3] glc": "410003c000000000",
    "v_cvt_pk_f32_bf8 v[2:3], s3 clamp mul:2 src0_sel:WORD_1": "f9ae047e03668500",
    "v_permlane16_swap_b32 v1, v2 fi:0": "010099d102010000",
}


@pytest.mark.parametrize("line", BYTES)
def test_a_statement_is_llvms_bytes(line: str) -> None:
    """What LLVM 22 makes of them on gfx950."""
    assert encode(parse(instruction_set(having("v_cvt_f32_bf16")), line)).hex() == BYTES[line]


@pytest.mark.parametrize("line", [
    "v_cvt_sr_fp8_f32 v1, v2, -v3", "s_set_gpr_idx_on s0, 16", "s_cmpk_le_u32 s2, -1", "s_mov_b64 s[0:1], lit(0.5)",
    "v_writelane_b32 v1, m0, s13",
])
def test_what_llvm_refuses_is_refused(line: str) -> None:
    with pytest.raises(CodeError):
        parse(ISAS[0], line)
