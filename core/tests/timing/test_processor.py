"""Cycles of a made-up processor are what its description says, for code whose time can be counted by hand."""

import pytest
from toy_timing import chip, code, trace

from tilefw.api.errors import UnsupportedError
from tilefw.api.execution_trace import CHUNK
from tilefw.sim.program import Barrier, Immediate, Instruction
from tilefw.timing.chip_timing import ChipTiming
from tilefw.timing.memory_levels import MemoryLevels
from tilefw.timing.processor import BARRIER, ISSUE, NO_WAVE, Outcome, ProcessorModel
from tilefw.timing.sharing import Sharing
from tilefw.timing.streams import WaveAccess, WaveStream, streams


def run(made, of: ChipTiming | None = None, active: int = 1) -> Outcome:
    of = of or chip()
    numbers = [number for batch in made.batches for number in batch.workgroups]
    outcome = ProcessorModel(of, made.instructions, MemoryLevels(of, Sharing(of, made), active), active).run(streams(made, numbers))
    assert sum(outcome.limits.values()) == pytest.approx(outcome.cycles)
    memory = MemoryLevels(of, Sharing(of, made), active)
    quiet = ProcessorModel(of, made.instructions, memory, active, tells=False).run(streams(made, numbers))
    assert quiet.cycles == outcome.cycles, "a run that does not tell what cycles go for takes the same"
    return outcome


def test_a_chain_of_dependent_instructions_takes_their_latencies() -> None:
    outcome = run(trace(code("add 1 1", "add 1 1", "add 1 1"), times=10))
    assert outcome.cycles == pytest.approx(30 * 4, abs=4)
    assert outcome.limits[NO_WAVE] == outcome.cycles / 2, "one of two schedulers has nothing to do"
    assert outcome.limits["alu"] > 0.7 * outcome.cycles / 2


def test_independent_instructions_issue_one_a_cycle() -> None:
    outcome = run(trace(code("add 1 0", "add 2 0", "add 3 0", "add 4 0", "add 5 0"), times=20))
    assert outcome.cycles == pytest.approx(100, abs=5)


def test_waves_hide_one_anothers_latency_until_a_pipe_is_full() -> None:
    lines = code("mul 1 1")
    one, four = run(trace(lines, times=50)), run(trace(lines, waves=4, times=50))
    assert one.cycles == pytest.approx(50 * 8, abs=8)
    assert four.cycles == pytest.approx(2 * 50 * 8, abs=16), "two waves on each scheduler share a pipe that takes 8 cycles"
    assert four.busy["alu"] == 4 * 50 * 8


def test_each_scheduler_has_a_pipe_of_its_own_and_a_processor_one_of_the_others() -> None:
    lines = code("mul 1 0")
    shared = chip(pipes={"alu": "processor", "matrix": "scheduler", "memory": "scheduler", "shared": "processor"})
    made = trace(lines, waves=2, times=50)
    assert run(made, shared).cycles == pytest.approx(2 * run(made).cycles, rel=0.05)


def test_loads_wait_for_the_level_that_answers() -> None:
    cold = run(trace(code("load 1", "add 2 1"), touches={0: [0, 1, 2, 3]}))
    assert cold.cycles == pytest.approx(300 + 4 + 128 / 32, abs=8)
    warm = run(trace(code("load 1", "add 1 1"), times=11, touches={0: [0, 1, 2, 3]}))
    each = (warm.cycles - cold.cycles) / 10
    assert each == pytest.approx(10 + 4 + 128 / 64, abs=2), "later loads find the line in the processor's own cache"


def test_streams_of_new_lines_take_what_memory_can_move() -> None:
    made = trace(code("load -"), waves=8, times=100, touches={0: [0, 1, 2, 3]}, apart=4)
    alone, beside = run(made, active=1), run(made, active=4)
    assert alone.cycles == pytest.approx(800 * 128 / 32, rel=0.12)
    assert beside.cycles == pytest.approx(800 * 128 / 8, rel=0.05), "four processors share what memory moves"
    assert max(beside.limits, key=beside.limits.__getitem__) in ("memory", "last results")


