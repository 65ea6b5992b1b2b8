"""Replays a block before and after scheduling and trusts nothing of either: every read must find the same write.

Each instruction is given what it saw: for each register that it reads, the instruction that wrote it last; for each access, the
writes (for a write also the reads) before it that may access the same bytes, the fence that precedes it, and for a volatile one
the volatile access before it. Equal sights, and
equal last writers at the end of the block, mean equal results. (Nothing here comes from the graph that the scheduler goes by.)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from tilefw.api.errors import InternalError
from tilefw.machine.inst import Inst
from tilefw.machine.liveness import Unit
from tilefw.machine.table import InstructionTable

SHARED = "shared"
_START = None  # who wrote what is there when the block begins


def check_schedule(
    before: Sequence[Inst], after: Sequence[Inst], function: Iterable[Inst], table: InstructionTable, disjoint: bool, where: str
) -> None:
    """Raises InternalError with the first instruction of `after`, a block's order, that does not see what it saw in `before`.

    `function` are all instructions of the function, in any order; `disjoint`: buffers of different arguments do not overlap.
    """
    if len(before) != len(after) or set(map(id, before)) != set(map(id, after)):
        raise InternalError(f"scheduling of {where} lost or made instructions")
    changing = _changing(function, table) if disjoint else None
    wanted, found = _ScheduleReplay(table, changing), _ScheduleReplay(table, changing)
    sights = {id(inst): wanted.step(inst) for inst in before}
    for inst in after:
        if found.step(inst) != sights[id(inst)]:
            raise InternalError(f"scheduling of {where}: '{inst}' sees another order than in the source")
    if found.writers != wanted.writers:
        raise InternalError(f"scheduling of {where}: a register does not end with the value that was written last")


class _ScheduleReplay:
    """The state of one order as it goes. `changing`: the buffers that are written at all, where buffers do not overlap."""

    def __init__(self, table: InstructionTable, changing: frozenset[int] | None) -> None:
        self.writers: dict[Unit, int] = {}
        self._table = table
        self._changing = changing
        self._fence: int | None = None
        self._behind: set[int] = set()  # accesses since the fence
        self._branches = 0
        self._volatile: int | None = None
        # Since the fence, by space and buffer: how many writes there were and which was the last; the reads.
        self._written: dict[tuple[str, int], tuple[int, int]] = {}
        self._read: dict[tuple[str, int], set[int]] = {}

    def step(self, inst: Inst) -> Hashable:
        """What an instruction sees; the state goes on."""
        registers = tuple(self.writers.get(unit, _START) for piece in inst.reads() for unit in piece.units)
        memory = self._memory(inst)
        branches = self._branches
        volatile = self._volatile if inst.volatile else None
        for piece in inst.writes():
            for unit in piece.units:
                self.writers[unit] = id(inst)
        self._branches += bool(inst.targets or self._table.traits(inst.opcode).terminator)
        if inst.volatile:
            self._volatile = id(inst)
        return registers, memory, branches, volatile

    def _memory(self, inst: Inst) -> Hashable:
        its = self._table.traits(inst.opcode)
        if not its.memory:
            return self._pass_fence(inst) if its.effects else None
        apart = self._changing is not None or its.memory == SHARED
        buffer = inst.buffer if inst.buffer is not None and apart else -1
        constant = not inst.volatile and its.memory != SHARED and buffer >= 0
        if constant and self._changing is not None and self._changing.isdisjoint({buffer, -1}):
            return None
        self._behind.add(id(inst))
        here = (its.memory, buffer)
        seen: Hashable = tuple(sorted((where, *last) for where, last in self._written.items() if _meet(where, here)))
        if its.effects:
            seen = seen, frozenset().union(*(reads for where, reads in self._read.items() if _meet(where, here)))
            self._written[here] = (self._written.get(here, (0, 0))[0] + 1, id(inst))
        else:
            self._read.setdefault(here, set()).add(id(inst))
        return self._fence, seen

    def _pass_fence(self, inst: Inst) -> Hashable:
        passed = (self._fence, frozenset(self._behind))
        self._fence, self._behind, self._written, self._read = id(inst), set(), {}, {}
        return passed


def _changing(function: Iterable[Inst], table: InstructionTable) -> frozenset[int]:
    """The buffers outside of shared memory that something may write, -1 for any."""
    acting = ((inst, table.traits(inst.opcode)) for inst in function)
    return frozenset(
        -1 if inst.buffer is None else inst.buffer
        for inst, its in acting
        if its.effects and its.memory != SHARED and (its.memory or inst.buffer is not None)
    )


def _meet(a: tuple[str, int], b: tuple[str, int]) -> bool:
    """Whether two accesses may have a byte in common."""
    return a[0] == b[0] and (a[1] == b[1] or -1 in (a[1], b[1]))
