"""Pauses where the hardware does not check: a consumer stands so many wait states behind what made a register of it.

Every instruction gives one wait state, a pause as many as it says. The past of a place is the set of productions that some
consumer could still come too early for, each with the fewest wait states since on any path; pasts meet by union. A consumer that
comes too early gets the pause in front of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from tilefw.machine.check_wait_states import PairRules, check_wait_states
from tilefw.machine.forward_analysis import ForwardAnalysis, entries, inserted
from tilefw.machine.function_pass import FunctionPass
from tilefw.machine.inst import Function, Inst
from tilefw.machine.opcodes import check_opcodes
from tilefw.machine.register_sets import RegisterSets
from tilefw.machine.table import InstructionTable

Past = dict[tuple[int, Inst, int], int]
"""(rule, producer, its registers): the fewest wait states since. Productions that are past every horizon are forgotten."""


@dataclass(frozen=True, slots=True)
class Share:
    """Registers that an instruction writes as producer, or accesses as consumer, under each of `rules` (indexes of
    `WaitStateModel.horizons`): those of the operands at `places`, counted over its definitions and then its uses, and `unwritten`
    ones (see `RegisterSets`)."""

    rules: tuple[int, ...]
    places: tuple[int, ...]
    unwritten: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """What instructions of one shape have to do with wait states: what they `leave` as producers, what they access as consumers,
    and how many `states` they give to those around them. One object serves all instructions of the shape."""

    leaves: tuple[Share, ...]
    accesses: tuple[Share, ...]
    states: int = 1

    def only(self, rules: AbstractSet[int]) -> Profile:
        """The profile without the rules that are not among these."""
        return Profile(_only(self.leaves, rules), _only(self.accesses, rules), self.states)


def _only(shares: tuple[Share, ...], rules: AbstractSet[int]) -> tuple[Share, ...]:
    kept = ((tuple(rule for rule in share.rules if rule in rules), share) for share in shares)
    return tuple(Share(some, share.places, share.unwritten) for some, share in kept if some)


@dataclass(frozen=True)
class WaitStateModel:
    """The rules of a chip.

    `horizons`: for each rule the most wait states that any pair of instructions needs under it. `first` and `names`: see
    `RegisterSets`. `profile` gives what an instruction leaves and accesses, `needed(rule, producer, consumer)` how many wait states
    must be between two that share a register. `pause` makes the instructions that give so many.
    """

    horizons: Sequence[int]
    first: Mapping[str, int]
    names: Mapping[str, int]
    profile: Callable[[Inst], Profile]
    needed: Callable[[int, Inst, Inst], int]
    pause: Callable[[int], list[Inst]]


@dataclass(frozen=True)
class FillWaitStates(FunctionPass):
    """Inserts pauses where the hardware does not check. It runs behind all passes that move or add instructions.

    With `rules`, a checker looks back from every instruction by them; it raises InternalError.
    """

    name = "fill-wait-states"
    table: InstructionTable
    model: WaitStateModel
    rules: PairRules | None = None

    def run(self, function: Function) -> None:
        fill_wait_states(function, self.table, self.model)
        check_opcodes(function.insts(), self.table, self.model.pause)
        if self.rules is not None:
            check_wait_states(function, self.table, self.rules)


def fill_wait_states(function: Function, table: InstructionTable, model: WaitStateModel) -> int:
    """Insert pauses where two instructions would follow each other too closely.

    Returns the number of instructions inserted.
    """
    walk = _WaitStateAnalysis(function, model)
    if not walk.concerned:
        return 0
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


class _WaitStateAnalysis(ForwardAnalysis[Past, int]):
    """Goes from pasts to pasts, and finds the pauses in between as wait states.

    Rules without a producer or without a consumer are left out: `concerned` says whether some are there.
    """

    def __init__(self, function: Function, model: WaitStateModel) -> None:
        super().__init__()
        self._model = model
        self._sets = RegisterSets(model.first, model.names)
        profiles = {inst: model.profile(inst) for inst in function.insts()}
        kinds = {id(kind): kind for kind in profiles.values()}  # models remember them, and their hashes go through all shares
        left = {rule for kind in kinds.values() for share in kind.leaves for rule in share.rules}
        accessed = {rule for kind in kinds.values() for share in kind.accesses for rule in share.rules}
        self.concerned = left & accessed
        short = {key: kind.only(self.concerned) for key, kind in kinds.items()}
        self._profiles = {inst: short[id(kind)] for inst, kind in profiles.items()}

    def _through(self, insts: Sequence[Inst], entry: Past) -> tuple[dict[int, Past], list[tuple[int, int]]]:
        recent = _Recent(entry, self._model.horizons)
        pasts: dict[int, Past] = {}
        pauses: list[tuple[int, int]] = []
        for place, inst in enumerate(insts):
            profile = self._profiles[inst]
            missing = 0
            for share in profile.accesses:
                for rule in share.rules:
                    if recent.until[rule] > recent.now:
                        missing = max(missing, self._missing(share, inst, recent))
                        break
            if missing:
                pauses.append((place, missing))
                recent.now += missing
            recent.now += profile.states
            for share in profile.leaves:
                recent.add(share.rules, inst, self._registers(share, inst))
            if inst.targets:
                pasts[place] = recent.closed()
        pasts[-1] = recent.closed()
        return pasts, pauses

    def _registers(self, share: Share, inst: Inst) -> int:
        found, of = share.unwritten, self._sets.of
        definitions = len(inst.defs)
        for place in share.places:
            found |= of(inst.defs[place] if place < definitions else inst.uses[place - definitions])
        return found

    def _missing(self, share: Share, inst: Inst, recent: _Recent) -> int:
        """How many wait states lack behind the worst of the productions."""
        worst = 0
        accessed = self._registers(share, inst)
        for rule in share.rules:
            if recent.until[rule] <= recent.now:
                continue
            oldest = recent.now - self._model.horizons[rule]
            for left, producer, registers in recent.of[rule]:
                if left > oldest and registers & accessed:
                    worst = max(worst, self._model.needed(rule, producer, inst) - (recent.now - left))
        return worst


class _Recent:
    """Productions while a block is gone through: by rule, (wait state at which it was left, producer, registers), with states
    counted from the entry; `until` is the state from which on nothing is left that a rule reaches."""

    __slots__ = ("_horizons", "now", "of", "until")

    def __init__(self, entry: Past, horizons: Sequence[int]) -> None:
        self._horizons = horizons
        self.of: list[list[tuple[int, Inst, int]]] = [[] for _ in horizons]
        self.until = [0] * len(horizons)
        self.now = 0
        for (rule, producer, registers), age in entry.items():
            self.of[rule].append((-age, producer, registers))
            self.until[rule] = max(self.until[rule], horizons[rule] - age)

    def add(self, rules: Sequence[int], inst: Inst, registers: int) -> None:
        for rule in rules:
            horizon, productions = self._horizons[rule], self.of[rule]
            productions.append((self.now, inst, registers))
            self.until[rule] = self.now + horizon
            if len(productions) > 2 * horizon:
                oldest = self.now - horizon
                self.of[rule] = [production for production in productions if production[0] > oldest]

    def closed(self) -> Past:
        closed: Past = {}
        for rule, productions in enumerate(self.of):
            oldest = self.now - self._horizons[rule]
            for left, producer, registers in productions:
                if left > oldest:
                    age = self.now - left
                    closed[rule, producer, registers] = min(age, closed.get((rule, producer, registers), age))
        return closed
