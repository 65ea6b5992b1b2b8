"""pending, of units that work for groups of waves (`Issue.grouped`): what a unit reads or will write is left alone before a wait.

The unit reads and writes registers at moments of its own between the issue and a wait that covers its group. So accumulators are
neither read nor written (TFW0820) except by later work of the same order, and registers that it reads are not written. The unit
sees a register as the wave left it before a fence: an access since then is a finding at the issue (TFW0829).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tilefw.sim.checks.check import Check
from tilefw.sim.program import Call, Exit, Instruction, Issue, Program, Return
from tilefw.sim.steps.operand_registers import reads, writes
from tilefw.sim.tracking.history import Found
from tilefw.sim.tracking.queues import QueuedEvent, most_left

RESULT_CODE = "TFW0820"
FENCE_CODE = "TFW0829"
LEFT_CODE = "TFW0808"
Group = frozenset[QueuedEvent]


class QueuePast(NamedTuple):
    """Of one queue: the open group, the newest closed ones in their order, all older events, and the registers of units that the
    wave has accessed since the last fence."""

    queue: str
    open: Group
    newest: tuple[Group, ...]
    older: Group
    unfenced: frozenset[int]


Past = tuple[QueuePast, ...]


class PendingGroups(Check):
    """Follows the unfinished groups of each wave."""

    name = "pending"

    @classmethod
    def tracker(cls, program: Program) -> GroupTracker | None:
        return GroupTracker(program) if _any_grouped(program) else None


class LeftGroups(Check):
    """Reports groups that no wait has covered when their wave ends."""

    name = "leftovers"

    @classmethod
    def tracker(cls, program: Program) -> LeftGroupTracker | None:
        return LeftGroupTracker(program) if _any_grouped(program) else None


def _any_grouped(program: Program) -> bool:
    return any(issue.grouped for instruction in program.instructions for issue in instruction.issues)


@dataclass(slots=True)
class _Queue:
    """One queue while a block is gone through; `kept`: how many closed groups may stay unfinished behind a wait."""

    kept: int
    open: set[QueuedEvent] = field(default_factory=set)
    newest: list[Group] = field(default_factory=list)
    older: set[QueuedEvent] = field(default_factory=set)
    unfenced: set[int] = field(default_factory=set)

    def close(self) -> None:
        self.newest.append(frozenset(self.open))
        self.open.clear()
        while len(self.newest) > self.kept:
            self.older |= self.newest.pop(0)

    def leave(self, groups: int) -> None:
        """A wait leaves so many closed groups."""
        self.older.clear()
        self.newest = self.newest[-groups:] if groups else []

    def unfinished(self) -> Iterator[tuple[QueuedEvent, str]]:
        """Each event, and what a wait for it needs."""
        for event in self.open:
            yield event, "its group must be closed, and a wait that leaves no group"
        for left, group in enumerate(reversed(self.newest)):
            for event in group:
                yield event, f"a wait that leaves at most {left} group{'s' * (left != 1)}"
        for event in self.older:
            yield event, f"a wait that leaves at most {len(self.newest)} group{'s' * (len(self.newest) != 1)}"


class GroupTracker:
    """The tracker of what units read and write."""

    def __init__(self, program: Program) -> None:
        self._instructions = program.instructions
        self._names = program.register_names
        self._most = most_left(program.instructions)
        queues: dict[str, set[int]] = {}
        for instruction in program.instructions:
            for issue in _grouped(instruction):
                queues.setdefault(issue.queue, set()).update(issue.pending, issue.read)
        self._registers = {queue: frozenset(registers) for queue, registers in queues.items()}

    @property
    def start(self) -> Past:
        nothing: Group = frozenset()
        return tuple(QueuePast(queue, nothing, (), nothing, registers) for queue, registers in sorted(self._registers.items()))

    def through(self, instructions: Sequence[Instruction], past: Past) -> tuple[Past, list[Found]]:
        work = {
            p.queue: _Queue(self._most.get(p.queue, 0), set(p.open), list(p.newest), set(p.older), set(p.unfenced)) for p in past
        }
        faults: list[Found] = []
        for instruction in instructions:
            for name, queue in work.items():
                faults += self._step(instruction, name, queue)
        return tuple(
            QueuePast(name, frozenset(q.open), tuple(q.newest), frozenset(q.older), frozenset(q.unfenced))
            for name, q in sorted(work.items())
        ), faults

    def _step(self, instruction: Instruction, name: str, queue: _Queue) -> list[Found]:
        if instruction.waits is not None and name in dict(instruction.waits.limits):
            queue.leave(dict(instruction.waits.limits)[name])
        own = [(number, issue) for number, issue in enumerate(instruction.issues) if issue.grouped and issue.queue == name]
        touched = self._registers[name].intersection((*reads(instruction), *writes(instruction)))
        faults = self._found(instruction, own, queue) if touched or own or instruction.flow is not None else []
        used = frozenset(register for _, issue in own for register in (*issue.pending, *issue.read))
        queue.unfenced |= touched - used
        queue.unfenced -= used
        queue.open.update(QueuedEvent(instruction.index, number) for number, _ in own)
        if name in instruction.commits:
            queue.close()
        if name in instruction.fences:
            queue.unfenced.clear()
        return faults

    def _found(self, instruction: Instruction, own: Sequence[tuple[int, Issue]], queue: _Queue) -> list[Found]:
        """The first register that the instruction touches too early, and the first that it has touched too late."""
        return [*list(self._too_early(instruction, own, queue))[:1], *list(self._not_fenced(instruction, own, queue))[:1]]

    def _too_early(self, instruction: Instruction, own: Sequence[tuple[int, Issue]], queue: _Queue) -> Iterator[Found]:
        read, written = frozenset(reads(instruction)), frozenset(writes(instruction))
        for event, needed in queue.unfinished():
            other = self._instructions[event.instruction]
            issue = other.issues[event.issue]
            following = {r for _, mine in own if mine.order == issue.order for r in mine.pending}
            for register in issue.pending:
                if register in following or register not in read | written:
                    continue
                verb = "read" if register in read else "written"
                message = f"{self._name(register)} is {verb} while a result for it is still to come"
                yield _fault(RESULT_CODE, message, instruction, other, needed)
            for register in written.intersection(issue.read):
                message = f"{self._name(register)} is written while a unit may still read it"
                yield _fault(RESULT_CODE, message, instruction, other, needed)

    def _not_fenced(self, instruction: Instruction, own: Sequence[tuple[int, Issue]], queue: _Queue) -> Iterator[Found]:
        for _, issue in own:
            for register in queue.unfenced.intersection((*issue.pending, *issue.read)):
                message = f"a unit works on {self._name(register)}, which the wave has accessed since the last fence"
                yield _fault(FENCE_CODE, message, instruction, instruction, "a fence of the registers")

    def _name(self, register: int) -> str:
        return self._names[register] if register < len(self._names) else f"register {register}"


class LeftGroupTracker(GroupTracker):
    """The same, looked at where waves end."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        calls = any(isinstance(instruction.flow, Call) for instruction in program.instructions)
        self._ends: tuple[type, ...] = (Exit,) if calls else (Exit, Return)

    def _found(self, instruction: Instruction, own: Sequence[tuple[int, Issue]], queue: _Queue) -> list[Found]:
        if not isinstance(instruction.flow, self._ends):
            return []
        message = "work of a unit is never waited for when its wave ends"
        left = [self._instructions[event.instruction] for event in sorted(event for event, _ in queue.unfinished())]
        note = "its results may or may not have arrived"
        return [Found("leftovers", LEFT_CODE, message, begun, instruction, note) for begun in left[:1]]


def _fault(code: str, message: str, instruction: Instruction, other: Instruction, needed: str) -> Found:
    return Found("pending", code, message, instruction, other, f"{needed} must be between them")


def _grouped(instruction: Instruction) -> Iterator[Issue]:
    return (issue for issue in instruction.issues if issue.grouped)
