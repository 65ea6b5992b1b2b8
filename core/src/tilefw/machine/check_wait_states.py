"""Replays wait states and trusts nothing of them: from every instruction back along all paths, as far as a rule reaches.

The pass goes forward from producers. This goes backward from each consumer, and asks of every instruction on the way whether it is
a producer that is closer than the wait states that the rules need.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tilefw.api.errors import InternalError
from tilefw.machine.flow import BlockExit, exits, reached
from tilefw.machine.inst import Function, Inst
from tilefw.machine.table import InstructionTable

Numbers = frozenset[int]


@dataclass(frozen=True, slots=True)
class PairRules:
    """What the rules say of a producer and a consumer: `leaves` and `accesses` are registers by rule (any hashable name), `needed`
    the wait states between two instructions under one. `states` are those that an instruction gives, `horizon` the most
    that are ever needed."""

    leaves: Callable[[Inst], Mapping[object, Numbers]]
    accesses: Callable[[Inst], Mapping[object, Numbers]]
    needed: Callable[[object, Inst, Inst], int]
    states: Callable[[Inst], int]
    horizon: int


def check_wait_states(function: Function, table: InstructionTable, rules: PairRules) -> None:
    """Check that every two instructions are at least as many wait states apart as `rules` ask.

    Raises InternalError with the first two that are not, and both numbers.
    """
    edges = exits(function, table)
    before = _before(function, edges)
    for block in reached(edges):
        for place, inst in enumerate(function.blocks[block].insts):
            if accessed := rules.accesses(inst):
                _look_back(function, before, rules, (block, place), accessed)


def _before(function: Function, edges: Sequence[Sequence[BlockExit]]) -> list[list[tuple[int, int]]]:
    """For each block the places, (block, how many of its instructions are gone through), from which control comes."""
    found: list[list[tuple[int, int]]] = [[] for _ in function.blocks]
    for number in reached(edges):
        for place, successor in edges[number]:
            found[successor].append((number, len(function.blocks[number].insts) if place < 0 else place + 1))
    return found


def _look_back(
    function: Function, before: list[list[tuple[int, int]]], rules: PairRules, consumer: tuple[int, int],
    accessed: Mapping[object, Numbers],
) -> None:
    """From right before the consumer back, until so many wait states were given that no rule reaches further."""
    inst = function.blocks[consumer[0]].insts[consumer[1]]
    nearest: dict[tuple[int, int], int] = {}
    work = [(*consumer, 0)]
    while work:
        block, end, given = work.pop()
        insts = function.blocks[block].insts
        while end and given < rules.horizon:
            end -= 1
            _check_pair(function.name, rules, insts[end], inst, accessed, given)
            given += rules.states(insts[end])
        if given >= rules.horizon:
            continue
        for place in before[block]:
            if given < nearest.get(place, rules.horizon):
                nearest[place] = given
                work.append((*place, given))


def _check_pair(
    name: str, rules: PairRules, producer: Inst, consumer: Inst, accessed: Mapping[object, Numbers], given: int
) -> None:
    for rule, registers in rules.leaves(producer).items():
        both = registers & accessed.get(rule, frozenset())
        if both and (needed := rules.needed(rule, producer, consumer)) > given:
            raise InternalError(
                f"wait states of {name}: '{consumer}' accesses {min(both)} {given} wait states after '{producer}', "
                f"{needed} are needed ({rule})"
            )
