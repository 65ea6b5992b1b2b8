"""Replays wait states and trusts nothing of them: from every instruction back along all paths, as far as a rule reaches.

Where the pass goes forward with what was left, this goes backward from who touches something, and asks of each instruction on the
way whether it left that less than the needed wait states ago.
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
    """What the rules say of a producer and a consumer: `leaves` and `touches` are registers by rule (any hashable name), `needed`
    the wait states between two instructions under one. `states` are those that an instruction gives, `horizon` the most
    that are ever needed."""

    leaves: Callable[[Inst], Mapping[object, Numbers]]
    touches: Callable[[Inst], Mapping[object, Numbers]]
    needed: Callable[[object, Inst, Inst], int]
    states: Callable[[Inst], int]
    horizon: int


def check_wait_states(function: Function, table: InstructionTable, rules: PairRules) -> None:
    """Raises InternalError with the two instructions that stand too close."""
    ways = exits(function, table)
    before = _before(function, ways)
    for block in reached(ways):
        for place, inst in enumerate(function.blocks[block].insts):
            if touched := rules.touches(inst):
                _look_back(function, before, rules, (block, place), touched)


def _before(function: Function, ways: Sequence[Sequence[BlockExit]]) -> list[list[tuple[int, int]]]:
    """For each block the places, (block, how many of its instructions are gone through), from which control comes."""
    found: list[list[tuple[int, int]]] = [[] for _ in function.blocks]
    for number in reached(ways):
        for place, successor in ways[number]:
            found[successor].append((number, len(function.blocks[number].insts) if place < 0 else place + 1))
    return found


def _look_back(
    function: Function, before: list[list[tuple[int, int]]], rules: PairRules, consumer: tuple[int, int],
    touched: Mapping[object, Numbers],
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
            _compare(function.name, rules, insts[end], inst, touched, given)
            given += rules.states(insts[end])
        if given >= rules.horizon:
            continue
        for place in before[block]:
            if given < nearest.get(place, rules.horizon):
                nearest[place] = given
                work.append((*place, given))


def _compare(
    name: str, rules: PairRules, producer: Inst, consumer: Inst, touched: Mapping[object, Numbers], given: int
) -> None:
    for rule, registers in rules.leaves(producer).items():
        both = registers & touched.get(rule, frozenset())
        if both and (needed := rules.needed(rule, producer, consumer)) > given:
            raise InternalError(
                f"wait states of {name}: '{consumer}' touches {min(both)} {given} behind '{producer}', {needed} are needed ({rule})"
            )
