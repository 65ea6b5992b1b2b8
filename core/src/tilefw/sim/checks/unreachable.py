"""unreachable, part of `leftovers` where races are looked for too: instructions that no path from the entry leads to. A warning.

It makes no result wrong by itself, and compilers drop such code: what stands behind a branch that always leaves is the trace of
a condition that was lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from tilefw.sim.checks.check import Check
from tilefw.sim.engine.state import LaunchState
from tilefw.sim.program import Branch, BranchTable, Call, Exit, Instruction, Jump, Return

CODE = "TFW0816"


class Unreachable(Check):
    """Reports every stretch of code that cannot run, at its first instruction."""

    name = "leftovers"

    @classmethod
    def made_for(cls, launch: LaunchState) -> Self | None:
        return cls(launch) if "races" in launch.options.checks else None

    def finish(self) -> None:
        for instruction in first_unreachable(self.launch.program.instructions):
            self.launch.diagnostics.reporter.add(
                self.name, CODE, "no path leads to this instruction", instruction, severity="warning",
                note="the branch or exit before it always leaves: was its condition lost?",
            )


def first_unreachable(instructions: Sequence[Instruction]) -> list[Instruction]:
    """The first instruction of every unreachable stretch, in order. Where a jump leads is not known before it runs."""
    if any(isinstance(i.flow, Jump) for i in instructions):
        return []
    seen: set[int] = set()
    entries = [0]
    while entries:
        index = entries.pop()
        while index < len(instructions) and index not in seen:
            seen.add(index)
            targets, falls_through = _following(instructions[index])
            entries += targets
            if not falls_through:
                break
            index += 1
    return [i for i in instructions if i.index not in seen and (i.index == 0 or i.index - 1 in seen)]


def _following(instruction: Instruction) -> tuple[Sequence[int], bool]:
    """Where an instruction may lead besides the next one, and whether it may lead to the next one."""
    flow, guarded = instruction.flow, instruction.guard is not None
    if isinstance(flow, Branch):
        return (flow.target,), guarded or instruction.meaning is not None
    if isinstance(flow, BranchTable):
        return flow.targets, guarded
    if isinstance(flow, Call):
        return (flow.target,), True
    return (), guarded or not isinstance(flow, Exit | Return)
