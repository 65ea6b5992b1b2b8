"""Forward dataflow analysis: the state at the entry of each block, to a fixed point, for passes that insert instructions.

A state is what holds at a program point on every path to it; `meet` merges the states of two paths. A branch leaves a block from
the middle, so a block has a state at each branch as well as at the end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from tilefw.machine.flow import exits
from tilefw.machine.inst import Function, Inst
from tilefw.machine.table import InstructionTable

State = TypeVar("State")
Found = TypeVar("Found")


class ForwardAnalysis(ABC, Generic[State, Found]):
    """The transfer function of a block: from the state at its entry to the states at its exits, with what it finds in between.

    The last result for each block is cached: the pass that acts on it enters each block with the state of the fixed point."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[State, dict[int, State], list[tuple[int, Found]]]] = {}

    def states(self, insts: Sequence[Inst], entry: State) -> dict[int, State]:
        """The states behind each branch, and at -1 that behind the last instruction."""
        return self.through(insts, entry)[0]

    def through(self, insts: Sequence[Inst], entry: State) -> tuple[dict[int, State], list[tuple[int, Found]]]:
        """The states as `states` gives them, and what was found, by the index of its instruction."""
        last = self._last.get(id(insts))
        if last is None or last[0] != entry:
            last = self._last[id(insts)] = (entry, *self._through(insts, entry))
        return last[1], last[2]

    @abstractmethod
    def _through(self, insts: Sequence[Inst], entry: State) -> tuple[dict[int, State], list[tuple[int, Found]]]:
        """What `through` gives, computed anew."""


def entries(
    function: Function, table: InstructionTable, start: State,
    through: Callable[[Sequence[Inst], State], dict[int, State]], meet: Callable[[State, State], State],
) -> list[State | None]:
    """The state at the entry of each block, None where it is unreachable. `through` gives, for the instructions of a block and
    the state at its entry, the state after each branch by the branch's index, and the state at the end at -1."""
    edges = exits(function, table)
    found: list[State | None] = [None] * len(function.blocks)
    found[0] = start
    work = {0}
    while work:
        number = min(work)  # in layout order: what comes before a loop is there when the loop is gone through
        work.remove(number)
        entry = found[number]
        assert entry is not None
        states = through(function.blocks[number].insts, entry)
        for place, successor in edges[number]:
            known = found[successor]
            met = states[place] if known is None else meet(known, states[place])
            if met != known:
                found[successor] = met
                work.add(successor)
    return found


def inserted(insts: Sequence[Inst], before: Sequence[tuple[int, Sequence[Inst]]]) -> list[Inst]:
    """The instructions with others inserted before those at the given indexes, which ascend. The inserted ones get the source
    location of the instruction that they precede."""
    result: list[Inst] = []
    done = 0
    for place, several in before:
        result += insts[done:place]
        for inst in several:
            inst.place = insts[place].place
        result += several
        done = place
    result += insts[done:]
    return result
