"""Memory spaces that a chip declares: each owner has a copy, checked as shared memory is; others are refused by name."""

from dataclasses import replace

import numpy as np
import pytest
from running import Outcome, run
from toy import CHIP

from tilefw.api.errors import LaunchError, PluginError
from tilefw.sim.program import MemorySpace, SimulatedChip, SpaceOwner

THREAD = """
    param a0, arg0
    mul r9, group, 16
    add r9, r9, tid
    index a1, a0, r9
"""
MEET = """
    mul r2, tid, 4
    wide a2, r2
    eq p0, tid, {writer}
    mov r3, 0
    wide a3, r3
    add r4, tid, 100
    add r4, r4, group
    @p0 padstore a3, r4
    bar 0
    padload r5, a3
    store a1, r5
    end
"""


def chip(owner: SpaceOwner) -> SimulatedChip:
    return replace(CHIP, spaces=(MemorySpace("pad", owner, 64),))


def out_of(text: str, owner: SpaceOwner, pad: int = 64, **options) -> Outcome:
    return run(THREAD + text, np.zeros(32, np.uint32), grid=2, block=16, chip=chip(owner), pad=pad, **options)


def test_a_workgroup_has_one_copy():
    out = out_of(MEET.format(writer=9), "workgroup")
    assert out.report.findings == ()
    assert out.arrays[0].tolist() == [109] * 16 + [110] * 16
    assert out.report.counters["bytes.pad.write"] == 8


def test_a_wave_has_one_copy():
    text = MEET.replace("eq p0, tid, {writer}", "eq p0, lane, 2")
    out = out_of(text, "wave")
    assert out.report.findings == ()
    assert out.arrays[0].tolist() == [102] * 8 + [110] * 8 + [103] * 8 + [111] * 8


def test_a_lane_has_one_copy():
    out = out_of(MEET.replace("eq p0, tid, {writer}", "eq p0, r2, r2"), "lane")
    assert out.report.findings == ()
    assert out.arrays[0].tolist() == [*range(100, 116), *range(101, 117)]


@pytest.mark.parametrize("owner, found", [("workgroup", ["races"]), ("wave", []), ("lane", [])])
def test_waves_race_where_they_have_one_copy(owner: SpaceOwner, found: list[str]):
    out = out_of(MEET.replace("eq p0, tid, {writer}", "eq p0, r2, r2").replace("bar 0", ""), owner)
    assert out.checks == found


def test_what_nobody_wrote_is_undefined_and_what_is_beyond_the_variables_is_out_of_bounds():
    assert out_of(MEET.format(writer=0).replace("@p0 padstore a3, r4", ""), "wave").checks == ["initialisation"]
    out = out_of(MEET.format(writer=1).replace("mov r3, 0", "mov r3, 64"), "workgroup")
    assert "pad address 0x40" in out.finding("bounds").message


def test_more_than_the_chip_has_is_refused():
    with pytest.raises(LaunchError, match="128 bytes of pad memory a wave") as caught:
        out_of("end\n", "wave", pad=128)
    assert caught.value.code == "TFW0344"


@pytest.mark.parametrize("pad", [0, 64])
def test_a_space_that_the_chip_does_not_declare_is_refused(pad: int):
    with pytest.raises(PluginError, match="no memory space 'pad'") as caught:
        run(THREAD + MEET.format(writer=0), np.zeros(32, np.uint32), grid=2, block=16, pad=pad)
    assert caught.value.code == "TFW0516"
