"""Neighbouring instructions of a block as one record of primitives: operands, guards and results resolved to slots.

A guard that all lanes are known to meet says nothing. Under any other the results are chosen lane by lane, as is everything where
only some waves run (`merged`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilefw.sim.algebra.integer import width
from tilefw.sim.algebra.recording import RecordedStep, RecordedValue, RecordingLanes
from tilefw.sim.compiled.liveness import LaterReads
from tilefw.sim.compiled.nests import Recorded, has_lines, values_taken
from tilefw.sim.floats import Array
from tilefw.sim.program import Instruction, Registers, Special
from tilefw.sim.steps.careful import Step
from tilefw.sim.steps.operands import Placed

Guarded = tuple[int, bool]
"""The slot of a guard's predicate, and whether it is negated."""
MERGE = -1
"""In place of a slot: which lanes' registers change."""


@dataclass(frozen=True, slots=True)
class Part:
    """One instruction of a run: its `step`, and what that reads and writes. `before` and `after` are operands of several registers
    and their slots; `for_wave` marks destinations that hold one value for the wave."""

    step: Step
    instruction: Instruction
    sources: tuple[int, ...]
    destinations: tuple[int, ...]
    for_wave: tuple[bool, ...]
    before: tuple[Placed, ...]
    after: tuple[Placed, ...]

    @property
    def guard(self) -> Guarded | None:
        """What decides who acts."""
        guard = self.instruction.guard
        return None if guard is None else (guard.register.index, guard.negated)


@dataclass(frozen=True, slots=True)
class Slots:
    """The slots of a program: their widths, how many are registers (the first), constants by slot, and which registers are read
    later. `masks`: lanes of a wave go together, so that masks of lanes are made of all of them."""

    bits: Sequence[int]
    registers: int
    constants: Mapping[int, Array]
    liveness: LaterReads
    masks: bool = False


@dataclass(frozen=True, slots=True)
class Traced:
    """The record of a run. `read` are the slots of its inputs, MERGE among them; `special` the operands that are asked for each
    time, behind them. `written` are slots with the place of what they get: an input's, or an output's behind those."""

    recorded: Recorded
    read: tuple[int, ...]
    special: tuple[Special, ...]
    written: tuple[tuple[int, int], ...]


class TracedLanes(RecordingLanes):
    """The recording form over several instructions: what one takes apart as another has put it together is that again. `acting`:
    the lanes that do what is recorded now, None for all."""

    def __init__(self, wave_size: int) -> None:
        super().__init__(wave_size)
        self.acting: RecordedValue | None = None
        self._words: dict[tuple[int, int], RecordedValue] = {}
        self._parts: dict[int, tuple[RecordedValue, ...]] = {}
        self._recorded: Any = {name: getattr(self, name) for name in ("ballot", "unballot", "join", "split", "and_")}
        self.ballot, self.unballot, self.join, self.split = self._ballot, self._unballot, self._join, self._split

    def forget(self) -> None:
        """Drop what is recorded."""
        self.steps.clear()
        self._words.clear()
        self._parts.clear()

    def _ballot(self, p: RecordedValue) -> tuple[RecordedValue, RecordedValue]:
        lanes = p if self.acting is None else self._recorded["and_"](p, self.acting)
        low, high = self._recorded["ballot"](lanes)
        self._words[low.number, high.number] = lanes
        return low, high

    def _unballot(self, low: RecordedValue, high: RecordedValue) -> RecordedValue:
        known = self._words.get((low.number, high.number))
        return self._recorded["unballot"](low, high) if known is None else known

    def _join(self, parts: Sequence[RecordedValue]) -> RecordedValue:
        whole = self._recorded["join"](parts)
        self._parts[whole.number] = tuple(parts)
        return whole

    def _split(self, a: RecordedValue, bits: int) -> tuple[RecordedValue, ...]:
        parts = self._parts.get(a.number, ())
        return parts if parts and parts[0].bits == bits else self._recorded["split"](a, bits)


