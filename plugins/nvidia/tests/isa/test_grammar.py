"""The grammar reads what compilers print, and says where what it cannot read stands."""

from __future__ import annotations

import pytest
from chips_here import EVERYTHING, OLDEST

from tilefw.api import CodeError
from tilefw_nvidia import isa
from tilefw_nvidia.isa.rows import forms
from tilefw_nvidia.isa.text.syntax import AddressOperand, Float, Integer, Name, PairOperand, SinkOperand, VectorOperand

SET = isa.instruction_set(OLDEST)
HEAD = ".version 7.0\n.target sm_80\n.address_size 64\n"


def module(body: str, head: str = HEAD) -> isa.PtxModule:
    return isa.parse(
        f"{head}.visible .entry k(.param .u64 p)\n{{\n.reg .pred %p<4>;\n.reg .b16 %h<8>;\n"
        f".reg .b32 %r<8>;\n.reg .b64 %d<8>;\n{body}\n}}\n",
        "k.ptx",
    )


def operands(text: str) -> tuple:
    return module(f"op {text};").entries["k"].statements[0].operands


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%r1, -3", (Name("%r1"), Integer(-3))),
        ("0x10, 0b101, 017, 7U", (Integer(16), Integer(5), Integer(15), Integer(7))),
        ("0f3F800000", (Float(0x3F800000, 32),)),
        ("0d3FF0000000000000", (Float(0x3FF0000000000000, 64),)),
        ("1.5", (Float(0x3FF8000000000000, 64, decimal=True),)),
        ("-0f3F800000", (Float(0xBF800000, 32),)),
        ("{ %r1 }, [ %d1 + 0 ]", (VectorOperand((Name("%r1"),)), AddressOperand("%d1", 0))),
        ("{%r1, _, %r2,%r3}", (VectorOperand((Name("%r1"), SinkOperand(), Name("%r2"), Name("%r3"))),)),
        ("[sm+-8], [ %d1 - 4 ], [64]", (AddressOperand("sm", -8), AddressOperand("%d1", -4), AddressOperand(None, 64))),
        ("%r1|%p2, !%p1", (PairOperand(Name("%r1"), Name("%p2")), Name("%p1", negated=True))),
        ("%tid.x, sm + 16, _", (Name("%tid.x"), Name("sm", offset=16), SinkOperand())),
    ],
)
def test_operands(text: str, expected: tuple) -> None:
    assert operands(text) == expected


def test_an_instruction_may_span_lines_and_hold_comments() -> None:
    statements = module("mad.lo.s32 %r1, // a ; here\n  %r2, /* and\n one */ %r3,\n %r4; ret;").entries["k"].statements
    assert [s.opcode for s in statements] == ["mad.lo.s32", "ret"]
    assert len(statements[0].operands) == 4


def test_scopes_have_their_own_registers_and_labels() -> None:
    """What Triton's inline assembly opens: the same names twice, each in its own braces."""
    block = "{\n.reg .pred %q;\nagain: setp.eq.s32 %q, %r1, %r2;\n@%q bra.uni again;\n}\n"
    program = isa.program(module(block + block + "ret;"), "k", SET)
    assert [i.flow.target for i in program.instructions if i.mnemonic == "bra.uni"] == [0, 2]
    registers = {i.destinations[0].index for i in program.instructions if i.destinations}
    assert len(registers) == 2


def test_an_inner_name_is_not_seen_outside() -> None:
    with pytest.raises(CodeError, match="%q is not declared") as caught:
        isa.program(module("{ .reg .b32 %q; }\nmov.b32 %q, 1;"), "k", SET)
    assert caught.value.code == "TFW0714"


def test_parameters_get_their_places_in_the_argument_block() -> None:
    text = (
        HEAD
        + ".entry k(.param .u32 a, .param .u64 .ptr .global .align 16 b, .param .align 64 .b8 c[128], .param .u16 d)"
        + " .reqntid 32, 2 { ret; }"
    )
    entry = isa.parse(text, "k.ptx").entries["k"]
    assert [(p.offset, p.size, p.alignment, p.pointer) for p in entry.parameters] == [
        (0, 4, 4, False),
        (8, 8, 8, True),
        (64, 128, 64, False),
        (192, 2, 2, False),
    ]
    assert entry.directives == {"reqntid": (32, 2)}
    assert isa.program(isa.parse(text, "k.ptx"), "k", SET).required_workgroup == (32, 2, 1)


