"""Text keeps a whole program, and a mistake in it is an error at its line."""

from __future__ import annotations

import random

import pytest
from equal_programs import assert_same
from random_programs import instruction, program

from tilefw.api import CodeError
from tilefw_spatial import container
from tilefw_spatial.isa import OPS
from tilefw_spatial.machine import load
from tilefw_spatial.program import QueueInst
from tilefw_spatial.text import parse, render
from tilefw_spatial.text.source import TextSpan
from tilefw_spatial.text.statement import read_statement, statement

MACHINE = load()
HEAD = '.machine sdm-1\n.entry "k"\n.grid 1, 1, 1\n.expect_cycles 5\n'
TENSOR = '.tensor in "x" int8 vectors=4 groups=1 segment=4\n.plane MEM.E0 b0:'


@pytest.mark.parametrize("op", sorted(OPS))
def test_every_op_survives_its_text(op: str) -> None:
    rng = random.Random(op)
    for _ in range(20):
        inst = instruction(MACHINE, rng, [op])
        assert read_statement(MACHINE, TextSpan(statement(MACHINE, inst), 0)) == inst


@pytest.mark.parametrize("seed", range(25))
def test_a_program_survives_its_text(seed: int) -> None:
    made = program(MACHINE, random.Random(seed))
    text = render(made)
    assert_same(made, parse(text, "x.s"))
    data = container.write(made)
    assert container.write(parse(render(container.read(data, "x.sdm")), "x.s")) == data


def read(body: str) -> list[QueueInst]:
    (found,) = parse(f"{HEAD}.chip 0\n.queue {body}", "x.s").chips[0].queues.values()
    return list(found)


def test_cycles_become_idle_cycles() -> None:
    insts = read("MEM.E3\n@5 RD b0:64, n=16 -> sE4 // a comment\n REP m=2, d=20\n@100 WR b1:0, sW3\n@70000 NTFY")
    assert [(i.op, i.imm) for i in insts] == [
        ("NOP", 5), ("RD", 0), ("REP", 20), ("NOP", 39), ("WR", 0), ("NOP", 65535), ("NOP", 4364), ("NTFY", 0)
    ]


def test_numbers_may_stand_for_bits() -> None:
    one, minus, half = (read(f"VXM.0\nCST.{text} -> sE0")[0] for text in ("fp32 #1.0", "int8 #-1", "fp16 #0x3c00"))
    assert (one.imm, minus.imm, half.imm) == (0x3F800000, 0xFF, 0x3C00)


