"""A launch's time follows from how its workgroups spread over the chip."""

import pytest
from toy_timing import chip, code, trace

from tilefw.timing.launch_time import RecordedLaunch, launch_time, own_workgroups, residency, samples
from tilefw.timing.profile import launch_profile


def of(workgroups: int, waves: int = 2, occupancy: float | None = None):
    """The time of a launch whose workgroups each take 40 dependent additions."""
    spread = residency(chip(), workgroups, waves, occupancy)
    made = trace(code("add 1 1"), workgroups=own_workgroups(spread), waves=waves, times=40)
    return launch_time(chip(), RecordedLaunch(made, made, spread, 0))


def test_workgroups_fill_processors_before_they_share_one() -> None:
    assert (residency(chip(), 3, 2, None).active, residency(chip(), 3, 2, None).resident) == (3, 1)
    assert (residency(chip(), 64, 2, None).active, residency(chip(), 64, 2, None).resident) == (4, 4)
    assert residency(chip(), 64, 2, 0.5).resident == 2, "half of the eight waves"


def test_what_fits_at_once_takes_no_longer_than_one_workgroup() -> None:
    assert of(4).cycles == pytest.approx(of(1).cycles)
    assert of(16).cycles == pytest.approx(of(1).cycles, rel=0.1), "four a processor hide one another's latency"


def test_one_workgroup_more_than_fits_costs_a_round() -> None:
    full, more = of(4, occupancy=0.25), of(5, occupancy=0.25)
    assert more.cycles == pytest.approx(2 * full.cycles, rel=0.15)


def test_time_grows_linearly_in_rounds() -> None:
    four, eight = of(64, occupancy=0.25).cycles, of(128, occupancy=0.25).cycles
    assert eight == pytest.approx(2 * four, rel=0.05)


def test_a_profile_adds_up() -> None:
    lines = code("load 1", "dot 2 1", "store - 2")
    spread = residency(chip(), 16, 2, None)
    touches = {0: range(4), 2: range(64, 68)}
    made = trace(lines, workgroups=own_workgroups(spread), waves=2, times=5, touches=touches, apart=128)
    launch = RecordedLaunch(made, made, spread, 0)
    profile = launch_profile(chip(), (chip(), chip()), launch, kernel="k", target="toy", occupancy=None)
    assert sum(limit.cycles for limit in profile.limits) == pytest.approx(profile.cycles)
    assert profile.seconds == pytest.approx(profile.cycles / 1e9 + 1e-6)
    assert profile.low <= profile.seconds <= profile.high
    memory = profile.roofline[-1]
    assert memory.nbytes == 16 * 2 * 5 * 2 * 128, "each wave loads and stores 128 bytes five times"
    assert profile.operations == pytest.approx(16 * 2 * 5 * 1024 / profile.seconds)
    assert profile.peak == 1024 / 16 * 2 * 4 * 1e9
    assert {row.text for row in profile.stalls} == {i.text for i in lines}


def test_where_all_run_at_once_some_of_all_over_the_grid_are_looked_at() -> None:
    once = residency(chip(), 16, 2, None)
    assert samples(once) == (6, 9, 15)
    assert own_workgroups(once, 6 % once.active) == (2, 6, 10, 14), "those that the processor of workgroup 6 has"
    assert samples(residency(chip(), 64, 2, 0.25)) == (), "processors take one after the other, and have of all"


def test_a_processor_that_has_fewer_workgroups_than_the_busiest_is_timed_with_its_own() -> None:
    spread = residency(chip(), 5, 2, None)
    touches = {1: range(4)}
    made = trace(code("add 1 1", "load 2"), workgroups=own_workgroups(spread, 1), waves=2, times=40, touches=touches, apart=128)
    launch = RecordedLaunch(made, made, spread, 0, processor=1)
    alone = residency(chip(), 4, 2, None)
    assert launch_time(chip(), launch).cycles == launch_time(chip(), RecordedLaunch(made, made, alone, 0, processor=1)).cycles
    profile = launch_profile(chip(), (chip(), chip()), launch, kernel="k", target="toy", occupancy=None)
    assert profile.roofline[-1].nbytes == 5 * 2 * 40 * 128, "all five workgroups load"
    assert "tail" not in {cause.cause for cause in profile.causes}, "without the fifth workgroup this processor takes as long"
