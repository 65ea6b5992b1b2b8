"""Replays waits and trusts nothing of them: every event is followed along all paths until a wait is sure to have covered it.

Where the pass keeps one bracket of all events at a place, this follows one event at a time: it counts the later events of its
queue and order, the fewest on any path, and stops where a wait leaves no more than these. Whoever touches one of its registers
before that comes too early. What instructions read, write and begin it is told by `Seen`, which a plugin takes from the encoded
instruction, not from the tables of the pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tilefw.api.errors import InternalError
from tilefw.machine.flow import BlockExit, exits, reached
from tilefw.machine.inst import Function, Inst
from tilefw.machine.table import InstructionTable

Numbers = frozenset[int]
_NONE: Numbers = frozenset()


@dataclass(frozen=True, slots=True)
class Begun:
    """An event: its queue and order ("": finishes in any), the registers and effects that are there when it has finished, and those
    of them that it changes in part."""

    queue: str
    order: str
    pending: Numbers
    merged: Numbers = _NONE


@dataclass(frozen=True, slots=True)
class Seen:
    """What an encoded instruction does, registers by number. `limits` are the counts that it waits for itself, before it does
    anything else; `renames` gives effects that have not happened yet other numbers, once it is done."""

    reads: Numbers = _NONE
    writes: Numbers = _NONE
    needs: Numbers = _NONE
    events: tuple[Begun, ...] = ()
    limits: Mapping[str, int] = field(default_factory=dict)
    renames: Mapping[int, int] = field(default_factory=dict)


def check_waits(function: Function, table: InstructionTable, seen: Callable[[Inst], Seen]) -> None:
    """Check that no instruction uses a register before the event that it depends on is finished; `seen` gives what each one does.

    Raises InternalError with the instruction that comes too early, and the one that it must wait for.
    """
    code = [[(inst, seen(inst)) for inst in block.insts] for block in function.blocks]
    edges = exits(function, table)
    follower = _Follower(function.name, code, edges)
    for block in reached(edges):
        for place, (_, facts) in enumerate(code[block]):
            for event in facts.events:
                follower.follow(block, place, event)


class _Follower:
    """Follows events of one function."""

    def __init__(self, name: str, code: list[list[tuple[Inst, Seen]]], edges: list[list[BlockExit]]) -> None:
        self._name, self._code, self._edges = name, code, edges

    def follow(self, block: int, place: int, event: Begun) -> None:
        """From behind the instruction at the place."""
        fewest: dict[tuple[int, Numbers], int] = {}
        work = [(block, place + 1, 0, event.pending)]
        while work:
            for successor, later, pending in self._along(*work.pop(), event, self._code[block][place][0]):
                known = fewest.get((successor, pending))
                if known is None or later < known:
                    fewest[successor, pending] = later
                    work.append((successor, 0, later, pending))

    def _along(
        self, block: int, start: int, later: int, pending: Numbers, event: Begun, origin: Inst
    ) -> list[tuple[int, int, Numbers]]:
        """The edges out of a block on which the event may still be unfinished: (block, later events, what is pending)."""
        found: list[tuple[int, int, Numbers]] = []
        edges = self._edges[block]
        for place in range(start, len(self._code[block])):
            inst, facts = self._code[block][place]
            left = facts.limits.get(event.queue)
            if left is not None and (left <= later if event.order else left == 0):
                return found
            own = [e for e in facts.events if event.order and (e.queue, e.order) == (event.queue, event.order)]
            self._check(inst, facts, pending, own, origin)
            pending = pending.difference(*(e.pending for e in own))
            later += len(own)
            if not pending:
                return found
            if facts.renames:
                pending = frozenset(facts.renames.get(number, number) for number in pending)
            found += [(edge.block, later, pending) for edge in edges if edge.place == place]
        return found + [(edge.block, later, pending) for edge in edges if edge.place < 0]

    def _check(self, inst: Inst, facts: Seen, pending: Numbers, own: list[Begun], origin: Inst) -> None:
        """Whether the instruction may stand here while `pending` is to come; its `own` events write behind the one followed."""
        read = facts.reads.difference(*(e.merged for e in own))
        written = facts.writes.difference(*(e.pending for e in own))
        early = pending & (read | written | facts.needs)
        if early:
            raise InternalError(f"waits of {self._name}: '{inst}' accesses {min(early)} while '{origin}' has not finished")
