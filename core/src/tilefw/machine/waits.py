"""Waits for results that arrive later: the fewest and weakest that make every register arrive before it is accessed.

A chip answers memory instructions through queues, which the hardware counts: an instruction begins an event in a queue, and a
wait stops the wave until at most n events of that queue are unfinished. Events of one order finish as they began, so that a
wait for one need not wait for the n that were begun behind it; of those without an order nothing is known but at n = 0.

A bracket is what may be unfinished at a place: per queue and order, the registers that are still to come, by how many later
events there are of the same queue and order. Brackets meet by taking each register at its youngest, loops are gone through until
nothing changes, and an instruction that accesses a register of the bracket gets the wait in front of it. Nothing is waited for at
the end of a block, so what one iteration loads may arrive in the next. (The scheme is that of LLVM's
`SIInsertWaitcnts.cpp`, on sets of registers in place of scores.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tilefw.machine.check_waits import Seen, check_waits
from tilefw.machine.forward_analysis import ForwardAnalysis, entries, inserted
from tilefw.machine.function_pass import FunctionPass
from tilefw.machine.inst import Function, Inst
from tilefw.machine.opcodes import check_opcodes
from tilefw.machine.register_sets import RegisterSets
from tilefw.machine.table import InstructionTable

Kind = tuple[str, str]
"""(queue, order)."""
Bracket = dict[Kind, tuple[int, ...]]
"""By kind, the registers still to come: entry n of those whose event has n later ones of its kind. Of no order, one entry."""
Limits = dict[str, int]
"""Counts to wait for, by queue."""
Renames = Sequence[tuple[int, int]]
"""Effects, as bits, and those that they are called from then on; one after the other."""


@dataclass(frozen=True, slots=True)
class Event:
    """What an instruction begins in `queue`; `order` "" finishes in any order, events of one order as they began.

    `arriving` is the set of registers (see `RegisterSets`), and of effects behind them, that are there only when the event has
    finished. Who reads one waits for it; so does who writes one, unless by an event of the same queue and order.
    `merged`: of them, those that the event changes only in part: their old values are combined with its own when it finishes,
    so that earlier events of the same queue and order may be still to come for them though the instruction reads them.
    """

    queue: str
    order: str = ""
    arriving: int = 0
    merged: int = 0


@dataclass(frozen=True, slots=True)
class Concern:
    """What waits must know of an opcode besides the registers that are written down.

    `accessed` are registers that it reads or writes unwritten. `special`: it begins events, is itself a wait, or needs effects:
    then the model is asked about each such instruction.
    """

    accessed: int = 0
    special: bool = False


@dataclass(frozen=True)
class WaitModel:
    """The queues of a chip.

    `most`: by queue, the most unfinished events that a wait can leave (a longer distance takes that count, too). `first` and
    `names`: see `RegisterSets`. `concern` classifies an opcode. Of a special instruction, `events` are what it begins, `needs` the
    effects that must have happened when it is issued, and `limits` the counts that it waits for itself, by queue, empty if it is
    no wait. `wait` makes the instruction that waits until at most so many events of each queue named are unfinished. `renames` are
    the effects that are called otherwise behind an instruction, as those of the last group of copies once another begins.
    """

    most: Mapping[str, int]
    first: Mapping[str, int]
    names: Mapping[str, int]
    concern: Callable[[str], Concern]
    events: Callable[[Inst, RegisterSets], tuple[Event, ...]]
    needs: Callable[[Inst], int]
    limits: Callable[[Inst], Mapping[str, int]]
    wait: Callable[[Mapping[str, int]], Inst]
    renames: Callable[[Inst], Renames] = lambda inst: ()


@dataclass(frozen=True)
class InsertWaits(FunctionPass):
    """Inserts the fewest and weakest waits for results that arrive later. Registers must be physical and predicates gone.

    With `seen`, a checker replays them by what that says of each instruction; it raises InternalError.
    """

    name = "insert-waits"
    table: InstructionTable
    model: WaitModel
    seen: Callable[[Inst], Seen] | None = None

    def run(self, function: Function) -> None:
        insert_waits(function, self.table, self.model)
        check_opcodes(function.insts(), self.table, self.model.wait)
        if self.seen is not None:
            check_waits(function, self.table, self.seen)


def insert_waits(function: Function, table: InstructionTable, model: WaitModel) -> int:
    """Insert waits before instructions that use results still on their way. Waits that the code has already are kept and relied on.

    Returns the number of instructions inserted.
    """
    walk = _WaitAnalysis(function, model)
    added = 0
    for block, entry in zip(function.blocks, entries(function, table, {}, walk.states, meet), strict=True):
        waits = [] if entry is None else walk.through(block.insts, entry)[1]
        if waits:
            block.insts = inserted(block.insts, [(place, [model.wait(limits)]) for place, limits in waits])
            added += len(waits)
    return added


def meet(a: Bracket, b: Bracket) -> Bracket:
    """What may be unfinished when control comes from either side: each register at its youngest event."""
    met = dict(a)
    for kind, events in b.items():
        known = met.get(kind, ())
        longest = max(len(known), len(events))
        padded = [known[i] if i < len(known) else 0 for i in range(longest)]
        met[kind] = _youngest(padded[i] | (events[i] if i < len(events) else 0) for i in range(longest))
    return met


def _youngest(events: Iterable[int]) -> tuple[int, ...]:
    """Each register at its youngest event only; no empty events at the old end."""
    found: list[int] = []
    seen = 0
    for registers in events:
        found.append(registers & ~seen)
        seen |= registers
    while found and not found[-1]:
        found.pop()
    return tuple(found)


@dataclass(slots=True)
class _Facts:
    """What one instruction has to do with waits: the registers and effects that it wants there; of these by queue and order, those
    that its own event writes behind the others'; the counts that it waits for itself; and what it begins."""

    wanted: int
    in_order: Mapping[Kind, int] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    renames: Renames = ()


