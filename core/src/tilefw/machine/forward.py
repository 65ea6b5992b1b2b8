"""What may hold at the entry of each block, found forward along control to a fixed point, for passes that put instructions in.

A state is what holds at a place, whatever way led there; `meet` is what holds of two. Branches leave a block where they stand, so a
walk through a block gives the state at each of them as well as at the end.
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
    """Goes through blocks of one function, from the state at the entry to those at the ways out, and finds something at places on
    the way. What it found last in a block is kept: the walk that acts on it enters in the states that the search ended with."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[State, dict[int, State], list[tuple[int, Found]]]] = {}

    def states(self, insts: Sequence[Inst], entry: State) -> dict[int, State]:
        """The states behind each branch, and at -1 that behind the last instruction."""
        return self.through(insts, entry)[0]

    def through(self, insts: Sequence[Inst], entry: State) -> tuple[dict[int, State], list[tuple[int, Found]]]:
        """The states as `states` gives them, and what was found, by place."""
        last = self._last.get(id(insts))
        if last is None or last[0] != entry:
            last = self._last[id(insts)] = (entry, *self._through(insts, entry))
        return last[1], last[2]

    @abstractmethod
    def _through(self, insts: Sequence[Inst], entry: State) -> tuple[dict[int, State], list[tuple[int, Found]]]:
        """What `through` gives, found anew."""


def entries(
    function: Function, table: InstructionTable, start: State,
    through: Callable[[Sequence[Inst], State], dict[int, State]], meet: Callable[[State, State], State],
) -> list[State | None]:
    """The state at the entry of each block, None where control never comes. `through` gives, for the instructions of a block and
    the state at its entry, the states behind each branch by its place, and that at the end at -1."""
    ways = exits(function, table)
    found: list[State | None] = [None] * len(function.blocks)
    found[0] = start
    work = {0}
    while work:
        number = min(work)  # in layout order: what comes before a loop is there when the loop is gone through
        work.remove(number)
        entry = found[number]
        assert entry is not None
        states = through(function.blocks[number].insts, entry)
        for place, successor in ways[number]:
            known = found[successor]
            met = states[place] if known is None else meet(known, states[place])
            if met != known:
                found[successor] = met
                work.add(successor)
    return found


def inserted(insts: Sequence[Inst], before: Sequence[tuple[int, Sequence[Inst]]]) -> list[Inst]:
    """The instructions with others in front of those at the places, which ascend; these count as of the same source line."""
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
