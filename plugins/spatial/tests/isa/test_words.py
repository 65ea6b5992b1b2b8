"""Words keep every field, and only instructions of the table have words."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from random_programs import instruction

from tilefw_spatial.container.word import LAYOUT, WordError, pack, unpack
from tilefw_spatial.isa import CODES, OPS, PUT_FLAG, ROWS
from tilefw_spatial.machine import load
from tilefw_spatial.program import QueueInst

MACHINE = load()


def test_the_fields_fill_a_word() -> None:
    assert sum(bits.width for bits in LAYOUT) == 128
    assert LAYOUT[-1].name == "reserved"


def test_opcodes_do_not_overlap() -> None:
    assert len(CODES) == len(OPS) == sum(len(row.variants) for row in ROWS.values())
    assert max(CODES) < 256 and 0 not in CODES


@pytest.mark.parametrize("op", sorted(OPS))
def test_every_op_survives_its_word(op: str) -> None:
    rng = random.Random(op)
    for _ in range(30):
        inst = instruction(MACHINE, rng, [op])
        assert unpack(MACHINE, pack(MACHINE, inst)) == inst


def test_a_random_word_is_refused_or_is_the_word_of_what_it_gives() -> None:
    rng = random.Random(7)
    codes, taken = sorted(CODES), 0
    for _ in range(20_000):
        word = bytearray(rng.randbytes(16))
        word[0] = rng.choice(codes)
        density = rng.random() ** 3  # most fields of most instructions are zero
        for at in range(1, 16):
            word[at] &= 0xFF if rng.random() < density else 0
        word[15] &= 0x03
        try:
            inst = unpack(MACHINE, bytes(word))
        except WordError as error:
            assert str(error)
            continue
        taken += 1
        assert pack(MACHINE, inst) == word
    assert taken > 100


@pytest.mark.parametrize("seed", range(5))
def test_one_flipped_bit_gives_another_instruction_or_none(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(100):
        inst = instruction(MACHINE, rng)
        word = bytearray(pack(MACHINE, inst))
        bit = rng.randrange(128)
        word[bit // 8] ^= 1 << bit % 8
        try:
            assert unpack(MACHINE, bytes(word)) != inst
        except WordError:
            continue


def test_reserved_bits_are_refused() -> None:
    word = int.from_bytes(pack(MACHINE, QueueInst("NOP", imm=3)), "little")
    for bit in range(122, 128):
        with pytest.raises(WordError, match="reserved bits are set"):
            unpack(MACHINE, (word | 1 << bit).to_bytes(16, "little"))


@pytest.mark.parametrize(("inst", "why"), [
    (QueueInst("ADX"), "no instruction ADX"),
    (QueueInst("RD", dtype="fp16"), "no element type"),
    (QueueInst("ADD", dtype="fp16", map=0b110000), "not there for fp16"),
    (QueueInst("MUL.hi", dtype="fp32", map=0b110000), "not there for fp32"),
    (QueueInst("RD", burst=4097), "a burst is from 1 to 4096"),
    (QueueInst("NOP", imm=0), "from 1 to 65535"),
    (QueueInst("NOP", imm=1, burst=2), "takes no burst"),
    (QueueInst("RD", address=4090, burst=10, step=1), "leaves its bank"),
    (QueueInst("RD", address=8192), "no row 8192"),
    (QueueInst("RD", a=4), "does not use a"),
    (QueueInst("DRN", dtype="fp32", dst=2), "4 planes begin at a stream that is a multiple of 4"),
    (QueueInst("MAC", dtype="fp16", imm=161), "more than the 160 rows"),
    (QueueInst("MAC", dtype="int8", imm=320, flags=2), "there is no half"),
    (QueueInst("LW", dtype="fp8e5", burst=11), "brings more rows"),
    (QueueInst("TRED.add", dtype="fp32", burst=10, step=4, map=0b111100), "no multiple of every=4"),
    (QueueInst("ADD", dtype="fp32", map=0b110000, dst=4), "does not use dst"),
    (QueueInst("ADD", dtype="fp32", map=0b110000, imm=4), "an immediate that no operand takes"),
    (QueueInst("ADD", dtype="int32", map=0b1110000), "takes no sign"),
    (QueueInst("ADD", dtype="fp32", map=0), "has no operand c"),
    (QueueInst("CST", dtype="fp32", map=0b111100), "cannot be stream"),
    (QueueInst("SELM", dtype="fp32", map=0b000011), "cannot be the number of the lane"),
    (QueueInst("CMP.lt", dtype="fp32", map=0b110000, flags=PUT_FLAG, dst=64), "no stream 64"),
    (QueueInst("CFG.vl", imm=21), "takes 1 to 20"),
    (QueueInst("RD", flags=1), "flags 0x1 mean nothing"),
])
def test_what_is_no_instruction_is_refused_by_name(inst: QueueInst, why: str) -> None:
    with pytest.raises(WordError, match=why):
        pack(MACHINE, inst)


def test_a_comparison_puts_one_plane() -> None:
    inst = QueueInst("CMP.lt", dtype="fp32", map=0b110000, flags=PUT_FLAG, dst=33)
    assert unpack(MACHINE, pack(MACHINE, inst)) == inst
    with pytest.raises(WordError):
        pack(MACHINE, replace(inst, op="ADD"))
