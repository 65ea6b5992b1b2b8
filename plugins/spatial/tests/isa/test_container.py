"""A program's file keeps all of it, and damage of any kind is reported precisely, never by a traceback."""

from __future__ import annotations

import random
import struct
import zlib
from dataclasses import replace

import pytest
from equal_programs import assert_same
from random_programs import program

from tilefw.api import CodeError
from tilefw_spatial.container import read, write
from tilefw_spatial.machine import load

MACHINE = load()


@pytest.mark.parametrize("seed", range(25))
def test_a_program_survives_its_file(seed: int) -> None:
    made = program(MACHINE, random.Random(seed))
    data = write(made)
    assert_same(made, read(data, "x.sdm"))
    assert write(read(data, "x.sdm")) == data


def resealed(data: bytes) -> bytes:
    """The file with the checksums that its bytes have, so that damage gets past them."""
    out, at = bytearray(data), 40
    while at + 12 <= len(out):
        length = struct.unpack_from("<I", out, at + 4)[0]
        struct.pack_into("<I", out, at + 8, zlib.crc32(bytes(out[at + 12 : at + 12 + length])))
        at += 12 + length
    return bytes(out)


def damaged(data: bytes, rng: random.Random) -> bytes:
    out = bytearray(data)
    match rng.randrange(4):
        case 0:
            del out[rng.randrange(len(out)) :]
        case 1:
            out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
        case 2:
            at = rng.randrange(len(out))
            out[at : at + rng.randrange(9)] = rng.randbytes(rng.randrange(9))
        case _:
            out += rng.randbytes(rng.randint(1, 40))
    return bytes(out)


def attempt(data: bytes) -> bool:
    """Whether a file is read; what is not raises a CodeError of the container's codes, with its name."""
    try:
        read(data, "x.sdm")
    except CodeError as error:
        assert error.code in ("TFW0735", "TFW0736", "TFW0737") and error.message
        assert error.place is not None and error.place.file == "x.sdm"
        return False
    return True


@pytest.mark.parametrize("seed", range(4))
def test_damage_is_an_error(seed: int) -> None:
    rng = random.Random(seed)
    data = write(program(MACHINE, rng))
    for _ in range(150):
        hurt = damaged(data, rng)
        assert hurt == data or not attempt(hurt)


@pytest.mark.parametrize("seed", range(4))
def test_damage_below_right_checksums_is_an_error_or_a_program(seed: int) -> None:
    rng = random.Random(seed)
    data = write(program(MACHINE, rng))
    refused = sum(not attempt(resealed(damaged(data, rng))) for _ in range(150))
    assert refused > 40


def test_each_way_to_be_cut_is_told() -> None:
    data = write(program(MACHINE, random.Random(1)))
    for length in range(0, len(data), max(1, len(data) // 200)):
        with pytest.raises(CodeError) as caught:
            read(data[:length], "x.sdm")
        assert caught.value.code == "TFW0736"


def test_another_machine_is_told_by_both_hashes() -> None:
    made = program(MACHINE, random.Random(2))
    data = bytearray(write(made))
    data[8:40] = bytes(32)
    with pytest.raises(CodeError, match="another machine file") as caught:
        read(bytes(data), "x.sdm")
    assert caught.value.code == "TFW0737"
    assert MACHINE.hash[:16] in str(caught.value.note)
    with pytest.raises(CodeError) as caught:
        write(replace(made, machine_hash="00" * 32))
    assert caught.value.code == "TFW0737"


def test_a_reserved_bit_is_told_with_queue_and_word() -> None:
    made = replace(program(MACHINE, random.Random(3)), tensors=())
    data = bytearray(write(made))
    data[-1] |= 0x80  # the last word's highest bit
    with pytest.raises(CodeError, match=r"chip \d, .*, word \d+: reserved bits are set: 0x20") as caught:
        read(resealed(bytes(data)), "x.sdm")
    assert caught.value.code == "TFW0735"