@pytest.mark.parametrize(("line", "code", "why", "marked"), [
    ("MEM.E3\nRE b0:64 -> sE4", "TFW0730", "there is no instruction RE", "RE"),
    ("VXM.0\nCMP.less.fp32 sE0, sE4", "TFW0730", "there is no instruction CMP.less", "CMP.less.fp32"),
    ("VXM.0\nADD.fp32 sE2, sE4 -> sE8", "TFW0731", "multiple of 4", "ADD.fp32 sE2, sE4 -> sE8"),
    ("VXM.0\nADD.fp32 sE0, alu16", "TFW0732", "there is no ALU 16", "alu16"),
    ("VXM.0\nADD.fp32 sE0, alu1+2", "TFW0732", "after 0, 4, 8, 12 cycles", "alu1+2"),
    ("VXM.0\nADD.fp32 sE0", "TFW0731", "takes 2 operands, not 1", "ADD.fp32 sE0"),
    ("VXM.0\nADD.fp32 sE0, sE4, sE8", "TFW0731", "takes 2 operands, not 3", "sE8"),
    ("VXM.0\nADD.int32 -sE0, sE4", "TFW0731", "takes no sign", "ADD.int32 -sE0, sE4"),
    ("VXM.0\nFMA.fp32 #1, #2, sE0", "TFW0731", "one immediate", "#2"),
    ("VXM.0\nADD.int8 #200, sE0", "TFW0732", "200 is no int8", "#200"),
    ("VXM.0\nADD sE0, sE4", "TFW0731", "needs an element type", "ADD sE0, sE4"),
    ("MEM.E3\nRD b0:64, sE4", "TFW0731", "takes 1 operands, not 2", "sE4"),
    ("MEM.E3\nRD b0:64", "TFW0731", "needs -> and a stream", "RD b0:64"),
    ("MEM.E3\nRD b0:4096 -> sE4", "TFW0732", "there is no row b0:4096", "b0:4096"),
    ("MEM.E3\nRD b0:4090, n=10 -> sE4", "TFW0732", "leaves its bank", "RD b0:4090, n=10 -> sE4"),
    ("MEM.E3\nRD b0:4, k=10 -> sE4", "TFW0731", "RD has no k", "k=10"),
    ("MEM.E3\nRD b0:4, n=1, n=2 -> sE4", "TFW0733", "n stands twice", "n=2"),
    ("MEM.E3\nRD b0:4 -> sE32", "TFW0732", "there is no stream sE32", "sE32"),
    ("MEM.E3\nNOP 70000", "TFW0732", "from 1 to 65535", "70000"),
    ("MEM.E3\nADD.fp32 sE0, sE4", "TFW0731", "queues of VXM", "ADD.fp32 sE0, sE4"),
    ("MXM.W1.MAC\nMAC.fp16 sW0, acc0:0, depth=1", "TFW0731", "queues of plane 0", "MAC.fp16 sW0, acc0:0, depth=1"),
    ("MXM.W0.MAC\nMAC.fp16 sW0, acc0:0", "TFW0731", "needs depth=", "MAC.fp16 sW0, acc0:0"),
    ("MEM.E3\nREP m=1, d=5", "TFW0731", "nothing before it", "REP m=1, d=5"),
    ("SXM.W0\nPRM.fp16 sE4, map=0 -> sE8", "TFW0731", "there is no map 0", "PRM.fp16 sE4, map=0 -> sE8"),
    ("MEM.E3\n@5 RD b0:0, n=9 -> sE0\n@9 RD b0:0 -> sE0", "TFW0738", "free from 14 on", "@9 RD b0:0 -> sE0"),
    ("MEM.E3\nSYNC\n@9 RD b0:0 -> sE0", "TFW0738", "no cycle is known", "@9 RD b0:0 -> sE0"),
    ("MEM.E44\nNTFY", "TFW0734", "queue MEM.E44 is none", "MEM.E44"),
    ("MEM.E3\n.quue", "TFW0734", "no directive .quue", ".quue"),
    ("MEM.E3\n?", "TFW0733", "an instruction is expected", "?"),
])
def test_a_mistake_is_told_at_its_place(line: str, code: str, why: str, marked: str) -> None:
    with pytest.raises(CodeError, match=why) as caught:
        read(line)
    assert caught.value.code == code
    place = caught.value.place
    assert place is not None and place.file == "x.s"
    assert place.text[place.column - 1 : place.end_column - 1] == marked


@pytest.mark.parametrize(("text", "code", "why"), [
    ("", "TFW0734", "no .machine"),
    (".chip 0", "TFW0734", "begins with .machine"),
    (".machine sdm-9", "TFW0734", "no machine file 'sdm-9'"),
    (".machine sdm-1 " + "0" * 64, "TFW0737", "another machine file"),
    (HEAD, "TFW0734", "no .chip"),
    (HEAD + "RD b0:0 -> sE0", "TFW0734", "needs a .queue"),
    (HEAD + ".plane MEM.E0 b0:0", "TFW0734", "belongs to a .tensor"),
    (HEAD + f"{TENSOR.replace('int8', 'fp32')}0\n.chip 0", "TFW0734", "1 byte planes instead of 4"),
    (HEAD + f"{TENSOR}4094\n.chip 0", "TFW0734", "4 rows from row 4094"),
    (HEAD + '.tensor in "x" int8 vectors=4 groups=1', "TFW0733", "segment= is missing"),
    (HEAD + f"{TENSOR}0\n.transfer parameter=0 base=0 lanes=320 chunk=0 fill=0x100\n.chip 0", "TFW0734", "bits of one int8"),
    (HEAD + ".chip 0\n.map 0: 0+1*319", "TFW0734", "319 numbers instead of 320"),
    (HEAD + ".chip 0\n.map 0: 0+1*999999999", "TFW0734", "more than the 320"),
    (HEAD + ".chip 0\n.map 0: 1+1*320", "TFW0734", "no lane 320"),
])
def test_a_file_that_is_no_program(text: str, code: str, why: str) -> None:
    with pytest.raises(CodeError, match=why) as caught:
        parse(text, "x.s")
    assert caught.value.code == code


@pytest.mark.parametrize("seed", range(4))
def test_damaged_text_is_an_error_or_a_program(seed: int) -> None:
    rng = random.Random(seed)
    text = render(program(MACHINE, rng))
    for _ in range(60):
        hurt = list(text)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(hurt))
            hurt[at : at + rng.randrange(3)] = rng.choice(["", " ", "0", "9" * 30, ",", "\n", '"', "=", ".", "-", "é", "\0", "->"])
        try:
            parse("".join(hurt), "x.s")
        except CodeError as error:
            assert "TFW0730" <= error.code <= "TFW0738" and error.place is not None and error.place.line > 0