def test_variables_of_every_space() -> None:
    head = HEAD + (
        ".extern .shared .align 16 .b8 dynamic[];\n.shared .align 4 .b32 fixed[8];\n"
        ".const .f32 table[4] = {1.0, 0f40000000, -1.5};\n.global .b8 bytes[] = {1, 2, 255};\n"
    )
    parsed = module(".local .align 8 .b8 depot[16];\nmov.u64 %d1, depot;\nld.const.b32 %r1, [table+4];\nret;", head)
    assert {v.name: v.size for v in parsed.variables.values()} == {"dynamic": 0, "fixed": 32, "table": 16, "bytes": 3}
    assert parsed.variables["table"].data == bytes.fromhex("0000803f000000400000c0bf00000000")
    assert parsed.variables["bytes"].data == b"\x01\x02\xff"
    assert parsed.shared_bytes(parsed.entries["k"]) == 32
    assert [v.name for v in isa.program(parsed, "k", SET).variables][-1] == "depot"


def test_loc_gives_the_users_line_through_inlined_calls() -> None:
    text = (
        HEAD + ".visible .entry k()\n{\n.reg .b32 %r<4>;\n.loc 1 20 5\nmov.b32 %r1, 1;\n"
        ".loc 2 7 3, function_name $L__info_string0, inlined_at 1 20 5\nmov.b32 %r2, 2;\nret;\n}\n"
        '.file 1 "user.py"\n.file 2 "/a//b.py"\n.section .debug_str\n{\n$L__info_string0:\n.b8 115\n.b8 117\n.b8 109\n.b8 0\n}\n'
    )
    program = isa.program(isa.parse(text, "k.ptx"), "k", SET)
    first, second = (i.source for i in program.instructions[:2])
    assert (first.file, first.line, first.column) == ("user.py", 20, 5)
    assert (second.file, second.line, second.function) == ("/a//b.py", 7, "sum")
    assert second.caller == first


def test_branch_tables() -> None:
    program = isa.program(module("ts: .branchtargets a, b;\nbrx.idx %r1, ts;\na: ret;\nb: ret;"), "k", SET)
    assert program.instructions[0].flow.targets == (1, 2)


@pytest.mark.parametrize(
    ("statement", "code", "message", "column"),
    [
        ("ad.s32 %r1, %r2, %r3;", "TFW0711", "'ad' is not a PTX instruction", 1),
        ("add.s33 %r1, %r2, %r3;", "TFW0711", "add has no modifier .s33", 4),
        ("@%p1 add.s33 %r1, %r2, %r3;", "TFW0711", "add has no modifier .s33", 9),
        ("add.rn.s32 %r1, %r2, %r3;", "TFW0711", "is not a form of add", 1),
        ("tcgen05.wait::ld.sync.aligned;", "TFW0712", "tcgen05 is a PTX instruction that is not served yet", 1),
        ("add.s32 %r1, %r2;", "TFW0713", "an operand is missing", 1),
        ("add.s32 %r1, %r2, %r3, %r4;", "TFW0713", "1 operand too many", 1),
        ("add.s32 %r1, %d2, %r3;", "TFW0713", "%d2 is .b64; a must be .s32", 1),
        ("add.f32 %r1, %r2, 1;", "TFW0713", "b is .f32: a float constant", 1),
        ("add.s32 %r1, %tid.x, 1;", "TFW0713", "special registers are read by mov and cvt", 1),
        ("add.s32 %r1, %r9, %r3;", "TFW0714", "%r9 is not declared", 1),
        ("bra nowhere;", "TFW0714", "nowhere is not a label", 1),
        ("@%r1 ret;", "TFW0713", "%r1 is .b32; a guard is a predicate", 1),
        ("ld.shared.b32 %r1, [p];", "TFW0713", "p lies in .param, the access is to .shared", 1),
        ("cp.async.cg.shared.global [%r1], [%d1], 8;", "TFW0713", "the size must be 16, not 8", 1),
        ("add.bf16 %h1, %h2, %h3;", "TFW0715", "needs sm_90", 1),
        ("add.s32 %r1, %r2, 3..4;", "TFW0710", "'3..4' is not an operand", 19),
        ("mov.b32 %r1, 0f3F80;", "TFW0710", "'0f3F80' is not an operand", 14),
    ],
)
def test_mistakes_have_place_and_code(statement: str, code: str, message: str, column: int) -> None:
    with pytest.raises(CodeError) as caught:
        isa.program(module(statement), "k", SET)
    error = caught.value
    assert error.code == code
    assert message in error.message
    assert error.place is not None
    assert (error.place.file, error.place.line, error.place.column) == ("k.ptx", 10, column)
    assert error.place.text == statement


