"""Kernels go through all stages: the cycles that the scheduler tells are the simulator's, and a program's text is the program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from launches import bound

from tilefw.api import CapacityError, CompileOptions, InternalError
from tilefw.kernels.spec import load as kernel_named
from tilefw.kernels.verify import verify
from tilefw_spatial.arrange import arrange
from tilefw_spatial.backend import SpatialBackend
from tilefw_spatial.container import read
from tilefw_spatial.emit import emit, queues
from tilefw_spatial.lower import lower
from tilefw_spatial.machine import load
from tilefw_spatial.program import QueueInst, SpatialProgram
from tilefw_spatial.schedule import DemandedIssue, last_event, schedule
from tilefw_spatial.target import SDM1
from tilefw_spatial.text import parse

MACHINE = load()
KERNELS = [
    ("vector_add", {"n": 700}),
    ("softmax", {"rows": 3, "columns": 40}),
    ("matmul", {"m": 33, "n": 50, "k": 170}),
    ("attention", {"queries": 20, "keys": 33}),
]


@pytest.mark.parametrize(("kernel", "parameters"), KERNELS)
def test_the_prediction_comes_before_the_program_and_is_right(kernel: str, parameters: dict[str, int]) -> None:
    launch = bound(kernel, parameters)
    timed = schedule(arrange(lower(launch.module(), launch.launch), MACHINE), MACHINE)
    verdict = verify(kernel_named(kernel), parameters, "spatial-sdm1", executor="sim")
    assert verdict.ok
    assert verdict.counters["cycles"] == timed.cycles


def test_the_text_is_the_program() -> None:
    launch = bound("matmul", {"m": 40, "n": 30, "k": 20})
    backend = SpatialBackend(SDM1)
    artifact = backend.emit(launch.module(), CompileOptions(launch=launch.launch))
    assert artifact.binary is not None
    again = parse(artifact.text, "artifact")
    assert again.chips == read(artifact.binary, "artifact").chips
    assert again.cycles == artifact.metadata["cycles"]


def test_the_checker_s_word_is_asked_for_by_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = bound("vector_add", {"n": 700})
    options = CompileOptions(launch=launch.launch, verify=True)
    assert SpatialBackend(SDM1).emit(launch.module(), options).binary
    monkeypatch.setattr("tilefw_spatial.pipeline.emit", lambda *given: _late(emit(*given)))
    with pytest.raises(InternalError, match="constraints of the machine"):
        SpatialBackend(SDM1).emit(launch.module(), options)


def _late(program: SpatialProgram) -> SpatialProgram:
    """The program with its additions one cycle late."""
    (chip,) = program.chips
    queues = {name: [QueueInst("NOP", imm=1), *queue] if name.startswith("VXM") else queue for name, queue in chip.queues.items()}
    return replace(program, chips=[replace(chip, queues=queues)])


def test_arrays_that_do_not_fit_are_told_in_bytes() -> None:
    launch = bound("vector_add", {"n": 5000})
    stream_program = arrange(lower(launch.module(), launch.launch), MACHINE)
    small = replace(MACHINE, rows=1)
    with pytest.raises(CapacityError) as error:
        schedule(stream_program, small)
    assert error.value.code == "TFW0690"
    assert error.value.needed > 0 and error.value.unit == "bytes"


def test_instructions_of_a_program_issue_when_the_schedule_says() -> None:
    launch = bound("softmax", {"rows": 5, "columns": 700})
    timed = schedule(arrange(lower(launch.module(), launch.launch), MACHINE), MACHINE)
    issued = {name: [*_times(name, timed.issues)] for name in queues(timed.issues, MACHINE)}
    for name, insts in queues(timed.issues, MACHINE).items():
        now, found = 0, []
        for number, inst in enumerate(insts):
            if inst.op == "NOP":
                now += inst.imm
            elif inst.op == "REP":
                burst = insts[number - 1].burst
                now -= burst
                found += [now + (k + 1) * inst.imm + i for k in range(inst.burst) for i in range(burst)]
                now += inst.burst * inst.imm + burst
            else:
                found += range(now, now + inst.burst)
                now += inst.burst
        assert sorted(found) == sorted(issued[name])
    assert timed.cycles == max(last_event(MACHINE, issue) for issue in timed.issues) + 20


def _times(name: str, issues: Sequence[DemandedIssue]) -> list[int]:
    """Every cycle in which the schedule has a queue issue something."""
    return [
        issue.cycle + k * issue.period + i
        for issue in issues if issue.queue == name for k in range(issue.repeats) for i in range(issue.inst.burst)
    ]
