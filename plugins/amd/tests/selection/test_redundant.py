"""What is left out once registers are physical changes nothing, and nothing else is left out."""

from __future__ import annotations

from selection.test_finish import HEAD
from tilefw.api.machine import parse_function
from tilefw_amd.machine.redundant import remove_redundant

AND, TEST, END = "$s[4:2] = s_and_b64 $s[0:2], $s[2:2]", "s_cmp_lg_u64 $s[4:2], 0", "s_endpgm"
SET = "$s[7:1] = s_mov_b32 159744"


def opcodes(*lines: str) -> list[str]:
    function = parse_function(HEAD + "entry:\n" + "".join(line if line.endswith(":\n") else f"  {line}\n" for line in lines), "f")
    remove_redundant(function)
    return [inst.opcode for block in function.blocks for inst in block.insts]


def test_scc_says_whether_a_conjunction_is_zero() -> None:
    assert opcodes(AND, "$v[0:1] = v_mov_b32 0", TEST, END) == ["s_and_b64", "v_mov_b32", "s_endpgm"]


def test_a_sum_between_them_has_its_own_scc() -> None:
    assert "s_cmp_lg_u64" in opcodes(AND, "$s[6:1] = s_add_u32 $s[6:1], 1", TEST, END)


def test_another_register_is_tested() -> None:
    assert "s_cmp_lg_u64" in opcodes(AND, "s_cmp_lg_u64 $s[2:2], 0", END)
    assert "s_cmp_lg_u64" in opcodes(AND, "$s[5:1] = s_mov_b32 0", TEST, END)


def test_a_constant_that_stands_there() -> None:
    assert opcodes(SET, "$s[4:2] = s_mov_b64 $s[0:2]", SET, END) == ["s_mov_b32", "s_mov_b64", "s_endpgm"]
    assert opcodes("$s[6:2] = s_mov_b64 -1", "$s[7:1] = s_mov_b32 4294967295", END) == ["s_mov_b64", "s_endpgm"]


def test_a_constant_whose_register_was_written() -> None:
    assert opcodes(SET, "$s[6:2] = s_mov_b64 $s[0:2]", SET, END) == ["s_mov_b32", "s_mov_b64", "s_mov_b32", "s_endpgm"]


def test_a_jump_to_what_follows() -> None:
    assert opcodes("s_branch {targets=next}", "next:\n", END) == ["s_endpgm"]
    assert opcodes("s_branch {targets=next}", "other:\n", "s_nop 0", "next:\n", END) == ["s_branch", "s_nop", "s_endpgm"]
