"""A load races only where its value is used: waves that repeat another's work and discard it are in no race."""

from __future__ import annotations

import numpy as np
import pytest
from running import run

# Two waves of eight lanes load the same eight elements; r3 is the element, p0 the first wave.
LOADED = """
    param a0, arg0
    param a3, arg1
    and r3, tid, 7
    index a1, a0, r3
    lt p0, tid, 8
    load r0, a1
    add r1, r0, r0
"""
STORED = "@p0 store a1, r1\n"
X = np.arange(1, 9, dtype=np.uint32)


def races(text: str, **options) -> list:
    return [f for f in run(LOADED + text + "end", X, 64, block=16, **options).report.findings if f.check == "races"]


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_a_wave_that_discards_what_it_loaded_is_in_no_race(seed: int) -> None:
    out = run(LOADED + STORED + "end", X, 64, block=16, seed=seed)
    assert out.report.findings == () and out.arrays[0].tolist() == (2 * X).tolist()


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
@pytest.mark.parametrize("use", [
    "index a2, a3, tid\nstore a2, r1\n",  # the data of a store that the other wave makes
    "index a2, a3, r0\n@p0 store a2, tid\n",  # an address
    "eq p1, r0, 1\n@p1 add r2, r0, 1\n",  # a guard
    "lt p1, r0, 100\n@p1 jump over\nadd r2, r0, 1\nover: mov r2, 0\n",  # a branch
])
def test_a_wave_that_uses_what_it_loaded_races(use: str, seed: int) -> None:
    for text in (use + STORED, STORED + use):
        (finding,) = races(text, seed=seed)
        assert finding.code == "TFW0804" and {"load", "store"} & set(finding.message.split())


def test_an_earlier_load_that_is_used_is_not_forgotten_for_a_later_one_that_is_not() -> None:
    """The second load of the element is unused; the first is stored by both waves."""
    assert races("index a2, a3, tid\nstore a2, r1\nload r2, a1\nadd r2, r2, 1\n" + STORED)


def test_a_store_of_the_discarding_waves_alone_is_a_use() -> None:
    assert races("index a2, a3, tid\n@!p0 store a2, r1\n" + STORED)


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
@pytest.mark.parametrize("step", [0, 8, -8])
def test_a_load_that_every_wave_repeats_races_with_the_store_of_another_workgroup_alone(step: int, seed: int) -> None:
    """Both waves of a workgroup load the same eight elements, `step` away from those that its first wave stores."""
    text = f"""
        param a0, arg0
        and r3, tid, 7
        mul r4, group, 8
        add r3, r3, r4
        add r3, r3, 8
        index a1, a0, r3
        add r3, r3, {step % 2**32}
        index a2, a0, r3
        lt p0, tid, 8
        load r0, a2
        add r1, r0, r0
        @p0 store a1, r1
        end
    """
    findings = run(text, np.arange(40, dtype=np.uint32), grid=3, block=16, seed=seed).report.findings
    assert {f.check for f in findings} == ({"races"} if step else set())


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_waves_that_load_in_place_twice_each_race_with_none(seed: int) -> None:
    """Four waves: the last two repeat the loads of the first two, which store what they have loaded."""
    text = LOADED.replace("and r3, tid, 7", "and r3, tid, 15").replace("lt p0, tid, 8", "lt p0, tid, 16")
    out = run(text + STORED + "end", np.arange(16, dtype=np.uint32), 64, block=32, seed=seed)
    assert out.report.findings == () and out.arrays[0].tolist() == list(range(0, 32, 2))


def test_a_fault_that_ends_the_launch_leaves_no_race_unreported() -> None:
    findings = run(LOADED + STORED + "mov a5, 0l\nload r4, a5\nend", X, 64, block=16).report.findings
    assert [f.check for f in findings] == ["bounds", "races"]


# The register of the value is written again under a guard, and is then an address under it.
REUSED = "@p1 mov r0, tid\n"
ADDRESS = "@p1 index a2, a3, r0\n@p1 store a2, tid\n"


def test_a_register_written_again_under_the_same_guard_holds_another_value() -> None:
    assert races("lt p1, tid, 16\n" + STORED + REUSED + ADDRESS) == []


@pytest.mark.parametrize("again", ["lt p1, tid, 4\n" + REUSED + "lt p1, tid, 16\n", "@p0 mov r0, tid\n", "@!p1 mov r0, tid\n"])
def test_a_register_written_again_under_another_guard_may_hold_the_value_still(again: str) -> None:
    assert races("lt p1, tid, 16\n" + STORED + again + ADDRESS)
