"""Machine instructions with physical registers become the instruction that LLVM's assembler makes of the same operands."""

from __future__ import annotations

import pytest
from served import ISAS, instruction, parse

from tilefw.api.errors import InternalError
from tilefw.api.machine import Inst, Reg, Slice
from tilefw_amd.isa.encoding import encode
from tilefw_amd.isa.text import printer
from tilefw_amd.machine.instruction_text import InstructionText

FILES = {cls: Reg(-1, cls, 256, 1, physical=True) for cls in "vasm"}


def r(text: str) -> Slice:
    """`v4`, `s4:2` (two registers from s4)."""
    first, _, count = text[1:].partition(":")
    return FILES[text[0]].slice(int(first), int(count or 1))


CASES = [
    (Inst("v_add_f32", [r("v1")], [r("v2"), r("v3")]), "v_add_f32 v1, v2, v3"),
    (Inst("v_add_f32", [r("v1")], [r("v2"), r("s3")]), "v_add_f32_e64 v1, v2, s3"),
    (Inst("v_add_f32", [r("v1")], [0x40400000, r("v3")]), "v_add_f32 v1, 0x40400000, v3"),
    (Inst("v_add_f32", [r("v1")], [0x3F800000, r("v3")]), "v_add_f32 v1, 1.0, v3"),
    (Inst("v_add_f32", [r("v1")], [r("v2"), r("v3"), "neg:[0,1]"]), "v_add_f32 v1, v2, -v3"),
    (Inst("v_fma_f32", [r("v1")], [r("v2"), r("v3"), r("v4"), "neg:[1,0,1]", "abs:[1,0,0]"]), "v_fma_f32 v1, -|v2|, v3, -v4"),
    (Inst("v_fmac_f32", [r("v1")], [r("v2"), r("v3"), r("v1")], tied=((0, 2),)), "v_fmac_f32 v1, v2, v3"),
    (Inst("v_mul_f64", [r("v2:2")], [r("v4:2"), 0x3FF0000000000000]), "v_mul_f64 v[2:3], v[4:5], 1.0"),
    (Inst("v_rcp_f64", [r("v2:2")], [0x4008000000000000]), "v_rcp_f64 v[2:3], 0x40080000"),
    (Inst("v_rcp_f64", [r("v2:2")], [1 << 34]), "v_rcp_f64 v[2:3], lit(4)"),
    (Inst("s_mov_b64", [r("s2:2")], [-1]), "s_mov_b64 s[2:3], -1"),
    (Inst("s_mov_b64", [r("s2:2")], [(1 << 64) - 1]), "s_mov_b64 s[2:3], -1"),
    (Inst("v_mov_b32", [r("a1")], [r("v2")]), None),
    (Inst("v_accvgpr_write_b32", [r("a1")], [r("v2")]), "v_accvgpr_write_b32 a1, v2"),
    (Inst("v_pk_fma_f16", [r("v1")], [r("v2"), r("v3"), r("v4"), "op_sel_hi:[1,0,1]", "neg_lo:[1,0,0]"]),
     "v_pk_fma_f16 v1, v2, v3, v4 op_sel_hi:[1,0,1] neg_lo:[1,0,0]"),
    (Inst("v_mfma_f32_32x32x8_f16", [r("v0:16")], [r("v16:2"), r("v18:2"), r("v0:16")], tied=((0, 2),)),
     "v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[18:19], v[0:15]"),
    (Inst("v_mfma_f32_32x32x8_f16", [r("a0:16")], [r("v16:2"), r("v18:2"), 0]),
     "v_mfma_f32_32x32x8_f16 a[0:15], v[16:17], v[18:19], 0"),
    (Inst("v_cmp_lt_i32", [r("m106:2")], [r("v1"), r("v2")]), "v_cmp_lt_i32 vcc, v1, v2"),
    (Inst("v_cmp_lt_i32", [r("m4:2")], [r("v1"), r("v2")]), "v_cmp_lt_i32 s[4:5], v1, v2"),
    (Inst("v_cndmask_b32", [r("v1")], [r("v2"), r("v3"), "vcc"]), "v_cndmask_b32 v1, v2, v3, vcc"),
    (Inst("v_cndmask_b32", [r("v1")], [r("v2"), r("v3"), r("m4:2")]), "v_cndmask_b32 v1, v2, v3, s[4:5]"),
    (Inst("v_add_co_u32", [r("v1"), r("m106:2")], [r("v2"), r("v3")]), "v_add_co_u32 v1, vcc, v2, v3"),
    (Inst("buffer_load_dwordx4", [r("v4:4")], [r("v1"), r("s8:4"), r("s3"), "offen", "offset:16"]),
     "buffer_load_dwordx4 v[4:7], v1, s[8:11], s3 offen offset:16"),
    (Inst("buffer_store_dword", [], [r("v4"), "off", r("s8:4"), 0]), "buffer_store_dword v4, off, s[8:11], 0"),
    (Inst("global_load_dword", [r("v1")], [r("v2"), r("s4:2"), "offset:-8"]), "global_load_dword v1, v2, s[4:5] offset:-8"),
    (Inst("global_load_dword", [r("v1")], [r("v2:2"), "off"]), "global_load_dword v1, v[2:3], off"),
    (Inst("ds_read_b128", [r("v4:4")], [r("v1"), "offset:32"]), "ds_read_b128 v[4:7], v1 offset:32"),
    (Inst("ds_write2st64_b64", [], [r("v1"), r("v2:2"), r("v4:2"), "offset1:8"]), "ds_write2st64_b64 v1, v[2:3], v[4:5] offset1:8"),
    (Inst("s_load_dwordx4", [r("s4:4")], [r("s0:2"), 16]), "s_load_dwordx4 s[4:7], s[0:1], 0x10"),
    (Inst("v_mov_b32", [r("v1")], [r("v2"), "row_shr:1", "row_mask:0xf", "bank_mask:0xf"]),
     "v_mov_b32 v1, v2 row_shr:1 row_mask:0xf bank_mask:0xf"),
    (Inst("v_mov_b32", [r("v1")], [r("v2"), r("v1"), "quad_perm:[1,0,3,2]", "row_mask:0x5"], tied=((0, 1),)),
     "v_mov_b32 v1, v2 quad_perm:[1,0,3,2] row_mask:0x5"),
    (Inst("s_waitcnt", [], ["vmcnt(3)", "lgkmcnt(0)"]), "s_waitcnt vmcnt(3) lgkmcnt(0)"),
    (Inst("s_cbranch_scc1", targets=("loop",)), "s_cbranch_scc1 loop"),
    (Inst("s_endpgm"), "s_endpgm"),
    (Inst("v_readfirstlane_b32", [r("s1")], [r("v1")]), "v_readfirstlane_b32 s1, v1"),
    (Inst("v_lshl_add_u64", [r("v2:2")], [r("v4:2"), 0, r("s6:2")]), "v_lshl_add_u64 v[2:3], v[4:5], 0, s[6:7]"),
    (Inst("v_mul_f64", [r("v2:2")], [r("v4:2"), 0x4008000000000000]), None),  # VOP3 takes no literal on gfx9
    (Inst("s_and_b64", [r("s2:2")], [r("s4:2"), 0x123456789]), None),  # 32 bits do not say it
    (Inst("v_add_f32", [r("v1")], [r("s2"), r("s3")]), None),  # one scalar a vector instruction
    (Inst("v_no_such", [r("v1")], [r("s2")]), None),
]


