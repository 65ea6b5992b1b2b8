"""Loads of halves may follow one another into one register unfinished; what reads the register besides must have it."""

from __future__ import annotations

import pytest
from served import ISAS

from tilefw_amd.isa.set import InstructionSet
from waiting.flow import Shape, faults, function
from waiting.passes import Passes

on_each_chip = pytest.mark.parametrize("isa", ISAS, ids=str)

_UNNEEDED = {
    "two halves": ("global_load_short_d16 v4, v[0:1], off", "global_load_short_d16_hi v4, v[0:1], off"),
    "two halves from LDS": ("ds_read_u16_d16 v4, v0", "ds_read_u16_d16_hi v4, v0"),
}
_NEEDED = {
    "an atomic with data that is loaded": (
        "buffer_load_dword v4, v0, s[4:7], 0 offen", "buffer_atomic_add v4, v0, s[4:7], 0 offen sc0"
    ),
    "a half at an address that is loaded": ("ds_read_u16_d16 v4, v0", "ds_read_u16_d16 v4, v4"),
    "a half of memory at an address that is loaded": (
        "global_load_dword v4, v[0:1], off", "global_load_short_d16 v4, v[4:5], off"
    ),
}


@on_each_chip
@pytest.mark.parametrize("statements", _UNNEEDED.values(), ids=_UNNEEDED)
def test_halves_need_no_wait_between(isa: InstructionSet, statements: tuple[str, ...]) -> None:
    code = function(isa, Shape((statements,), (None,)))
    assert Passes(isa).complaint(code) == ""
    assert faults(isa, code) == []


@on_each_chip
@pytest.mark.parametrize("statements", _NEEDED.values(), ids=_NEEDED)
def test_what_is_read_at_the_issue_must_be_there(isa: InstructionSet, statements: tuple[str, ...]) -> None:
    code = function(isa, Shape((statements,), (None,)))
    assert Passes(isa).complaint(code)
    assert [fault.check for fault in faults(isa, code)] == ["pending"]
