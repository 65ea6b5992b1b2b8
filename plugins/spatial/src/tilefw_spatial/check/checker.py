"""All constraints of a program, derived anew from the binary: by bursts, never by cycles.

    problems = check(program, machine)                           # an empty list: all hold
    verdict = shift(program, machine, chip, queue, place, by)    # what a cycle more or less would do

It has the machine file, the table of instructions and the program's form in common with the scheduler and the simulators, and no
code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilefw_spatial.check.effects import last_event
from tilefw_spatial.check.flow import StreamFlow
from tilefw_spatial.check.lines import check_lines
from tilefw_spatial.check.links import check_links
from tilefw_spatial.check.planes import check_planes
from tilefw_spatial.check.problem import CYCLES, PROGRAM, CheckedBurst, Problem
from tilefw_spatial.check.slices import check_slices
from tilefw_spatial.check.unroll import unroll
from tilefw_spatial.machine import Machine
from tilefw_spatial.program import SpatialProgram
from tilefw_spatial.valid import program_faults


@dataclass(frozen=True, slots=True)
class Judged:
    """What the checker derives from a program: its problems, its bursts, and the source of every value."""

    problems: tuple[Problem, ...]
    bursts: tuple[CheckedBurst, ...]
    flow: StreamFlow


def check(program: SpatialProgram, machine: Machine) -> list[Problem]:
    """All constraints that a program breaks, each with its instruction and cycle; none for a sound one."""
    return list(judge(program, machine).problems)


def judge(program: SpatialProgram, machine: Machine) -> Judged:
    """A program's problems and its flow; of what is no program of the machine only that."""
    faults = tuple(_faults(program, machine))
    if faults:
        return Judged(faults, (), StreamFlow())
    bursts, problems = unroll(program, machine)
    by_lines, edges = check_lines(machine, bursts)
    by_slices, rows = check_slices(machine, program, bursts)
    by_planes, weights, accumulators = check_planes(machine, bursts)
    by_links, links = check_links(machine, bursts)
    problems += [*by_lines, *by_slices, *by_planes, *by_links, *_cycles(program, machine, bursts)]
    return Judged(tuple(problems), tuple(bursts), StreamFlow([*edges, *weights, *links], {**rows, **accumulators}))


def cycles(bursts: list[CheckedBurst], machine: Machine) -> int:
    """Cycles from the first to the last superlane's last event."""
    events = [event for burst in bursts if (event := last_event(machine, burst)) is not None]
    return max(events, default=-1) + 1 + machine.skew


def _cycles(program: SpatialProgram, machine: Machine, bursts: list[CheckedBurst]) -> Iterator[Problem]:
    found = cycles(bursts, machine)
    if found != program.cycles:
        yield Problem(CYCLES, f"the program takes {found} cycles and says {program.cycles}")


def _faults(program: SpatialProgram, machine: Machine) -> Iterator[Problem]:
    if program.machine_hash != machine.hash:
        yield Problem(PROGRAM, f"the program was made for another machine file than this {machine.name}")
        return
    for fault in program_faults(machine, program):
        yield Problem(PROGRAM, fault)
    for chip, code in enumerate(program.chips):
        for name, words in code.queues.items():
            index = next((i for i, inst in enumerate(words) if inst.op == "IFETCH"), None)
            if index is not None:
                message = f"{name} fetches instructions: what runs is not in the program"
                yield Problem(PROGRAM, message, chip, name, index)