@dataclass(slots=True)
class _Tracing:
    slots: Slots
    known: frozenset[Guarded]
    lanes: TracedLanes
    inputs: dict[int, RecordedValue] = field(default_factory=dict)
    special: list[tuple[Special, RecordedValue]] = field(default_factory=list)
    state: dict[int, RecordedValue] = field(default_factory=dict)

    def read(self, slot: int) -> RecordedValue:
        found = self.state.get(slot, self.inputs.get(slot))
        if found is None:
            constant = self.slots.constants.get(slot)
            if constant is not None:
                found = self.lanes.const(int(constant.flat[0]), width(constant))  # type: ignore[attr-defined]
                self.state[slot] = found
            else:
                found = self.inputs[slot] = self.lanes.symbol(1 if slot == MERGE else self.slots.bits[slot])
        return found

    def part(self, part: Part) -> None:
        lanes: Any = self.lanes
        for slot, operand in part.before:
            if isinstance(operand, Special):
                self.state[slot] = lanes.symbol(operand.bits)
                self.special.append((operand, self.state[slot]))
            else:
                self.state[slot] = self._joined(operand)
        acting = lanes.acting = self._acting(part)
        results = part.instruction.meaning(lanes, *map(self.read, part.sources))  # type: ignore[misc]
        given = results if isinstance(results, tuple) else () if results is None else (results,)
        several = dict(part.after)
        for slot, value, whole in zip(part.destinations, given, part.for_wave, strict=True):
            if acting is not None and not whole:
                old = self._joined(several[slot]) if slot in several else self.read(slot)
                value = lanes.select(acting, value, old)
            self.state[slot] = value
        for slot, operand in part.after:
            bits = operand.parts[0].bits
            for register, value in zip(operand.parts, lanes.split(self.state[slot], bits), strict=True):
                self.state[register.index] = value

    def _acting(self, part: Part) -> RecordedValue | None:
        guard = part.guard
        if guard is None or (guard in self.known and guard[0] not in self.state):
            return None
        predicate = self.read(guard[0])
        return self.lanes.not_(predicate) if guard[1] else predicate  # type: ignore[attr-defined]

    def _joined(self, operand: Registers) -> RecordedValue:
        return self.lanes.join([self.read(part.index) for part in operand.parts])  # type: ignore[attr-defined]


def trace_run(
    parts: Sequence[Part], block: int, slots: Slots, wave_size: int, known: frozenset[Guarded], merged: bool
) -> Traced:
    """The record of a run of a block in which all lanes meet the guards `known`."""
    work = _Tracing(slots, known, TracedLanes(wave_size))
    for part in parts:
        work.part(part)
    live = slots.liveness.after(block, parts[-1].instruction)
    written = {slot: value for slot, value in work.state.items() if slot < slots.registers and live >> slot & 1}
    if merged:
        merge = work.read(MERGE)
        for slot, value in written.items():
            old = work.inputs.get(slot)
            if old is None:
                old = work.inputs[slot] = work.lanes.symbol(slots.bits[slot])
            written[slot] = work.lanes.select(merge, value, old)  # type: ignore[attr-defined]
    inputs = (*work.inputs.values(), *(value for _, value in work.special))
    places = {value.number: place for place, value in enumerate(inputs)}
    outputs: list[RecordedValue] = []
    for value in written.values():
        if value.number not in places:
            places[value.number] = len(places)
            outputs.append(value)
    return Traced(
        Recorded(_used(work.lanes.steps, outputs), inputs, tuple(outputs), wave_size), tuple(work.inputs),
        tuple(operand for operand, _ in work.special), tuple((slot, places[value.number]) for slot, value in written.items()),
    )


def _used(steps: Sequence[RecordedStep], outputs: Iterable[RecordedValue]) -> tuple[RecordedStep, ...]:
    """The steps that outputs come from."""
    wanted = {value.number for value in outputs}
    found: list[RecordedStep] = []
    for step in reversed(steps):
        if any(result.number in wanted for result in step.results):
            wanted |= {value.number for value in values_taken(step)}
            found.append(step)
    return tuple(reversed(found))


def primitives(part: Part, slots: Slots, lanes: TracedLanes) -> int | None:
    """How many primitives a part has; None where some have no lines. What `lanes` have recorded is dropped."""
    lanes.forget()
    work = _Tracing(slots, frozenset(), lanes)
    used = (*part.sources, *part.destinations)
    if any(slots.bits[slot] > 64 for slot in used):
        return None
    try:
        work.part(part)
    except (TypeError, ValueError):  # it looks into a value
        return None
    if not part.destinations or not all(has_lines(step, slots.masks) for step in work.lanes.steps):
        return None
    return len(work.lanes.steps)
