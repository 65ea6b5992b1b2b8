"""Registers: each name is read back as the register, tuples are aligned as the chip wants them, numbers do not collide."""

from __future__ import annotations

import pytest

from tilefw_amd.isa.model import RegisterTuple
from tilefw_amd.isa.registers import COUNT, EXEC_MASK, SCC, misaligned, missing, name, named, number, register

R = RegisterTuple
SINGLE = [R("v", 0), R("v", 255), R("a", 7), R("s", 101), R("s", 106), R("s", 124)]
TUPLES = [
    R("v", 2, 2), R("a", 252, 4), R("s", 100, 2), R("s", 96, 4), R("s", 106, 2), R("s", 126, 2), R("s", 108, 8), R("s", 102, 2),
]


@pytest.mark.parametrize("found", SINGLE + TUPLES, ids=name)
def test_a_name_is_read_back_as_its_register(found: RegisterTuple) -> None:
    assert named(name(found)) == found
    assert missing(found) == misaligned(found) == ""


@pytest.mark.parametrize("text", ["v[1:2]", "s[1:2]", "s[2:5]", "a[3:6]", "v[255:256]", "v256", "s[98:101]", "ttmp[14:17]"])
def test_a_tuple_that_the_chip_lacks_is_refused_with_its_reason(text: str) -> None:
    found = named(text)
    assert found is not None and (missing(found) or misaligned(found))


@pytest.mark.parametrize("text", ["s102", "s[100:103]", "x3", "v[3:1]", "vcc_mid", "v", "s[", "null"])
def test_what_is_no_register_has_no_name(text: str) -> None:
    assert named(text) is None


def test_numbers_of_different_registers_differ() -> None:
    vectors = [RegisterTuple(file, i) for file in ("v", "a") for i in range(256)]
    everything = vectors + [RegisterTuple("s", i) for i in range(128)]
    numbers = [n for r in everything for n in number(r)]
    assert sorted([*numbers, SCC, EXEC_MASK]) == list(range(COUNT))
    assert all(register(number(r)[0]) == r for r in everything)
    assert number(RegisterTuple("v", 4, 3)) == (4, 5, 6)
