"""No times need fewer MOVs than the bound says, found times keep all latencies, and the bound is met where a value waits."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tilefw_spatial.chain.timing import TimingProblem, least_moves, moves_after, times
from tilefw_spatial.machine import load

KEPT = load().delay_steps


@st.composite
def problems(draw: st.DrawFn) -> TimingProblem:
    count, reads = draw(st.integers(1, 16)), draw(st.integers(1, 4))
    latency = [draw(st.sampled_from([1, 1, 3])) for _ in range(count)]
    takes = [tuple(draw(st.sets(st.integers(0, v - 1), max_size=2))) if v else () for v in range(count)]
    streams = [tuple(draw(st.sets(st.integers(0, reads - 1), max_size=1))) for _ in range(count)]
    return TimingProblem(latency, takes, streams, reads, KEPT)


def moves(problem: TimingProblem, at: list[int]) -> int:
    total = 0
    for u, latency in enumerate(problem.latency):
        readers = [at[w] for w, takes in enumerate(problem.takes) if u in takes]
        total += moves_after(max(readers) - at[u] - latency, stream=False, kept=KEPT) if readers else 0
    for r in range(problem.reads):
        when = [at[v] for v, streams in enumerate(problem.streams) if r in streams]
        total += moves_after(max(when) - min(when), stream=True, kept=KEPT) if when else 0
    return total


@settings(max_examples=200, deadline=None, derandomize=True)
@given(problems())
def test_found_times_are_right_and_not_below_the_bound(problem: TimingProblem) -> None:
    at = times(problem, 0)
    assert min(at) == 0
    assert all(at[v] >= at[u] + problem.latency[u] for v, takes in enumerate(problem.takes) for u in takes)
    assert moves(problem, at) >= least_moves(problem)


def test_a_value_that_waits_for_a_chain_takes_a_move_each_time_it_would_be_lost() -> None:
    length = 2 * KEPT + 2
    takes = [(), *((v - 1,) for v in range(1, length)), (0, length - 1)]
    problem = TimingProblem([1] * (length + 1), takes, [()] * (length + 1), 0, KEPT)
    assert least_moves(problem) == moves(problem, times(problem, 0)) == 2