def test_a_missing_semicolon_is_reported_where_it_is_missing() -> None:
    with pytest.raises(CodeError, match="expected ';'") as caught:
        module("mov.b32 %r1, 1\nadd.s32 %r1, %r1, %r1;")
    assert caught.value.place is not None
    assert caught.value.place.line == 10


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected '.version'"),
        (".target sm_80", "expected '.version'"),
        (".version x\n.target sm_80", "a version is two numbers"),
        (".version 7.0\n.target volta", "'volta' is not a target"),
        (HEAD + ".visible .entry k(", "expected '.param'"),
        (HEAD + ".visible .entry k() {", "a '}' is missing"),
        (HEAD + ".entry k() { .reg .b32 %r<2>; .reg .b32 %r<3>; }", "declared twice"),
        (HEAD + ".entry k() { .reg .b31 %r; }", "'.b31' is not a type"),
        (HEAD + ".entry k() { } .entry k() { }", "defined twice"),
        (HEAD + ".entry k() { a: a: ret; }", "set twice"),
        (HEAD + ".func f() { ret; } .func f() { ret; }", "function f is defined twice"),
        (HEAD + ".func f(.reg .b32 a) { ret; }", "parameters in registers are not served"),
        (HEAD + ".global .b32 x[99999999999];", "must lie in"),
        (HEAD + ".entry k() " + "{" * 500, "nested scopes"),
        (HEAD + "\x00", "expected a directive"),
    ],
)
def test_broken_modules_are_refused(text: str, message: str) -> None:
    with pytest.raises(CodeError) as caught:
        isa.parse(text, "k.ptx")
    assert message in caught.value.message
    assert caught.value.code in ("TFW0710", "TFW0712", "TFW0714")


def test_unknown_words_suggest_the_nearest() -> None:
    assert SET.opcode("addd.s32").problem
    with pytest.raises(isa.OpcodeError) as caught:
        SET.lookup("setp.ltt.s32")
    assert caught.value.help == "the nearest is .lt"


def test_modifiers_in_any_order_are_one_opcode() -> None:
    first, second = (SET.lookup(o)[0] for o in ("atom.global.gpu.acq_rel.add.u32", "atom.relaxed.sys.shared.add.u32"))
    assert first.form is second.form
    assert SET.lookup("atom.add.acq_rel.gpu.global.u32")[0].modifiers == first.modifiers


def test_what_the_emitter_asks() -> None:
    assert SET.opcode("ld.global.v4.b32") == isa.Spec("ld.global.v4.b32", True, (1, 0), 10, "memory")
    assert SET.opcode("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32").version == (7, 0)
    assert isa.instruction_set(EVERYTHING).opcode("cvt.rn.satfinite.e4m3x2.f32").since == 89
    assert not SET.opcode("ld.global.v3.b32").exists


def test_no_form_stands_twice() -> None:
    written = [(form.pattern, form.modifiers) for form in forms()]
    assert not [pattern for pattern, modifiers in written if written.count((pattern, modifiers)) > 1]
