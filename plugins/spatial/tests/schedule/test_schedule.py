"""A schedule computes what its work says, without a finding, in as many cycles as it predicts."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from random_work import random_work
from work_evaluator import Evaluator

from tilefw.api import dtype
from tilefw_spatial.emit import emit
from tilefw_spatial.machine import Machine, load
from tilefw_spatial.program import Parameter, Program
from tilefw_spatial.schedule import schedule
from tilefw_spatial.schedule.lifetimes import Life, lifetimes, most_alive
from tilefw_spatial.schedule.placement import place
from tilefw_spatial.simulate.device import simulate
from tilefw_spatial.simulate.transfers import HostBuffer
from tilefw_spatial.sweep import AluStep, Array, OperandSource, Read, VectorSweep, Walk, Work, Write

MACHINE = load()


def _program(work: Work, buffers: dict[int, np.ndarray], machine: Machine = MACHINE) -> Program:
    parameters = [Parameter(f"p{n}", "pointer", dtype(str(b.dtype)).name, b.nbytes) for n, b in sorted(buffers.items())]
    return emit([schedule(work, machine)], "work", (1, 1, 1), parameters, {})


@pytest.mark.parametrize("seed", range(40))
def test_random_work(seed: int) -> None:
    work, buffers = random_work(MACHINE, seed, 1 + seed % 40 // 4)
    _computes(work, buffers, MACHINE)


def _computes(work: Work, buffers: dict[int, np.ndarray], machine: Machine) -> None:
    program = _program(work, buffers, machine)
    expected = {n: buffer.copy() for n, buffer in buffers.items()}
    found = {n: buffer.copy() for n, buffer in buffers.items()}
    Evaluator(work, expected)
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
    work, buffers = random_work(replace(MACHINE, rows=rows), seed, 60, recent=4)
    _computes(work, buffers, replace(MACHINE, rows=rows))


def _shared_rows(seed: int, rows: int) -> bool:
    """Whether arrays have rows that others had before, in banks of so many rows."""
    machine = replace(MACHINE, rows=rows)
    work, _ = random_work(machine, seed, 60, recent=4)
    return any(place(work, machine).before.values())


def test_what_is_needed_at_one_time_counts() -> None:
    work = Work()
    arrays = [Array(f"a{n}", "int8", 100, role) for n, role in enumerate(("in", "temp", "temp", "out"))]
    for source, target in pairwise(arrays):
        read, write = Read(Walk(source, 0, (1,))), Write(0, Walk(target, 0, (1,)))
        work.sweeps.append(VectorSweep((100,), [read], [AluStep("MOV", "int8", (OperandSource("stream", 0),))], [write]))
    lives = lifetimes(arrays, work.sweeps)
    assert [lives[id(array)] for array in arrays] == [Life(), Life(0, 1), Life(1, 2), Life(2)]
    assert most_alive(lives, {id(array): 100 for array in arrays}) == 300
    kept = lifetimes(arrays, work.sweeps, {id(arrays[1])})
    assert kept[id(arrays[1])] == Life()
