"""A made-up chip with barriers that count and a copy engine: what they do, and what is found where a wait or a fence is missing."""

from dataclasses import replace

import numpy as np
import pytest
from running import Outcome, run
from toy import CHIP

from tilefw.sim.checks.races import Races
from tilefw.sim.engine import run as engine

START = """
    param a0, arg0
    param a4, arg1
    eq p0, tid, 0
    mov a2, shared
    add a3, a2, 256l
    mul r2, tid, 4
    wide a5, r2
    add a5, a5, a2
    index a1, a4, tid
"""
MAKE = """
    @p0 make a3, 1
    bar 0
"""
FETCH = """
    @p0 expect a6, a3, 64
    @p0 fetch a2, a0, 64, a3
"""
PASS = """
    again: passed p1, a3, 0
    @!p1 jump again
"""
READ = """
    lload r5, a5
    store a1, r5
    end
"""
WRITE = """
    add r5, tid, 7
    lstore a5, r5
"""
PUT = """
    bar 0
    @p0 put a4, a2, 64
"""
DONE = """
    @p0 group
    @p0 drained
    end
"""
DATA, ZEROS = np.arange(100, 116, dtype=np.uint32), np.zeros(16, np.uint32)


def out_of(text: str, **options) -> Outcome:
    return run(START + text, DATA, ZEROS, grid=1, block=16, shared=320, **options)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_copy_completes_on_a_barrier_that_counts_its_bytes(seed: int):
    out = out_of(MAKE + FETCH + PASS + READ, seed=seed)
    assert out.report.findings == () and out.arrays[1].tolist() == DATA.tolist()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_copy_completes_with_the_group_of_its_thread(seed: int):
    out = out_of(WRITE + "views\n" + PUT + DONE, seed=seed)
    assert out.report.findings == () and out.arrays[1].tolist() == list(range(7, 23))


@pytest.mark.parametrize(
    "text, check, words",
    [
        (MAKE + FETCH + READ, "pending", "has not delivered yet"),
        (MAKE + FETCH.replace("a3, 64", "a3, 80") + PASS + READ, "barriers", "deadlock"),
        (MAKE + FETCH + "end\n", "leftovers", "at work when its workgroup ends"),
        (FETCH + PASS + READ, "barriers", "there is no barrier here"),
        (WRITE + PUT + DONE, "races", "no fence between their views"),
        (WRITE + "views\n" + PUT.replace("bar 0", "") + DONE, "races", "not ordered"),
        (WRITE + "views\n" + PUT + "end\n", "leftovers", "at work when its workgroup ends"),
        (WRITE + "views\n" + PUT + "bar 0\n" + WRITE + DONE, "pending", "has still to read"),
    ],
)
def test_what_is_missing_is_found(text: str, check: str, words: str):
    found = [f for f in out_of(text).report.findings if f.check == check]
    assert any(words in f.message for f in found), found


def test_a_deadlock_says_what_the_barrier_wants():
    found = out_of(MAKE.replace("a3, 1", "a3, 3") + FETCH + PASS + READ).finding("barriers")
    assert "whose phase 0 wants 2 of 3 arrivals at" in found.note


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_program_may_end_with_a_wait(seed: int):
    for last in ("", "passed p1, a3, 0\n"):
        assert out_of(MAKE + last, seed=seed).report.findings == ()


def test_a_barrier_that_ends_two_phases_under_a_wait_is_named():
    """Whoever waits for the first of them would wait for ever: its parity is wanted again."""
    text = """
    @p0 jump arrives
    waits: passed p1, a3, 0
    @!p1 jump waits
    end
    arrives: arrive a6, a3, 1
    TWICE
    end
    """
    once, twice = (out_of(MAKE + text.replace("TWICE", more)).report.findings for more in ("", "arrive a6, a3, 1"))
    assert once == ()
    assert [(finding.check, finding.code) for finding in twice] == [("barriers", "TFW0824")] and "another one" in twice[0].message


def test_who_arrives_tells_what_its_own_wave_has_fenced_and_not_what_its_neighbours_have():
    """Wave 0 stores, fences and sets a flag; wave 1 has seen the flag and arrives; wave 2 passes the barrier and loads."""
    text = """
    @p0 make a3, 1
    bar 0
    lt p2, tid, 8
    @p2 jump first
    lt p2, tid, 16
    @p2 jump second
    third: passed p1, a3, 0
    @!p1 jump third
    lload r5, a2
    store a1, r5
    end
    second: SEES r1, FLAG
    eq p1, r1, 1
    @!p1 jump second
    eq p2, tid, 8
    @p2 arrive a6, a3, 1
    end
    first: lstore a2, 5
    fence
    release r1, a0, 1
    end
    """
    for sees, found in (("acquire r1, a0", []), ("atomcas r1, a0, 1, 1", []), ("atomadd r1, a0, 0", ["races"])):
        out = run(
            START + text.replace("SEES r1, FLAG", sees), np.zeros(1, np.uint32), np.zeros(24, np.uint32), block=24, shared=320
        )
        assert out.checks == found, sees


# Workgroup 0 writes at its beginning, workgroup LAST when it has passed a barrier of its own.
ONE_AFTER_THE_OTHER = """
    param a4, arg0
    eq p0, tid, 0
    mov a3, shared
    eq p2, group, 0
    eq p3, group, LAST
    @p2 store a4, 1
    @p0 make a3, 1
    bar 0
    @p0 arrive a6, a3, 1
    again: passed p1, a3, 0
    @!p1 jump again
    @p3 store a4, 2
    end
"""


def test_what_the_race_check_knows_of_shared_memory_ends_with_its_batch(monkeypatch: pytest.MonkeyPatch):
    """A later batch, whose memory may have the identity of an earlier one's, learns nothing from it; nor is memory kept."""
    left: list[tuple[int, int, int]] = []
    close = Races.close

    def closed(self: Races):
        left.append((len(self._touched), len(self._released), len(self._makers)))
        close(self)

    monkeypatch.setattr(Races, "close", closed)
    monkeypatch.setattr(engine, "BATCH_WORKGROUPS", 1)
    for last in range(1, 6):
        text = ONE_AFTER_THE_OTHER.replace("LAST", str(last))
        chip = replace(CHIP, resident_workgroups=1)
        assert run(text, ZEROS, grid=last + 1, block=8, shared=64, chip=chip).finding("races").code == "TFW0804"
    assert left == [(1, 0, 0)] * 5  # the argument's memory, and no barriers