def test_what_issues_while_another_wave_waits_for_a_pipe_is_counted_once() -> None:
    """Limits add up to the cycles (`run` asserts it), and a unit that is full is what they name."""
    outcome = run(trace(code("dot 1 0", "add 2 0", "mul 3 0", "add 4 0"), waves=8, times=20))
    assert outcome.cycles == pytest.approx(4 * 20 * 16, rel=0.05), "four waves on each scheduler share its matrix unit"
    assert outcome.limits[ISSUE] == pytest.approx(4 * 20 * 4)
    assert outcome.limits["matrix"] > 0.5 * outcome.cycles


def test_bank_conflicts_take_a_pass_each() -> None:
    free = run(trace(code("share -"), waves=8, times=50, passes={0: 1}))
    bad = run(trace(code("share -"), waves=8, times=50, passes={0: 8}))
    assert bad.cycles == pytest.approx(8 * 50 * 8, rel=0.05)
    assert bad.cycles > 6 * free.cycles


def test_a_barrier_waits_for_the_last_wave_and_says_what_kept_it() -> None:
    outcome = run(trace(code("dot 1 1", "add 2 1", "meet -"), waves=2, times=20))
    assert outcome.cycles == pytest.approx(20 * (32 + 1 + 2), rel=0.1)
    assert outcome.limits["matrix"] > outcome.limits[BARRIER]


def test_copies_that_are_waited_for_late_cost_less_than_those_waited_for_at_once() -> None:
    at_once = run(trace(code("copy -", "commit -", "wait0 -", "dot 1 1"), times=20, touches={0: [0, 1]}, apart=2))
    late = run(trace(code("copy -", "commit -", "wait1 -", "dot 1 1"), times=20, touches={0: [0, 1]}, apart=2))
    assert late.cycles < 0.6 * at_once.cycles


def test_lines_that_workgroups_share_come_from_memory_once() -> None:
    numbers = (0, 1, 2, 3)
    same = trace(code("load 1"), workgroups=numbers, times=1, touches={0: range(32)})
    own = trace(code("load 1"), workgroups=numbers, times=1, touches={0: range(32)}, apart=32)
    assert run(same).moved["memory"] < run(own).moved["memory"] / 3


def test_waves_meet_at_the_barrier_of_their_number_as_many_as_it_counts() -> None:
    """Two of four waves wait for each other at a barrier that the other two never come to."""
    lines = [*code("mul 1 1", "add 2 2"), Instruction(
        2, "meet 1, 64", "meet", "unit", None, (Immediate(1, 32), Immediate(64, 32)), (), flow=Barrier(counted=True)
    )]
    pair = [WaveStream(0, wave, [0] * (1 + 9 * wave) + [2, 1]) for wave in range(2)]
    alone = [WaveStream(0, wave, [0] * 200) for wave in (2, 3)]
    made = trace(lines)
    memory = MemoryLevels(chip(), Sharing(chip(), made), 1)
    outcome = ProcessorModel(chip(), lines, memory, 1).run([*pair, *alone])
    assert outcome.stalls[2]["barrier"] + outcome.stalls[2]["alu"] == pytest.approx(2 * 9 * 8, rel=0.3), "not for the two others"
    with pytest.raises(UnsupportedError, match="never come"):
        ProcessorModel(chip(), lines, MemoryLevels(chip(), Sharing(chip(), made), 1), 1).run([pair[0], *alone])


@pytest.mark.parametrize("levels", [3, 2])
def test_a_level_counts_what_comes_through_it_once_with_a_cache_of_the_processor_or_without(levels: int) -> None:
    of = chip(levels=chip().levels[-levels:])
    read = MemoryLevels(of, Sharing(of, trace(code("load 1 2"))), 1).read(WaveAccess("load", (0, 1), 0, 2 * CHUNK), True, 0)
    assert read.nbytes == [2.0 * CHUNK] * levels
