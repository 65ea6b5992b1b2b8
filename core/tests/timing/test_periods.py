"""Loops whose turns are alike are timed by a few of them, and come out as if all had been."""

import pytest
from toy_timing import chip, code, trace

from tilefw.timing import launch_time as launch_time_module
from tilefw.timing.launch_time import RecordedLaunch, launch_time, residency
from tilefw.timing.periods import LONG, SHORT, periods
from tilefw.timing.streams import WaveStream, streams

LINES = code("load 1", "dot 2 1", "add 2 2", "store - 2")
TOUCHES = {0: range(4), 3: range(64, 68)}


def recorded(turns: int) -> RecordedLaunch:
    made = trace(LINES, workgroups=(0, 4), waves=2, times=turns, touches=TOUCHES, apart=128)
    return RecordedLaunch(made, made, residency(chip(), 8, 2, None), 0)


def test_a_shortened_launch_takes_as_long_as_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = recorded(200)
    short = launch_time(chip(), launch)
    monkeypatch.setattr(launch_time_module, "periods", lambda waves: None)
    whole = launch_time(chip(), launch)
    assert (short.turns, whole.turns) == (199, 0), "the last turn has no head of another behind it"
    assert short.cycles == pytest.approx(whole.cycles, rel=0.02)
    assert short.outcome.executed == whole.outcome.executed
    assert short.outcome.moved == pytest.approx(whole.outcome.moved)
    assert sum(short.outcome.limits.values()) == pytest.approx(short.outcome.cycles)


def test_streams_keep_their_beginning_and_their_end() -> None:
    found = periods(streams(recorded(100).own, (0, 4)))
    assert found is not None and found.turns == 99
    assert [len(stream.instructions) for stream in found.long] == [4 * (LONG + 1)] * 4
    last = max(found.short[0].accesses)
    assert last == 4 * SHORT + 3 and found.short[0].accesses[last][0].kind == "write"


def test_turns_that_differ_or_are_few_are_all_timed() -> None:
    assert periods(streams(recorded(20).own, (0, 4))) is None
    one, other = WaveStream(0, 0, [0, 1] * 100), WaveStream(0, 1, [0, 1] * 90)
    assert periods([one]) is not None and periods([one, other]) is None
    assert periods([WaveStream(0, 0, [0, 1, 0, 1, 2] * 30)]) is None
