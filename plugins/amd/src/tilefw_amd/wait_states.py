"""The wait states of gfx942 as core's pass reads them: the rules of `legal`, asked of machine instructions.

The rules speak of encoded instructions, so that each machine instruction is encoded for them once.
"""

from __future__ import annotations

import functools

from tilefw.api.machine import Inst, Part, RegisterSets, WaitStateModel
from tilefw_amd import machine_inst
from tilefw_amd.isa.form import Form
from tilefw_amd.isa.inst import Inst as Encoded
from tilefw_amd.legal import MATRIX_RULES, MOST, RULES
from tilefw_amd.waits import FIRST, NAMES, as_set

_RULES = (*MATRIX_RULES, *RULES)
_LONGEST_PAUSE = 16  # wait states of one S_NOP: its immediate has four bits and counts from one (CDNA3 ISA, "SOPP", S_NOP)


def model() -> WaitStateModel:
    """The rules for one function: what is found of its instructions is kept with them."""
    encoded = _Encoded()
    horizons = [rule.states if isinstance(rule.states, int) else MOST for rule in _RULES]
    return WaitStateModel(horizons, FIRST, NAMES, encoded.leaves, encoded.touches, encoded.needed, states, pause)


class _Encoded:
    """The instructions of a function in their encodings."""

    def __init__(self) -> None:
        self._known: dict[Inst, Encoded] = {}

    def _of(self, inst: Inst) -> Encoded:
        found = self._known.get(inst)
        if found is None:
            found = self._known[inst] = machine_inst.instruction(inst)
        return found

    def leaves(self, inst: Inst, sets: RegisterSets) -> list[Part]:
        found = self._of(inst)
        parts = ((rule, as_set(_RULES[rule].leaves(found))) for rule in _leaving(found.form))
        return [Part(rule, registers) for rule, registers in parts if registers]

    def touches(self, inst: Inst, sets: RegisterSets) -> list[Part]:
        found = self._of(inst)
        parts = ((rule, as_set(_RULES[rule].touches(found))) for rule in _touching(found.form))
        return [Part(rule, registers) for rule, registers in parts if registers]

    def needed(self, rule: int, producer: Inst, consumer: Inst) -> int:
        needed = _RULES[rule].states
        return needed if isinstance(needed, int) else needed(self._of(producer), self._of(consumer))


@functools.cache
def _leaving(form: Form) -> tuple[int, ...]:
    """The rules under which instructions of the form may leave something."""
    return tuple(number for number, rule in enumerate(_RULES) if rule.first(form))


@functools.cache
def _touching(form: Form) -> tuple[int, ...]:
    """The rules under which they may come too early."""
    return tuple(number for number, rule in enumerate(_RULES) if rule.after(form))


def states(inst: Inst) -> int:
    """One, or what S_NOP says."""
    return int(inst.uses[0]) + 1 if inst.opcode == "s_nop" else 1


def pause(count: int) -> list[Inst]:
    """S_NOPs that give so many wait states together."""
    return [Inst("s_nop", (), (min(left, _LONGEST_PAUSE) - 1,)) for left in range(count, 0, -_LONGEST_PAUSE)]
