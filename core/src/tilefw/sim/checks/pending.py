"""pending: what is still to come is neither read nor written before a wait covers it: bytes that an asynchronous copy will write
(TFW0805), and registers that an event in a queue will write (TFW0820)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.checks.check import Check
from tilefw.sim.floats import Array
from tilefw.sim.memory.access import Access, Piece
from tilefw.sim.memory.regions import ELEMENTS
from tilefw.sim.program import Instruction, Issue, Program
from tilefw.sim.report import first_true
from tilefw.sim.steps.operand_registers import reads, writes
from tilefw.sim.tracking.history import Found
from tilefw.sim.tracking.queues import Kind, OutstandingEvents, Past, QueuedEvent, Unfinished, most_left

COPY_CODE = "TFW0805"
RESULT_CODE = "TFW0820"


class PendingCopies(Check):
    """Looks up the flags that copies in flight have set on their destinations."""

    name = "pending"

    def access_in_flight(self, lanes: NumpyLanes, access: Access) -> None:
        size = access.size
        for piece in access.pieces:
            flags = piece.region.flags
            if flags is None:
                continue
            if not (np.bitwise_or.reduce(piece.index, axis=None) & (size - 1)):
                hit = np.take(flags.view(ELEMENTS[size]), piece.index >> (size.bit_length() - 1)) != 0
            else:
                hit = np.take(flags, piece.index[..., None] + np.arange(size)).any(axis=-1)
            hit = np.asarray(hit)
            if hit.any():
                self._report(lanes, piece, hit, access.kind)

    def _report(self, lanes: NumpyLanes, piece: Piece, hit: Array, kind: str) -> None:
        if piece.lanes is None:
            bad = np.broadcast_to(hit, lanes.frame.shape)
            index = np.broadcast_to(piece.index, lanes.frame.shape)[bad]
        else:
            bad = np.zeros(lanes.frame.shape, dtype=np.bool_)
            bad[piece.lanes] = hit
            index = piece.index[hit]
        a, b, lane = first_true(bad)
        address = int(index[0]) % max(1, piece.region.stride)
        origin = lanes.batch.copies.origin(piece.region, int(index[0]))
        verb = "load" if kind == "read" else "store"
        lanes.launch.diagnostics.reporter.add(
            self.name, COPY_CODE, f"{verb} accesses bytes that an asynchronous copy has not delivered yet",
            lanes.instruction, count=int(bad.sum()), where=lanes.locate(a, b, lane), address=address,
            other=None if origin is None else f"copy started by `{origin.text}`" + (f" ({origin.code})" if origin.code else ""),
            note="a wait for the copy, and a barrier where another thread started it, must be between the two",
        )


class PendingResults(Check):
    """Follows the unfinished events of each wave."""

    name = "pending"

    @classmethod
    def tracker(cls, program: Program) -> ResultTracker | None:
        if all(issue.grouped for i in program.instructions for issue in i.issues):
            return None
        return ResultTracker(program.instructions, program.register_names)


class ResultTracker:
    """The tracker of unfinished events."""

    start: Past = ()

    def __init__(self, instructions: Sequence[Instruction], register_names: Sequence[str]) -> None:
        self._instructions = instructions
        self._names = register_names
        self._most = most_left(instructions)

    def through(self, instructions: Sequence[Instruction], past: Past) -> tuple[Past, list[Found]]:
        work = {u.kind: OutstandingEvents(set(u.older), list(u.newest)) for u in past}
        pending = self._pending(work)
        faults: list[Found] = []
        for instruction in instructions:
            if instruction.waits is not None:
                self._wait(work, dict(instruction.waits.limits))
                pending = self._pending(work)
            if pending and not pending.keys().isdisjoint((*reads(instruction), *writes(instruction), *instruction.needs)):
                faults += self._faults(instruction, work, pending)
            for number, issue in enumerate(instruction.issues):
                if issue.grouped:
                    continue
                idle = not issue.pending or (issue.behind and pending.keys().isdisjoint(issue.behind))
                self._begin(work, None if idle else QueuedEvent(instruction.index, number), issue)
                for register in () if idle else issue.pending:
                    pending.setdefault(register, []).append((issue.queue, issue.order))
        return self._closed(work), faults

    def _issue(self, event: QueuedEvent) -> Issue:
        return self._instructions[event.instruction].issues[event.issue]

    def _pending(self, work: dict[Kind, OutstandingEvents]) -> dict[int, list[Kind]]:
        """Registers that unfinished events will write, and the kinds of these events."""
        pending: dict[int, list[Kind]] = {}
        for kind, unfinished in work.items():
            for event, _ in unfinished.events():
                for register in self._issue(event).pending:
                    pending.setdefault(register, []).append(kind)
        return pending

    def _wait(self, work: dict[Kind, OutstandingEvents], limits: dict[str, int]) -> None:
        for (queue, order), unfinished in work.items():
            if queue in limits:
                unfinished.leave(limits[queue], bool(order))

    def _begin(self, work: dict[Kind, OutstandingEvents], event: QueuedEvent | None, issue: Issue) -> None:
        # Of no order, only which events there are matters.
        kept = self._most.get(issue.queue, 0) if issue.order else 0
        work.setdefault((issue.queue, issue.order), OutstandingEvents()).begin(event, kept)

    def _closed(self, work: dict[Kind, OutstandingEvents]) -> Past:
        """The past as one value for all ways that lead to it: events that write nothing count only behind others."""
        closed = []
        for kind, unfinished in sorted(work.items()):
            newest = unfinished.newest
            first = next((place for place, event in enumerate(newest) if event is not None), len(newest))
            if unfinished.older or newest[first:]:
                closed.append(Unfinished(kind, frozenset(unfinished.older), tuple(newest[first:])))
        return tuple(closed)

    # --- faults ----------------------------------------------------------------------------------------------------------

    def _faults(self, instruction: Instruction, work: dict[Kind, OutstandingEvents], pending: dict[int, list[Kind]]) -> list[Found]:
        """The first register that the instruction touches too early: it reads it, or writes it out of order."""
        merged = sum(len(issue.merged) for issue in instruction.issues)
        read = reads(instruction)
        plain = set(read[: len(read) - merged])
        touched = [(register, "read") for register in read] + [(register, "written") for register in writes(instruction)]
        for register, verb in touched:
            allowed = () if register in plain else _own_kinds(instruction, register)
            for kind in pending.get(register, ()):
                if kind not in allowed:
                    return [self._found(instruction, register, verb, kind, work[kind])]
        needed = ((effect, kind) for effect in instruction.needs for kind in pending.get(effect, ()))
        return [self._found(instruction, effect, "needed", kind, work[kind]) for effect, kind in needed][:1]

    def _found(self, instruction: Instruction, register: int, verb: str, kind: Kind, unfinished: OutstandingEvents) -> Found:
        event, later = next((e, n) for e, n in unfinished.events() if register in self._issue(e).pending)
        name = self._names[register] if register < len(self._names) else f"register {register}"
        other = self._instructions[event.instruction]
        left = "no event" if later == 0 else f"at most {later} event" + "s" * (later > 1)
        still = "it" if verb == "needed" else "a result for it"
        return Found(
            "pending", RESULT_CODE, f"{name} is {verb} while {still} is still to come", instruction, other,
            f"a wait that leaves {left} in the queue {kind[0]} must be between them",
        )


def _own_kinds(instruction: Instruction, register: int) -> tuple[Kind, ...]:
    """Kinds of the instruction's events that write the register: earlier events of the same kind finish before these."""
    return tuple((i.queue, i.order) for i in instruction.issues if i.order and register in i.pending)
