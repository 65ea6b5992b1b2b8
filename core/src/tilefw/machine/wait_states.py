"""Pauses where the hardware does not check: a consumer stands so many wait states behind what made a register of it.

Every instruction gives one wait state, a pause as many as it says. The past of a place is the set of productions that some
consumer could still come too early for, each with the fewest wait states since on any path; pasts meet by union. A consumer that
comes too early gets the pause in front of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tilefw.machine.check_wait_states import Pair, check_wait_states
from tilefw.machine.forward import entries, inserted
from tilefw.machine.function_op import FuncOp
from tilefw.machine.inst import Function, Inst
from tilefw.machine.register_sets import RegisterSets
from tilefw.machine.table import InstructionTable

Past = dict[tuple[int, Inst, int], int]
"""(rule, producer, its registers): the fewest wait states since. Productions that are past every horizon are forgotten."""


@dataclass(frozen=True, slots=True)
class Part:
    """Registers that an instruction leaves or touches under rule number `rule` (an index of `WaitStateModel.horizons`)."""

    rule: int
    registers: int


@dataclass(frozen=True)
class WaitStateModel:
    """The rules of a chip.

    `horizons`: for each rule the most wait states that any pair of instructions needs under it. `leaves` and `touches` say what an
    instruction leaves under which rules, and what it touches (see `RegisterSets`; `first` and `names` as there). `needed(rule,
    producer, consumer)` is asked of two that share a register. `states` are the wait states that an instruction gives.
    `pause` makes the instructions that give so many.
    """

    horizons: Sequence[int]
    first: Mapping[str, int]
    names: Mapping[str, int]
    leaves: Callable[[Inst, RegisterSets], Sequence[Part]]
    touches: Callable[[Inst, RegisterSets], Sequence[Part]]
    needed: Callable[[int, Inst, Inst], int]
    states: Callable[[Inst], int]
    pause: Callable[[int], list[Inst]]


@dataclass(frozen=True)
class FillWaitStates(ModulePass):
    """Puts pauses into every machine function of a module; it stands behind all passes that move or add instructions.

    With `rules`, a checker looks back from every instruction by them; it raises InternalError.
    """

    name = "fill-wait-states"
    table: InstructionTable
    model: WaitStateModel
    rules: Pair | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for machine in op.body.block.ops:
            if isinstance(machine, FuncOp):
                fill_wait_states(machine.function, self.table, self.model)
                if self.rules is not None:
                    check_wait_states(machine.function, self.table, self.rules)


def fill_wait_states(function: Function, table: InstructionTable, model: WaitStateModel) -> int:
    """Put the pauses in; how many instructions that were."""
    walk = _Walk(model)
    added = 0
    for block, entry in zip(function.blocks, entries(function, table, {}, walk.states, meet), strict=True):
        pauses = [] if entry is None else [(place, model.pause(states)) for place, states in walk.through(block.insts, entry)[1]]
        if pauses:
            block.insts = inserted(block.insts, pauses)
            added += sum(len(several) for _, several in pauses)
    return added


def meet(a: Past, b: Past) -> Past:
    """What may have been left on either way, each with the fewest wait states since."""
    met = dict(a)
    for production, age in b.items():
        met[production] = min(age, met.get(production, age))
    return met


class _Walk:
    """Goes through blocks of one function, from the past at the entry to that at the exit, with the pauses in between."""

    def __init__(self, model: WaitStateModel) -> None:
        self._model = model
        self._sets = RegisterSets(model.first, model.names)
        self._known: dict[Inst, tuple[Sequence[Part], Sequence[Part], int]] = {}

    def states(self, insts: Sequence[Inst], entry: Past) -> dict[int, Past]:
        """The pasts behind each branch, and at -1 that behind the last instruction."""
        return self.through(insts, entry)[0]

    def through(self, insts: Sequence[Inst], entry: Past) -> tuple[dict[int, Past], list[tuple[int, int]]]:
        """The pasts as `states` gives them, and the pauses as (place, wait states)."""
        horizons = self._model.horizons
        # By rule: (wait state at which it was left, producer, registers), states counted from the entry.
        recent: dict[int, list[tuple[int, Inst, int]]] = {}
        for (rule, producer, registers), age in entry.items():
            recent.setdefault(rule, []).append((-age, producer, registers))
        now = 0
        pasts: dict[int, Past] = {}
        pauses: list[tuple[int, int]] = []
        for place, inst in enumerate(insts):
            leaves, touches, states = self._of(inst)
            missing = 0
            for part in touches:
                productions = recent.get(part.rule)
                if productions:
                    missing = max(missing, self._missing(part, inst, productions, now))
            if missing > 0:
                pauses.append((place, missing))
                now += missing
            now += states
            for part in leaves:
                productions = recent.setdefault(part.rule, [])
                productions.append((now, inst, part.registers))
                if len(productions) > horizons[part.rule]:
                    oldest = now - horizons[part.rule]
                    recent[part.rule] = [p for p in productions if p[0] > oldest]
            if inst.targets:
                pasts[place] = self._closed(recent, now)
        pasts[-1] = self._closed(recent, now)
        return pasts, pauses

    def _of(self, inst: Inst) -> tuple[Sequence[Part], Sequence[Part], int]:
        known = self._known.get(inst)
        if known is None:
            model, sets = self._model, self._sets
            known = self._known[inst] = model.leaves(inst, sets), model.touches(inst, sets), model.states(inst)
        return known

    def _missing(self, part: Part, inst: Inst, productions: list[tuple[int, Inst, int]], now: int) -> int:
        """How many wait states lack behind the worst of the productions."""
        worst = 0
        horizon = self._model.horizons[part.rule]
        for left, producer, registers in productions:
            if now - left < horizon and registers & part.registers:
                worst = max(worst, self._model.needed(part.rule, producer, inst) - (now - left))
        return worst

    def _closed(self, recent: dict[int, list[tuple[int, Inst, int]]], now: int) -> Past:
        closed: Past = {}
        for rule, productions in recent.items():
            for left, producer, registers in productions:
                if now - left < self._model.horizons[rule]:
                    closed[rule, producer, registers] = now - left  # the last is the youngest
        return closed
