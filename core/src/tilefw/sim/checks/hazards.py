"""hazards: a result may not be touched too soon: a consumer needs wait states between itself and what produced a register of it.

A past is the set of recent productions, each with the wait states since; one that is older than its rule's horizon is
forgotten. Of several by one instruction under one rule the youngest is the strictest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilefw.sim.checks.check import Check
from tilefw.sim.program import HazardRule, Hazards, Instruction, Program
from tilefw.sim.tracking.history import Found

CODE = "TFW0821"
Production = tuple[int, int]
"""(number of the rule, number of the producing instruction)."""
Past = tuple[tuple[Production, int], ...]


class WaitStates(Check):
    """Follows the fresh results of each wave."""

    name = "hazards"

    @classmethod
    def tracker(cls, program: Program) -> HazardTracker | None:
        if program.hazards is None or not program.hazards.rules:
            return None
        return HazardTracker(program.hazards, program.instructions, program.register_names)


class HazardTracker:
    """The tracker of fresh results."""

    start: Past = ()

    def __init__(self, hazards: Hazards, instructions: Sequence[Instruction], register_names: Sequence[str]) -> None:
        self._rules = hazards.rules
        self._wait_states = hazards.wait_states
        self._producing = hazards.producing or (lambda instruction: range(len(hazards.rules)))
        self._instructions = instructions
        self._names = register_names
        self._produced: dict[int, tuple[tuple[int, frozenset[int]], ...]] = {}
        self._consumed: dict[tuple[int, int], frozenset[int]] = {}

    def through(self, instructions: Sequence[Instruction], past: Past) -> tuple[Past, list[Found]]:
        ages = dict(past)
        faults: list[Found] = []
        for instruction in instructions:
            if ages:
                faults += self._faults(instruction, ages)
                self._age(ages, self._wait_states(instruction))
            for rule, _ in self._productions(instruction):
                ages[rule, instruction.index] = 0
        return tuple(sorted(ages.items())), faults

    def _age(self, ages: dict[Production, int], states: int) -> None:
        for production, age in list(ages.items()):
            if age + states < self._rules[production[0]].horizon:
                ages[production] = age + states
            else:
                del ages[production]

    def _productions(self, instruction: Instruction) -> tuple[tuple[int, frozenset[int]], ...]:
        """(rule, registers) for each rule under which the instruction produces something."""
        known = self._produced.get(instruction.index)
        if known is None:
            known = self._produced[instruction.index] = tuple(
                (number, registers) for number in self._producing(instruction)
                if (registers := frozenset(self._rules[number].produces(instruction)))
            )
        return known

    def _consumption(self, rule: int, instruction: Instruction) -> frozenset[int]:
        known = self._consumed.get((rule, instruction.index))
        if known is None:
            known = self._consumed[rule, instruction.index] = frozenset(self._rules[rule].consumes(instruction))
        return known

    def _faults(self, instruction: Instruction, ages: dict[Production, int]) -> list[Found]:
        """The production that lacks the most wait states, if any lacks some."""
        worst: tuple[int, Found] | None = None
        for (number, producer), age in ages.items():
            consumed = self._consumption(number, instruction)
            if not consumed:
                continue
            produced = dict(self._productions(self._instructions[producer]))[number]
            if produced.isdisjoint(consumed):
                continue
            rule, other = self._rules[number], self._instructions[producer]
            needed = rule.needed(other, instruction)
            assert needed <= rule.horizon, f"{rule.name} needs {needed} wait states, beyond its horizon of {rule.horizon}"
            if needed > age and (worst is None or needed - age > worst[0]):
                worst = needed - age, self._found(rule, instruction, other, produced & consumed, age, needed)
        return [] if worst is None else [worst[1]]

    def _found(
        self, rule: HazardRule, instruction: Instruction, other: Instruction, registers: Iterable[int], age: int, needed: int
    ) -> Found:
        register = min(registers)
        name = self._names[register] if register < len(self._names) else f"register {register}"
        missing = needed - age
        return Found(
            "hazards", CODE, f"{name} is accessed {_states(age)} after it was produced, {needed} are needed", instruction, other,
            f"{_states(missing)} missing: {rule.name} ({rule.section})",
        )


def _states(count: int) -> str:
    return "1 wait state" if count == 1 else f"{count} wait states"
