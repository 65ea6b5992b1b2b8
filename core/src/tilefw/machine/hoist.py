"""Loop-invariant code motion: what an instruction computes alike in every iteration stands before the loop.

Selection makes values where they are first asked for, in a loop what is only wanted there. A loop is the blocks from the target of
a branch backward, in layout order, to the branch; it is entered by falling into its first block, before whose end moved
instructions go. An instruction moves if it has no effects, reads no memory, reads only what the loop does not write, and writes
only what nobody else writes and nobody reads on a way on which it has not run. Its result is then held all through the loop, so
no more of them move than registers are left below the next of the numbers that occupancy goes by.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from tilefw.machine.flow import loops, predecessors, successors
from tilefw.machine.function_pass import FunctionPass
from tilefw.machine.inst import Function, Inst, Slice
from tilefw.machine.liveness import Liveness, Unit, analyse, effects, written_once
from tilefw.machine.table import InstructionTable, only_computes


@dataclass(frozen=True)
class Hoist(FunctionPass):
    """Moves instructions that give the same result in every iteration in front of their loop.

    `steps`: by file, the numbers of registers that are worth staying below.
    """

    name = "hoist"
    table: InstructionTable
    steps: Mapping[str, Sequence[int]]

    def run(self, function: Function) -> None:
        hoist(function, self.table, self.steps)


_SPARE = 4  # registers of a file that are left to what scheduling and allocation need


def hoist(function: Function, table: InstructionTable, steps: Mapping[str, Sequence[int]]) -> int:
    """Move what can be, out of inner loops first; how many instructions moved.

    `steps`: by file the numbers of registers that are worth staying below.
    """
    following = successors(function, table)
    found = loops(following)
    if not found:
        return 0
    before, once = predecessors(following), written_once(function)
    moved = 0
    lives: Liveness | None = None
    for start, end in found:
        inside = range(start, end + 1)
        entered = start > 0 and all(p in inside or (i == start and p == start - 1) for i in inside for p in before[i])
        if not entered:
            continue
        loop = _Loop(function, table, steps, inside, once)
        candidates = loop.candidates()
        if candidates:
            lives = lives or analyse(function, table, once)
            chosen = loop.move(candidates, lives)
            moved += len(chosen)
            if chosen:
                units = {unit for inst in chosen for piece in (*inst.reads(), *inst.writes()) for unit in piece.units}
                lives.renew(function, before, range(start - 1, end + 1), units, once)
    return moved


class _Loop:
    """One loop: the blocks `inside`."""

    def __init__(
        self, function: Function, table: InstructionTable, steps: Mapping[str, Sequence[int]], inside: range, once: frozenset[Unit]
    ) -> None:
        self.function, self.table, self.steps, self.inside, self.once = function, table, steps, inside, once
        self.blocks = [function.blocks[i] for i in inside]
        self.written = set(chain.from_iterable(
            [piece.units for block in self.blocks for inst in block.insts for piece in inst.writes()]
        ))

    def move(self, candidates: list[Inst], lives: Liveness) -> list[Inst]:
        """Move as many candidates as there is room for; those that moved."""
        chosen = self._chosen(candidates, lives)
        gone = set(chosen)
        for block in self.blocks:
            block.insts = [inst for inst in block.insts if inst not in gone]
        entry = self.function.blocks[self.inside.start - 1].insts
        at = len(entry)
        while at and entry[at - 1].targets:
            at -= 1
        entry[at:at] = chosen
        return chosen

    def candidates(self) -> list[Inst]:
        """Instructions that may move, in order."""
        found = []
        for block in self.blocks:
            for inst in block.insts:
                if self._is_invariant(inst):
                    found.append(inst)
                    self.written.difference_update(*[piece.units for piece in inst.defs])
        return found

    def _is_invariant(self, inst: Inst) -> bool:
        if not only_computes(inst, self.table):
            return False
        for piece in inst.defs:
            if not self.once.issuperset(piece.units):
                return False
        for use in inst.uses:
            if use.__class__ is Slice and (use.reg.physical or not self.written.isdisjoint(use.units)):  # type: ignore[union-attr]
                return False
        return True

    def _chosen(self, candidates: list[Inst], lives: Liveness) -> list[Inst]:
        """As many of them as there is room for, those that read others' results only with these."""
        entering = lives.live_out[self.inside.start - 1]
        headroom = self._headroom(candidates, lives)
        moving = set(candidates)
        kept = set(chain.from_iterable(
            [piece.units for block in self.blocks for inst in block.insts if inst not in moving for piece in inst.reads()]
        ))
        made = {unit: inst for inst in candidates for piece in inst.defs for unit in piece.units}
        chosen: dict[Inst, None] = {}
        for inst in candidates:
            if any(unit in made and made[unit] not in chosen for unit in _units_read(inst)):
                continue
            if any(unit in entering for piece in inst.defs for unit in piece.units):
                continue  # what an outer loop's iteration before this one left there is read again
            cost = Counter(self.table.file(u[0].cls) for piece in inst.defs for u in piece.units if u in kept)
            if all(headroom[file] >= count for file, count in cost.items()):
                headroom.subtract(cost)
                chosen[inst] = None
        return list(chosen)

    def _headroom(self, candidates: list[Inst], lives: Liveness) -> Counter[str]:
        """How many more registers of each file the loop may hold, its most held ones counted."""
        most = _pressure(self.function, self.table, self.inside, lives, self.once)
        headroom: Counter[str] = Counter()
        for file in {self.table.file(piece.reg.cls) for inst in candidates for piece in inst.defs}:
            above = [step for step in self.steps.get(file, ()) if step >= most[file] + _SPARE]
            headroom[file] = min(above, default=0) - most[file] - _SPARE if above else 0
        return headroom


def _units_read(inst: Inst) -> list[Unit]:
    return [unit for piece in inst.reads() for unit in piece.units]


def _pressure(
    function: Function, table: InstructionTable, inside: range, lives: Liveness, once: frozenset[Unit]
) -> dict[str, int]:
    """The most registers of each file that are live at once in these blocks."""
    most: Counter[str] = Counter()
    file_of = {cls: table.file(cls) for cls in table.classes}
    for i in inside:
        live = set(lives.live_out[i])
        count = Counter([file_of[reg.cls] for reg, _ in live])
        most |= count
        for inst in reversed(function.blocks[i].insts):
            plain = inst.predicate is None and not inst.implicit_uses and not inst.implicit_defs
            read, gone = (_read_units(inst), _written_units(inst)) if plain else effects(inst, once)
            for unit in gone:
                if unit in live:
                    live.discard(unit)
                    count[file_of[unit[0].cls]] -= 1
            for unit in read:
                if unit not in live:
                    live.add(unit)
                    file = file_of[unit[0].cls]
                    count[file] += 1
                    if count[file] > most[file]:
                        most[file] = count[file]
    return most


def _read_units(inst: Inst) -> Iterable[Unit]:
    """`effects` of an instruction without a predicate and implicit operands: most are so, and some units may recur."""
    return chain.from_iterable([use.units for use in inst.uses if use.__class__ is Slice])  # type: ignore[union-attr]


def _written_units(inst: Inst) -> Iterable[Unit]:
    return inst.defs[0].units if len(inst.defs) == 1 else chain.from_iterable([piece.units for piece in inst.defs])
