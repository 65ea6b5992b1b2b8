"""A schedule computes what its work says, without a finding, in as many cycles as it predicts."""

from __future__ import annotations

import numpy as np
import pytest
from random_work import random_work
from work_evaluator import Evaluator

from tilefw.api import dtype
from tilefw_spatial.emit import emit
from tilefw_spatial.machine import load
from tilefw_spatial.program import Parameter, Program
from tilefw_spatial.schedule import schedule
from tilefw_spatial.simulate.device import simulate
from tilefw_spatial.simulate.transfers import HostBuffer
from tilefw_spatial.sweep import Work

MACHINE = load()


def _program(work: Work, buffers: dict[int, np.ndarray]) -> Program:
    parameters = [Parameter(f"p{n}", "pointer", dtype(str(b.dtype)).name, b.nbytes) for n, b in sorted(buffers.items())]
    return emit([schedule(work, MACHINE)], "work", (1, 1, 1), parameters, {})


@pytest.mark.parametrize("seed", range(40))
def test_random_work(seed: int) -> None:
    work, buffers = random_work(MACHINE, seed, 1 + seed % 40 // 4)
    program = _program(work, buffers)
    expected = {n: buffer.copy() for n, buffer in buffers.items()}
    found = {n: buffer.copy() for n, buffer in buffers.items()}
    Evaluator(work, expected)
    ran = simulate(program, MACHINE, [HostBuffer(f"p{n}", found[n].view(np.uint8), 0) for n in sorted(found)])
    assert [finding.message for finding in ran.findings.all] == []
    assert ran.cycles == program.cycles
    for number, buffer in expected.items():
        np.testing.assert_array_equal(found[number], buffer)