@pytest.mark.parametrize(("inst", "written"), CASES, ids=[str(inst) for inst, _ in CASES])
def test_instruction(inst: Inst, written: str | None) -> None:
    if written is None:
        with pytest.raises(InternalError):
            instruction(inst)
        return
    found, expected = instruction(inst), parse(written)
    assert printer.text(found) == printer.text(expected)
    assert encode.encode(found) == encode.encode(expected)


@pytest.mark.parametrize("order", [1, -1], ids=["in order", "reversed"])
def test_a_text_that_is_known_is_that_of_the_instruction(order: int) -> None:
    writer = InstructionText(ISAS[0])
    for inst, written in 2 * CASES[::order]:
        if inst.targets:
            continue
        if written is None:
            with pytest.raises(InternalError):
                writer.of(inst)
        else:
            assert writer.of(inst) == printer.text(instruction(inst))


def test_a_wait_under_a_predicate_has_no_text_though_that_of_the_wait_is_known() -> None:
    writer, waits = InstructionText(ISAS[0]), ("vmcnt(0)",)
    assert writer.of(Inst("s_waitcnt", (), waits)) == "s_waitcnt vmcnt(0)"
    with pytest.raises(InternalError):
        writer.of(Inst("s_waitcnt", (), waits, predicate=FILES["s"].slice(0, 2)))
