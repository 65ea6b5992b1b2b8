"""A schedule computes what its stream program computes, without a finding, in as many cycles as it predicts."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from random_stream_programs import random_stream_programs
from stream_evaluator import StreamEvaluator

from tilefw.api import dtype
from tilefw_spatial.emit import emit
from tilefw_spatial.machine import Machine, load
from tilefw_spatial.program import BoundParameter, SpatialProgram
from tilefw_spatial.schedule import schedule
from tilefw_spatial.schedule.lifetimes import Lifetime, lifetimes, most_alive
from tilefw_spatial.schedule.placement import place_arrays
from tilefw_spatial.simulate.device import simulate
from tilefw_spatial.simulate.transfers import HostBuffer
from tilefw_spatial.stream_program import AccessPattern, AluStep, Array, OperandSource, Read, StreamProgram, VectorStreamOp, Write

MACHINE = load()


def _program(
    stream_program: StreamProgram, buffers: dict[int, np.ndarray], machine: Machine = MACHINE, again: int = 0
) -> SpatialProgram:
    parameters = [BoundParameter(f"p{n}", "pointer", dtype(str(b.dtype)).name, b.nbytes) for n, b in sorted(buffers.items())]
    return emit([schedule(stream_program, machine, again=again)], "work", (1, 1, 1), parameters, {})


@pytest.mark.parametrize("seed", range(40))
def test_random_stream_programs(seed: int) -> None:
    stream_program, buffers = random_stream_programs(MACHINE, seed, 1 + seed % 40 // 4)
    _computes(stream_program, buffers, MACHINE)


@pytest.mark.parametrize("seed", [4, 6])
def test_arrays_that_are_placed_anew_by_the_times_of_a_schedule_wait_less(seed: int) -> None:
    stream_program, buffers = random_stream_programs(MACHINE, seed, 20)
    _computes(stream_program, buffers, MACHINE, again=2)
    assert schedule(stream_program, MACHINE, again=2).cycles < schedule(stream_program, MACHINE).cycles


@pytest.mark.parametrize("seed", [40, 44])
def test_operations_of_a_link_use_slices_between_the_bursts_of_others(seed: int) -> None:
    stream_program, buffers = random_stream_programs(MACHINE, seed, 12)
    timed = schedule(stream_program, MACHINE, again=1)
    issues = sorted(timed.issues, key=lambda issue: (issue.queue, issue.cycle))
    between = [one for one, other in pairwise(issues) if one.queue == other.queue and one.last >= other.cycle]
    assert between and timed.cycles < schedule(stream_program, MACHINE).cycles
    _computes(stream_program, buffers, MACHINE, again=1)


def _computes(stream_program: StreamProgram, buffers: dict[int, np.ndarray], machine: Machine, again: int = 0) -> None:
    program = _program(stream_program, buffers, machine, again)
    expected = {n: buffer.copy() for n, buffer in buffers.items()}
    found = {n: buffer.copy() for n, buffer in buffers.items()}
    StreamEvaluator(stream_program, expected)
    ran = simulate(program, machine, [HostBuffer(f"p{n}", found[n].view(np.uint8), 0) for n in sorted(found)])
    assert [finding.message for finding in ran.findings.all] == []
    assert ran.cycles == program.cycles
    for number, buffer in expected.items():
        np.testing.assert_array_equal(found[number], buffer)


@pytest.mark.parametrize("seed", [1, 9, 30])
def test_rows_of_arrays_that_are_no_longer_needed_are_used_again(seed: int) -> None:
    rows = 128
    while not _shared_rows(seed, rows):
        rows -= 8
    stream_program, buffers = random_stream_programs(replace(MACHINE, rows=rows), seed, 60, recent=4)
    _computes(stream_program, buffers, replace(MACHINE, rows=rows))


def _shared_rows(seed: int, rows: int) -> bool:
    """Whether arrays have rows that others had before, in banks of so many rows."""
    machine = replace(MACHINE, rows=rows)
    stream_program, _ = random_stream_programs(machine, seed, 60, recent=4)
    return any(place_arrays(stream_program, machine).before.values())


def test_what_is_needed_at_one_time_counts() -> None:
    stream_program = StreamProgram()
    arrays = [Array(f"a{n}", "int8", 100, role) for n, role in enumerate(("in", "temp", "temp", "out"))]
    for source, target in pairwise(arrays):
        read, write = Read(AccessPattern(source, 0, (1,))), Write(0, AccessPattern(target, 0, (1,)))
        stream_program.stream_ops.append(
            VectorStreamOp((100,), [read], [AluStep("MOV", "int8", (OperandSource("stream", 0),))], [write])
        )
    lives = lifetimes(arrays, stream_program.stream_ops)
    assert [lives[id(array)] for array in arrays] == [Lifetime(), Lifetime(0, 1), Lifetime(1, 2), Lifetime(2)]
    assert most_alive(lives, {id(array): 100 for array in arrays}) == 300
    kept = lifetimes(arrays, stream_program.stream_ops, {id(arrays[1])})
    assert kept[id(arrays[1])] == Lifetime()
