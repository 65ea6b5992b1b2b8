"""Wait states as core's pass reads them: the rules of `legal`, once for all instructions of one shape.

The rules speak of encoded instructions, and a shape is all of an instruction that they look at besides the numbers of its
registers: opcode, files and widths of operands, modifiers. One instruction of each shape is encoded, with registers of its own
for every operand, so that what a rule says of it tells which operands are meant.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from functools import partial

from tilefw.api.integers import round_up
from tilefw.api.machine import Function, Inst, Operand, Profile, Share, Slice, WaitStateModel
from tilefw_amd.isa.meaning.operand_roles import Part
from tilefw_amd.isa.model import Form, MCInst
from tilefw_amd.isa.registers import SGPRS
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.machine import machine_inst
from tilefw_amd.machine.hazards import MATRIX_RULES, RULES
from tilefw_amd.machine.traits import CLASSES, SCALARS
from tilefw_amd.machine.waits import FIRST, NAMES, as_set

_RULES = (*MATRIX_RULES, *RULES)
_LONGEST_PAUSE = 16  # wait states of one S_NOP: its immediate has four bits and counts from one (CDNA3 ISA, "SOPP", S_NOP)
# Opcodes of which the rules look at a number: the hardware register.
_NUMBERED = frozenset({"s_setreg_b32", "s_setreg_imm32_b32", "s_getreg_b32"})

Shaped = tuple[str, int, int] | str | int
"""An operand of a shape: (class, first register or -1 for any, registers); text; a number, 0 for any."""


def model(isa: InstructionSet) -> WaitStateModel:
    """The rules for one function: what is encoded of its instructions is kept."""
    encoded = functools.cache(partial(machine_inst.instruction, isa))

    def needed(rule: int, producer: Inst, consumer: Inst) -> int:
        states = _RULES[rule].states
        return states if isinstance(states, int) else states(encoded(producer), encoded(consumer))

    horizons = [rule.horizon(isa.chip) for rule in _RULES]
    return WaitStateModel(horizons, FIRST, NAMES, _Profiles(isa).of, needed, pause)


class _Profiles:
    """The profiles of one function's instructions, by their operands' shapes as numbers: a smaller thing to look up."""

    __slots__ = ("_isa", "_known", "_numbers", "_shapes")

    def __init__(self, isa: InstructionSet) -> None:
        self._isa = isa
        self._numbers: dict[Operand, int] = {}
        self._shapes: dict[Shaped, int] = {}
        self._known: dict[tuple[object, ...], Profile] = {}

    def of(self, inst: Inst) -> Profile:
        """What `profile` gives."""
        if inst.opcode in _NUMBERED or inst.opcode in ("s_nop", "s_waitcnt"):
            return profile(self._isa, inst)
        known = self._numbers
        operands = tuple([known[o] if o in known else self._number(o) for o in inst.defs + inst.uses])
        key = inst.opcode, operands, len(inst.defs), inst.tied, _again(inst), len(inst.targets)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = profile(self._isa, inst)
        return found

    def _number(self, operand: Operand) -> int:
        found = self._numbers[operand] = self._shapes.setdefault(_shaped(operand, numbered=False), len(self._shapes))
        return found


def pause(count: int) -> list[Inst]:
    """S_NOPs that give so many wait states together."""
    return [Inst("s_nop", (), (min(left, _LONGEST_PAUSE) - 1,)) for left in range(count, 0, -_LONGEST_PAUSE)]


def profile(isa: InstructionSet, inst: Inst) -> Profile:
    """What the instruction leaves and touches under which rules."""
    opcode = inst.opcode
    if opcode == "s_waitcnt":
        return _NOTHING
    if opcode == "s_nop":
        return _pause_of(int(str(inst.uses[0]), 0) + 1)
    numbered = opcode in _NUMBERED
    operands = [_shaped(operand, numbered) for operand in (*inst.defs, *inst.uses)]
    return _profile(isa, opcode, tuple(operands), len(inst.defs), inst.tied, _again(inst), len(inst.targets))


def _again(inst: Inst) -> tuple[tuple[int, int], ...]:
    """The uses that are a register which stands before them, as (place, that place): two would be more scalar registers than a
    vector instruction reads."""
    uses = inst.uses
    if len(uses) < 2 or len(set(uses)) == len(uses):
        return ()
    return tuple((i, uses.index(use)) for i, use in enumerate(uses) if isinstance(use, Slice) and uses.index(use) < i)


_NOTHING = Profile((), ())


@functools.cache
def _pause_of(states: int) -> Profile:
    return Profile((), (), states)


def _shaped(operand: Operand, numbered: bool) -> Shaped:
    if isinstance(operand, Slice):
        reg = operand.reg
        special = operand.first >= SGPRS and FIRST[reg.cls] == FIRST["s"]
        return reg.cls, operand.first if special else -1, operand.count
    if isinstance(operand, str):
        return "" if operand.startswith("offset") else operand
    return operand if numbered else 0


# --- shapes ------------------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=65536)
def _profile(
    isa: InstructionSet, opcode: str, operands: tuple[Shaped, ...], defs: int, tied: tuple[tuple[int, int], ...],
    again: tuple[tuple[int, int], ...], targets: int,
) -> Profile:
    same = {defs + use: defs + first for use, first in again} | {defs + use: definition for definition, use in tied}
    taken = _OperandRegisters(operands, same)
    written = [operand for operand in taken.operands[:defs] if isinstance(operand, Slice)]
    inst = Inst(opcode, written, taken.operands[defs:], tied=tied, targets=("label",) * targets)
    encoded = machine_inst.instruction(isa, _without_empty(inst))
    return Profile(_shares(encoded, _left(encoded.form), taken), _shares(encoded, _accessed(encoded.form), taken))


RulesByPart = tuple[tuple[Part, tuple[int, ...]], ...]


@functools.cache
def _left(form: Form) -> RulesByPart:
    """What instructions of the form leave, and the rules that ask for it."""
    return _by_part((number, rule.leaves) for number, rule in enumerate(_RULES) if rule.first(form))


@functools.cache
def _accessed(form: Form) -> RulesByPart:
    return _by_part((number, rule.accesses) for number, rule in enumerate(_RULES) if rule.after(form))


def _by_part(rules: Iterable[tuple[int, Part]]) -> RulesByPart:
    found: dict[Part, list[int]] = {}
    for number, part in rules:
        found.setdefault(part, []).append(number)
    return tuple((part, tuple(numbers)) for part, numbers in found.items())


def _shares(encoded: MCInst, rules: RulesByPart, taken: _OperandRegisters) -> tuple[Share, ...]:
    found: list[Share] = []
    for part, numbers in rules:
        registers = part(encoded)
        if registers:
            places = tuple(sorted({taken.place[n] for n in registers if n in taken.place}))
            found.append(Share(numbers, places, as_set(n for n in registers if n not in taken.place)))
    return tuple(found)


class _OperandRegisters:
    """Operands of a shape with registers of their own, but for those that are the `same` as an earlier one. `place` is the place of
    each number's operand; the registers that a shape names are at no place."""

    def __init__(self, operands: Sequence[Shaped], same: dict[int, int]) -> None:
        self._files = Function("shape", "")
        self._next: dict[int, int] = {}
        self.place: dict[int, int] = {}
        self.operands: list[Operand] = []
        for place, operand in enumerate(operands):
            self.operands.append(self.operands[same[place]] if place in same else self._operand(place, operand))

    def _operand(self, place: int, operand: Shaped) -> Operand:
        if not isinstance(operand, tuple):
            return operand
        cls, first, count = operand
        base = FIRST[cls]
        file = self._files.file(cls, SCALARS if base == FIRST["s"] else CLASSES[cls].count or 0)
        if first >= 0:
            return file.slice(first, count)
        aligned = round_up(count, 4)
        start = self._next.get(base, 0)
        self._next[base] = start + aligned
        self.place |= {base + start + n: place for n in range(count)}
        return file.slice(start, count)


def _without_empty(inst: Inst) -> Inst:
    """Without the modifiers that a shape leaves out; they stand behind all operands."""
    return Inst(inst.opcode, inst.defs, [use for use in inst.uses if use != ""], tied=inst.tied, targets=inst.targets)
