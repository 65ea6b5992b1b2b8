"""Pseudo-instructions, copies and lane masks become instructions of the chip."""

from __future__ import annotations

import pytest
from served import ISAS

from tilefw.api.machine import Inst, parse_function
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.isa.text import printer
from tilefw_amd.machine import pseudo
from tilefw_amd.machine.expand import expand_pseudos
from tilefw_amd.machine.machine_inst import instruction
from tilefw_amd.machine.traits import instructions

HEAD = "func @f target \"amd-cdna3\"\n  file a: 256\n  file s: 128\n  file v: 256\n"


on_each_chip = pytest.mark.parametrize("isa", ISAS, ids=str)


def finished(*lines: str, isa: InstructionSet = ISAS[0]) -> list[str]:
    function = parse_function(HEAD + "entry:\n" + "".join(f"  {line}\n" for line in lines), "f")
    expand_pseudos(function)
    return [_shown(isa, inst) for block in function.blocks for inst in block.insts]


def _shown(isa: InstructionSet, inst: Inst) -> str:
    return printer.text(instruction(isa, inst)).replace("_e32", "").replace("_e64", "")


@pytest.mark.parametrize(("line", "expected"), [
    ("$s[4:2] = compare.s_cmp_lt_i32 $s[0:1], 7", ["s_cmp_lt_i32 s0, 7", "s_cselect_b64 s[4:5], -1, 0"]),
    ("$s[4:1] = select.s_cmp_eq_u64 $s[0:2], 7, $s[2:1], 3", ["s_cmp_eq_u64 s[0:1], 7", "s_cselect_b32 s4, s2, 3"]),
    ("$s[4:2] = s_select_b64 $s[0:2], $s[2:2], 0", ["s_cmp_lg_u64 s[0:1], 0", "s_cselect_b64 s[4:5], s[2:3], 0"]),
    ("$s[4:2] = s_add_u64 $s[0:2], 4294967297", ["s_add_u32 s4, s0, 1", "s_addc_u32 s5, s1, 1"]),
    ("$s[4:2] = s_sub_u64 $s[0:2], $s[2:2]", ["s_sub_u32 s4, s0, s2", "s_subb_u32 s5, s1, s3"]),
    ("$v[2:4] = move.v $v[8:4]", ["v_mov_b64 v[2:3], v[8:9]", "v_mov_b64 v[4:5], v[10:11]"]),
    ("$v[3:2] = move.v $v[8:2]", ["v_mov_b32 v3, v8", "v_mov_b32 v4, v9"]),
    ("$v[4:4] = move.v $v[2:4]", ["v_mov_b64 v[6:7], v[4:5]", "v_mov_b64 v[4:5], v[2:3]"]),
    ("$v[2:4] = move.v $v[4:4]", ["v_mov_b64 v[2:3], v[4:5]", "v_mov_b64 v[4:5], v[6:7]"]),
    ("$a[0:2] = move.a $v[8:2]", ["v_accvgpr_write_b32 a0, v8", "v_accvgpr_write_b32 a1, v9"]),
    ("$v[0:1] = move.v $a[8:1]", ["v_accvgpr_read_b32 v0, a8"]),
    ("$s[3:1] = move.s $s[8:1]", ["s_mov_b32 s3, s8"]),
    ("$v[2:2] = v_mov_b64 4294967301", ["v_mov_b32 v2, 5", "v_mov_b32 v3, 1"]),
    ("$s[2:2] = s_mov_b64 7", ["s_mov_b64 s[2:3], 7"]),
])
@on_each_chip
def test_one_instruction(line: str, expected: list[str], isa: InstructionSet) -> None:
    assert finished(line, isa=isa) == expected


STORE = "global_store_dword $v[2:2], $v[0:1], \"off\""


def test_a_run_under_one_mask_sets_exec_once() -> None:
    found = finished(f"@$s[4:2] {STORE}", "$s[8:1] = s_add_u32 $s[8:1], 1", f"@$s[4:2] {STORE}", "s_endpgm")
    assert [line.split()[0] for line in found] == ["s_mov_b64", "global_store_dword", "s_add_u32", "global_store_dword", "s_endpgm"]
    assert found[0] == "s_mov_b64 exec, s[4:5]"


def test_all_lanes_work_behind_a_mask() -> None:
    found = finished(f"@$s[4:2] {STORE}", "$v[0:1] = v_add_u32 1, $v[0:1]", "s_endpgm")
    assert found[0] == "s_mov_b64 exec, s[4:5]" and found[2] == "s_mov_b64 exec, -1"


def test_a_mask_that_was_written_anew_goes_to_exec_anew() -> None:
    found = finished(f"@$s[4:2] {STORE}", "$s[4:2] = s_not_b64 $s[4:2]", f"@$s[4:2] {STORE}", "s_endpgm")
    assert [line for line in found if "exec" in line][:2] == ["s_mov_b64 exec, s[4:5]", "s_mov_b64 exec, s[4:5]"]


def test_the_block_ends_with_all_lanes() -> None:
    assert finished(f"@!$s[4:2] {STORE}") == [
        "s_not_b64 exec, s[4:5]", "global_store_dword v[2:3], v0, off", "s_mov_b64 exec, -1"
    ]


@on_each_chip
def test_every_scalar_comparison_has_its_pseudo_instructions(isa: InstructionSet) -> None:
    table = instructions(isa)
    comparisons = [name for name in isa.rows if name.startswith("s_cmp_")]
    assert len(comparisons) >= 14
    for comparison in comparisons:
        assert [step.opcode for step in pseudo.steps(f"compare.{comparison}")] == [comparison, "s_cselect_b64"]
        assert table.traits(f"branch.{comparison}").effects and not table.traits(f"compare.{comparison}").effects
    assert not pseudo.steps("compare.s_add_u32x") and not pseudo.steps("v_add_f32")
