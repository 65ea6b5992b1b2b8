"""What a modelled processor does when is drawn as it was counted: waves, pipes and memory, in whole cycles one behind another."""

from itertools import pairwise

from toy_timing import chip, code, trace

from tilefw.api.timeline import Timeline, Track
from tilefw.timing.launch_time import RecordedLaunch, Residency
from tilefw.timing.timeline import EXECUTES, WHOLE, processor_timeline


def timeline_of(made) -> Timeline:
    workgroups = len({number for batch in made.batches for number in batch.workgroups})
    launch = RecordedLaunch(made, made, Residency(workgroups, workgroups, 1, workgroups), 4096)
    timeline, utilisation = processor_timeline(chip(), launch)
    assert all(0 <= one.share <= 1 for one in utilisation)
    for row in timeline.rows:
        assert all(before.begin + before.length <= after.begin for before, after in pairwise(row.spans))
        assert all(0 <= span.busy <= span.length for span in row.spans)
        assert row.spans[-1].begin + row.spans[-1].length <= timeline.cycles + 1
    return timeline


def row(timeline: Timeline, name: str, group: str) -> Track:
    return next(one for one in timeline.rows if (one.name, one.group) == (name, group))


def test_a_wave_executes_and_waits_for_the_level_that_answers() -> None:
    spans = row(timeline_of(trace(code("load 1", "add 2 1"), touches={0: [0, 1, 2, 3]})), "wave 0", "workgroup 0").spans
    assert [span.kind for span in spans] == [EXECUTES, "memory", EXECUTES]
    assert 290 <= spans[1].length <= 320, "a load that no cache has takes 300 cycles and the transfer of its line"


def test_short_waits_are_part_of_what_is_executed() -> None:
    spans = row(timeline_of(trace(code("add 1 1", "add 1 1"), times=10)), "wave 0", "workgroup 0").spans
    assert [(span.kind, span.facts["instructions"]) for span in spans] == [(EXECUTES, 20)]


def test_pipes_of_each_scheduler_and_levels_of_memory_have_rows_of_their_own() -> None:
    rows = {(one.group, one.name) for one in timeline_of(trace(code("load 1", "mul 1 1"), waves=2, touches={0: [0, 1]})).rows}
    assert rows >= {("pipes", "alu 0"), ("pipes", "alu 1"), ("memory", "near"), ("memory", "far")}


def test_a_pipe_is_drawn_as_long_as_it_is_taken() -> None:
    (span,) = row(timeline_of(trace(code("mul 1 0"), times=50)), "alu 0", "pipes").spans
    assert (span.length, span.busy) == (400, 400)


def test_waves_that_meet_wait_for_what_keeps_the_last() -> None:
    made = timeline_of(trace(code("load 1", "add 2 1", "meet -", "add 2 2"), waves=2, touches={0: [0, 1, 2, 3]}))
    waits = {one.name: [span.kind for span in one.spans if span.kind != EXECUTES] for one in made.rows if "wave" in one.name}
    assert waits["wave 0"] and set(waits["wave 0"]) <= {"near", "far", "memory"}


def test_a_very_long_loop_is_played_in_part_and_says_so() -> None:
    made = timeline_of(trace(code("add 1 1", "add 2 2", "mul 1 2"), times=WHOLE // 3 + 2))
    assert made.facts["turns of the loop"] == f"16 of {WHOLE // 3 + 1}"
    assert "turns of the loop" not in timeline_of(trace(code("add 1 1", "add 2 2", "mul 1 2"), times=400)).facts
