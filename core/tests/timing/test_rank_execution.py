"""Launches on the ranks of a node are timed once where they do the same, and each by what it does itself."""

import numpy as np
from toy_timing import chip, code, trace

from tilefw.distributed.node_time.communication import RankAddresses
from tilefw.distributed.node_time.rank_execution import ExecutedLaunch, RankExecutions
from tilefw.sim.program import Barrier, Immediate, Instruction

ADDRESSES = RankAddresses(0, lambda address: None, lambda peer, nbytes: 0.0)


def launch(threads, made):
    return ExecutedLaunch(0, "toy", threads, None, made)


def test_a_launch_of_the_same_code_that_asks_memory_for_more_has_a_time_of_its_own():
    lines = code("load 1", "add 2 1")
    executions = RankExecutions(chip())
    (few,), (again,), (many,) = (
        executions.of(launch(32, trace(lines, touches={0: range(0, 16 * chunks, 16)})), ADDRESSES) for chunks in (1, 1, 32)
    )
    assert few.cycles == again.cycles and many.cycles > few.cycles + 20


def test_a_barrier_that_counts_lanes_has_the_waves_of_the_chip_that_these_fill():
    """On a chip of 64 lanes 128 of them are two waves, which meet, not four, which never do."""
    counted = (Immediate(1, 32), Immediate(128, 32))
    lines = [Instruction(0, "meet", "meet", "unit", None, counted, (), flow=Barrier(counted=True))]
    made = trace(lines, waves=2)
    made.lanes = 64
    (one,) = RankExecutions(chip()).of(launch(128, made), ADDRESSES)
    assert np.isfinite(one.cycles)
