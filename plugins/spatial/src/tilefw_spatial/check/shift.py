"""What another time of issue by a cycle would do to one instruction: break a constraint, change what is computed, or nothing.

Harmless is only what is proved so: every constraint holds, the count of cycles is the same, and every operand, row, weight and
accumulator still comes from the very instruction and vector from which it came.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tilefw_spatial.check.checker import Judged, judge
from tilefw_spatial.check.flow import HOST
from tilefw_spatial.machine import Machine
from tilefw_spatial.program import QueueInst, SpatialProgram

MAX_IDLE = 65535


@dataclass(frozen=True, slots=True)
class ShiftVerdict:
    """What a shift does; `reasons` say why it is not harmless."""

    harmless: bool
    reasons: tuple[str, ...] = ()


def movable(program: SpatialProgram) -> Iterator[tuple[int, str, int]]:
    """Every instruction that can be asked about: chip, queue, index. A repetition moves with what it repeats."""
    for chip, code in enumerate(program.chips):
        for name, words in code.queues.items():
            yield from ((chip, name, index) for index, inst in enumerate(words) if inst.op not in ("NOP", "REP"))


def shift(
    program: SpatialProgram, machine: Machine, chip: int, queue: str, index: int, by: int, sound: Judged | None = None
) -> ShiftVerdict:
    """What it would do to issue one instruction `by` cycles later (earlier below 0), all others as they are.

    `sound` is what `judge` says of the program, where it is known already."""
    moved = shifted(program, chip, queue, index, by)
    if moved is None:
        return ShiftVerdict(False, (f"{queue} has no cycle for it: another instruction issues there",))
    before, after = sound or judge(program, machine), judge(moved, machine)
    if after.problems:
        return ShiftVerdict(False, tuple(str(problem) for problem in after.problems))
    difference = before.flow.difference(after.flow)
    if difference is None:
        return ShiftVerdict(True)
    taker, what = difference
    who = str(after.bursts[taker]) if taker > HOST else "the host"
    return ShiftVerdict(False, (f"{who} {what}",))


def shifted(program: SpatialProgram, chip: int, queue: str, index: int, by: int) -> SpatialProgram | None:
    """The program with one instruction `by` cycles later: idle words before and behind it change. None where there are too few."""
    code = program.chips[chip]
    words = code.queues[queue]
    end = index + 1 + (index + 1 < len(words) and words[index + 1].op == "REP")
    before, rest = _idle(reversed(words[:index])), _idle(words[end:])
    if before + by < 0 or (rest - by < 0 and end < len(words)):
        return None
    kept, left = _without(words[:index], before, last=True), _without(words[end:], rest, last=False)
    behind = _nops(rest - by) if left else ()
    changed = (*kept, *_nops(before + by), *words[index:end], *behind, *left)
    chips = [*program.chips]
    chips[chip] = replace(code, queues={**code.queues, queue: changed})
    return replace(program, chips=tuple(chips))


def _idle(words: Sequence[QueueInst] | Iterator[QueueInst]) -> int:
    """Idle cycles at the begin of words."""
    total = 0
    for inst in words:
        if inst.op != "NOP":
            break
        total += inst.imm
    return total


def _without(words: Sequence[QueueInst], idle: int, last: bool) -> tuple[QueueInst, ...]:
    """Words without the idle ones at one end."""
    found = [*words]
    while idle:
        idle -= found.pop(-1 if last else 0).imm
    return tuple(found)


def _nops(cycles: int) -> tuple[QueueInst, ...]:
    whole, rest = divmod(cycles, MAX_IDLE)
    return (QueueInst("NOP", imm=MAX_IDLE),) * whole + ((QueueInst("NOP", imm=rest),) if rest else ())
