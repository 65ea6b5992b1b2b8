"""What is known of an instruction before it runs on a processor: its cost, registers, waits, and the barrier that it comes to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilefw.sim.program import Barrier, Branch, Immediate, Jump
from tilefw.timing.chip_timing import ChipTiming, InstructionCost


@dataclass(frozen=True, slots=True)
class BarrierFacts:
    """A barrier of a workgroup: its number, the waves that meet there (0: all that there are), and whether one that comes waits."""

    number: int
    waves: int
    waits: bool


@dataclass(frozen=True, slots=True)
class InstructionFacts:
    """An instruction's cost, the registers that it writes, and with them those that it reads,
    its flow, its waits, whether each scheduler has a pipe of its own for it, and whether all that it does is to give results."""

    cost: InstructionCost
    writes: tuple[int, ...]
    meeting: BarrierFacts | None
    branch: bool
    limits: tuple[tuple[str, int], ...]
    begins: tuple[tuple[str, tuple[int, ...], bool], ...]
    commits: tuple[str, ...]
    registers: tuple[int, ...]
    private: bool
    plain: bool


def facts_of(chip: ChipTiming, instruction: Any, lanes: int) -> InstructionFacts:
    """The facts of an instruction on a chip whose waves have so many `lanes`."""
    reads = [r for o in instruction.sources for r in _registers(o)]
    if instruction.guard is not None:
        reads.append(instruction.guard.register.index)
    writes = [r for o in instruction.destinations for r in _registers(o)]
    flow = instruction.flow
    limits = () if instruction.waits is None else instruction.waits.limits
    begins = tuple((issue.queue, issue.pending, issue.grouped) for issue in instruction.issues)
    branch = isinstance(flow, Branch | Jump)
    commits = tuple(instruction.commits)
    cost = chip.cost(instruction)
    meeting = _meeting(instruction, lanes)
    private = chip.pipes[cost.pipe] == "scheduler"
    registers = tuple(dict.fromkeys((*reads, *writes)))
    plain = not (cost.role or begins or commits)
    return InstructionFacts(cost, tuple(writes), meeting, branch, tuple(limits), begins, commits, registers, private, plain)


def _meeting(instruction: Any, lanes: int) -> BarrierFacts | None:
    """The barrier of a workgroup that an instruction comes to. A number or count that is in a register is not known: of such a
    barrier all waves are taken to meet."""
    flow = instruction.flow
    if not isinstance(flow, Barrier) or flow.scope != "workgroup":
        return None
    known = [source.value if isinstance(source, Immediate) else 0 for source in instruction.sources]
    threads = known[1] if flow.counted and len(known) > 1 else 0
    number = known[0] if known else 0
    return BarrierFacts(number, threads if flow.counts == "waves" else -(-threads // lanes), flow.action == "sync")


def _registers(operand: Any) -> tuple[int, ...]:
    parts = getattr(operand, "parts", None)
    if parts is not None:
        return tuple(part.index for part in parts)
    index = getattr(operand, "index", None)
    return () if index is None else (index,)