class _WaitAnalysis(ForwardAnalysis[Bracket, Limits]):
    """Goes from brackets to brackets, and finds the waits in between as counts by queue."""

    def __init__(self, function: Function, model: WaitModel) -> None:
        super().__init__()
        self._model = model
        self._sets = RegisterSets(model.first, model.names)
        self._concerns = {opcode: model.concern(opcode) for opcode in {inst.opcode for inst in function.insts()}}
        self._facts = {inst: self._of(inst) for inst in function.insts()}

    def _of(self, inst: Inst) -> _Facts:
        concern, accessed = self._concerns[inst.opcode], self._sets.accessed(inst)
        if not concern.special:
            return _Facts(concern.accessed | accessed)
        model = self._model
        events = model.events(inst, self._sets)
        wanted = concern.accessed | accessed | model.needs(inst)
        return _Facts(wanted, self._in_order(inst, concern, events), model.limits(inst), events, model.renames(inst))

    def _in_order(self, inst: Inst, concern: Concern, events: tuple[Event, ...]) -> dict[Kind, int]:
        kept = {use for _, use in inst.tied}
        operands = self._sets.union(use for place, use in enumerate(inst.uses) if place not in kept)
        read = concern.accessed | operands | self._model.needs(inst)
        tied = self._sets.union(inst.uses[use] for use in kept)
        return {(e.queue, e.order): e.arriving & ~(read | (tied & ~e.merged)) for e in events if e.order}

    def _through(self, insts: Sequence[Inst], entry: Bracket) -> tuple[dict[int, Bracket], list[tuple[int, Limits]]]:
        open_ = _Open(entry, self._model.most)
        facts_of = self._facts
        brackets: dict[int, Bracket] = {}
        waits: list[tuple[int, Limits]] = []
        for place, inst in enumerate(insts):
            facts = facts_of[inst]
            if facts.wanted & open_.arriving and (limits := open_.limits(facts.wanted, facts.in_order)):
                waits.append((place, limits))
                open_.wait(limits)
            if facts.limits:
                open_.wait(facts.limits)
            for event in facts.events:
                open_.begin(event)
            if facts.renames:
                open_.rename(facts.renames)
            if inst.targets:
                brackets[place] = open_.closed()
        brackets[-1] = open_.closed()
        return brackets, waits


class _Open:
    """A bracket while a block is gone through: by kind, the registers of each event, the newest last."""

    __slots__ = ("_events", "_most", "arriving")

    def __init__(self, entry: Bracket, most: Mapping[str, int]) -> None:
        self._most = most
        self._events: dict[Kind, list[int]] = {kind: list(reversed(events)) for kind, events in entry.items()}
        self.arriving = 0
        self._gather()

    def _gather(self) -> None:
        self.arriving = 0
        for events in self._events.values():
            for registers in events:
                self.arriving |= registers

    def begin(self, event: Event) -> None:
        events = self._events.setdefault((event.queue, event.order), [])
        if not event.order and events:
            events[-1] |= event.arriving
        else:
            events.append(event.arriving)
        if len(events) > self._most[event.queue] + 1:
            oldest = events.pop(0)
            events[0] |= oldest
        self.arriving |= event.arriving

    def rename(self, renames: Renames) -> None:
        """What is still to come is called otherwise from now on."""
        for events in self._events.values():
            for place, registers in enumerate(events):
                for old, new in renames:
                    if registers & old:
                        registers = registers & ~old | new
                events[place] = registers
        self._gather()

    def limits(self, accessed: int, in_order: Mapping[Kind, int]) -> Limits:
        """The counts that must be waited for before the registers may be accessed; `in_order` are exempt from their own kind."""
        found: Limits = {}
        for kind, events in self._events.items():
            wanted = accessed & ~in_order.get(kind, 0)
            later = next((n for n, registers in enumerate(reversed(events)) if registers & wanted), None)
            if later is not None:
                queue = kind[0]
                found[queue] = min(found.get(queue, later), later)
        return found

    def wait(self, limits: Mapping[str, int]) -> None:
        """Events that the counts cover are finished; of no order, all or none."""
        for (queue, order), events in self._events.items():
            left = limits.get(queue)
            if left is not None and (order or left == 0):
                del events[: max(0, len(events) - left)]
        self._gather()

    def closed(self) -> Bracket:
        closed = {kind: _youngest(reversed(events)) for kind, events in self._events.items()}
        return {kind: events for kind, events in closed.items() if events}
