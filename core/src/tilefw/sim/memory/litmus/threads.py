"""The threads of a litmus test under way: registers, loads in flight, barriers, and one step of one thread."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from itertools import product

from tilefw.sim.memory.litmus.test import LitmusStep, LitmusTest, Operand
from tilefw.sim.memory.views.agents import ReservedEvent
from tilefw.sim.memory.views.knowledge import Knowledge
from tilefw.sim.memory.views.machine import ViewMachine

_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge,
}
_COMBINE: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "and": operator.and_, "or": operator.or_, "xor": operator.xor,
    "min": min, "max": max, "exch": lambda old, new: new,
}


@dataclass(slots=True)
class ThreadState:
    """Where a thread is: the next step, its registers, loads in flight, and the barrier at which it waits, if it does."""

    at: int
    registers: dict[str, int]
    flight: dict[str, tuple[ReservedEvent, LitmusStep]] = field(default_factory=dict)
    waits: tuple[Hashable, int] | None = None
    loop: Hashable = None
    """What the thread was at its last jump back: a turn that changes nothing needs no other."""

    def copy(self) -> ThreadState:
        return ThreadState(self.at, {**self.registers}, {**self.flight}, self.waits, self.loop)


@dataclass(slots=True)
class BarrierState:
    """Who has arrived at a barrier since it last opened, with what they know; `opened`: a barrier that counts has opened."""

    arrived: tuple[tuple[int, Knowledge], ...] = ()
    opened: bool = False


class RunningTest:
    """A test under way. `choices` of the machine decide what is read; the caller decides who steps, and which loads wait."""

    def __init__(self, test: LitmusTest, machine: ViewMachine):
        self.test, self.machine = test, machine
        self.threads = [
            ThreadState(0, {name: value for (owner, name), value in test.registers.items() if owner == number})
            for number in range(len(test.threads))
        ]
        self.barriers: dict[Hashable, BarrierState] = {}
        self.stuttered = False

    def copy(self) -> RunningTest:
        """The same state, independent of this one."""
        other = object.__new__(RunningTest)
        other.test, other.machine, other.stuttered = self.test, self.machine.copy(), self.stuttered
        other.threads = [thread.copy() for thread in self.threads]
        other.barriers = {key: BarrierState(b.arrived, b.opened) for key, b in self.barriers.items()}
        return other

    def key(self) -> Hashable:
        """Equal for equal states."""
        threads = tuple(
            (
                t.at, frozenset(t.registers.items()), t.waits, t.loop,
                frozenset((register, place.number, place.known.key()) for register, (place, _) in t.flight.items()),
            )
            for t in self.threads
        )
        barriers = tuple(
            (key, tuple((who, known.key()) for who, known in sorted(b.arrived, key=lambda a: a[0])), b.opened)
            for key, b in sorted(self.barriers.items(), key=str)
        )
        return threads, barriers, self.machine.key()

    def ready(self) -> list[int]:
        """Threads that can go on."""
        return [n for n, thread in enumerate(self.threads) if self._passes(thread) and not self.ended(n)]

    def ended(self, number: int) -> bool:
        """Whether a thread has made all its steps, left its last barrier, and nothing of it is in flight."""
        thread = self.threads[number]
        return thread.at >= len(self.test.threads[number]) and not thread.flight and thread.waits is None

    def may_wait(self, number: int) -> bool:
        """Whether the thread's next step reads memory, and a later store of it may pass that read."""
        thread, steps = self.threads[number], self.test.threads[number]
        if thread.at >= len(steps):
            return False
        step = steps[thread.at]
        late = step.kind == "load" or (step.kind == "update" and step.register != "")
        if not late or step.order not in (("weak", "relaxed", "acquire") if step.kind == "load" else ("weak", "relaxed")):
            return False
        for other in steps[thread.at + 1 :]:
            if step.register in other.needs or other.kind == "branch" or other.address == step.address:
                return False
            if other.kind in ("store", "update"):
                return True
        return False

    def step(self, number: int, wait: bool = False) -> None:
        """The thread's next step of memory, and those after it that are of the thread alone. `wait`: its read stays in flight."""
        thread, steps = self.threads[number], self.test.threads[number]
        if thread.at >= len(steps):
            self._complete(number, next(iter(thread.flight)))
            return
        step = steps[thread.at]
        for register in self._due(number, step):
            self._complete(number, register)
        thread.at += 1
        if wait:
            thread.flight[step.register] = self.machine.agents.issue(number), step
        else:
            self._perform(number, thread, step)
        while thread.at < len(steps) and (local := steps[thread.at]).kind in ("set", "branch") and not self._due(number, local):
            thread.at += 1
            self._perform(number, thread, local)

    def finals(self) -> Iterator[dict[str, int]]:
        """The ends that this state may be: registers and, of the locations asked for, each value that memory may hold."""
        registers = {f"{n}:{name}": v for n, thread in enumerate(self.threads) for name, v in thread.registers.items()}
        asked = sorted(name for name in self.test.condition.asks if ":" not in name)
        for values in product(*(self.machine.finals(name) for name in asked)):
            yield {**registers, **dict(zip(asked, values, strict=True))}

    # -- parts

    def _due(self, number: int, step: LitmusStep) -> list[str]:
        """Registers whose loads must be there before the step: it needs or writes them, or goes to their location."""
        location = self.test.aliases.get(step.address, (step.address,))[0] if step.address else None
        due: list[str] = []
        for register, (_, load) in self.threads[number].flight.items():
            same = location is not None and self.test.aliases.get(load.address, (load.address,))[0] == location
            if register in step.needs or register == step.register or same:
                due.append(register)
        return due

    def _complete(self, number: int, register: str) -> None:
        thread = self.threads[number]
        place, step = thread.flight.pop(register)
        self._access(number, thread, step, place)

    def _perform(self, number: int, thread: ThreadState, step: LitmusStep) -> None:
        machine = self.machine
        if step.kind in ("load", "store", "update"):
            self._access(number, thread, step, None)
        elif step.kind == "fence":
            machine.agents.fence(number, step.order, step.scope)
        elif step.kind == "fence_way":
            machine.agents.fence_way(number, step.way)
        elif step.kind == "fence_names":
            machine.agents.fence_names(number)
        elif step.kind == "set":
            thread.registers[step.register] = _COMBINE[step.action](*(self._value(thread, o) for o in step.operands))
        elif step.kind == "branch":
            self._branch(number, thread, step)
        else:
            self._barrier(number, thread, step)

    def _access(self, number: int, thread: ThreadState, step: LitmusStep, place: ReservedEvent | None) -> None:
        values = [self._value(thread, operand) for operand in step.operands]
        if step.kind == "store":
            self.machine.store(number, step.address, values[0], step.order, step.scope, step.way)
            return
        if step.kind == "load":
            found = self.machine.load(number, step.address, step.order, step.scope, step.way, place)
        elif step.action == "cas":
            swap = lambda old: values[1] if old == values[0] else None  # noqa: E731
            found = self.machine.update(number, step.address, swap, step.order, step.scope, step.way, place)
        else:
            combine = _COMBINE[step.action]
            found = self.machine.update(
                number, step.address, lambda old: combine(old, values[0]), step.order, step.scope, step.way, place
            )
        if step.register:
            thread.registers[step.register] = found

    def _branch(self, number: int, thread: ThreadState, step: LitmusStep) -> None:
        if not _COMPARE[step.action](*(self._value(thread, operand) for operand in step.operands)):
            return
        if step.goal < thread.at:
            known = self.machine.agents.views[number].known
            stored = sum(m.agent == number for location in self.machine.locations.values() for m in location.messages)
            loop = step.goal, tuple(sorted(thread.registers.items())), known.after(number, 0).key(), stored
            self.stuttered = self.stuttered or loop == thread.loop
            thread.loop = loop
        thread.at = step.goal

    def _value(self, thread: ThreadState, operand: Operand) -> int:
        return operand if isinstance(operand, int) else thread.registers.get(operand, 0)

    # -- barriers

    def _barrier(self, number: int, thread: ThreadState, step: LitmusStep) -> None:
        values = [self._value(thread, operand) for operand in step.operands]
        key = (self.test.places[number], step.key, values[0] if values else None)
        barrier = self.barriers.setdefault(key, BarrierState())
        barrier.arrived = (*barrier.arrived, (number, self.machine.agents.arrive(number)))
        if step.kind == "sync":
            thread.waits = key, values[1] if len(values) > 1 else 0
            self._open(key)

    def _open(self, key: Hashable) -> None:
        """Let those who wait go on if everybody who may come is there; those who come after a barrier has its number pass."""
        barrier = self.barriers[key]
        waiting = [n for n, thread in enumerate(self.threads) if thread.waits and thread.waits[0] == key]
        if not waiting:
            return
        wanted = max(self.threads[n].waits[1] for n in waiting)  # type: ignore[index]
        if wanted:
            barrier.opened = barrier.opened or len(barrier.arrived) >= wanted
            if not barrier.opened:
                return
        elif any(self._may_arrive(n, key) for n in range(len(self.threads)) if n not in waiting):
            return
        self.machine.agents.barrier([known for _, known in barrier.arrived], waiting)
        for n in waiting:
            self.threads[n].waits = None
        if not wanted:
            barrier.arrived = ()

    def _may_arrive(self, number: int, key: Hashable) -> bool:
        """Whether a thread of the workgroup has a barrier before it that may be this one."""
        place, instance, name = key  # type: ignore[misc]
        if self.test.places[number] != place:
            return False
        thread = self.threads[number]
        for step in self.test.threads[number][thread.at :]:
            if step.kind in ("sync", "arrive") and step.key == instance:
                given = step.operands[0] if step.operands else None
                if given == name or isinstance(given, str):
                    return True
        return False

    def _passes(self, thread: ThreadState) -> bool:
        if thread.waits:
            self._open(thread.waits[0])
        return thread.waits is None
