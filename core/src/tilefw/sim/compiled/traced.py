"""Neighbouring instructions of a block as one record of primitives: operands, guards and results resolved to slots.

A guard that all lanes are known to meet says nothing. Under any other the results are chosen lane by lane, as is everything where
only some waves run (`merged`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilefw.sim.algebra.integer import width
from tilefw.sim.algebra.recording import RecordedValue, RecordingLanes
from tilefw.sim.compiled.liveness import Liveness
from tilefw.sim.compiled.nests import Recorded, has_lines
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
    later."""

    bits: Sequence[int]
    registers: int
    constants: Mapping[int, Array]
    liveness: Liveness


@dataclass(frozen=True, slots=True)
class Traced:
    """The record of a run. `read` are the slots of its inputs, MERGE among them; `special` the operands that are asked for each
    time, behind them. `written` are slots with the place of what they get: an input's, or an output's behind those."""

    recorded: Recorded
    read: tuple[int, ...]
    special: tuple[Special, ...]
    written: tuple[tuple[int, int], ...]


@dataclass(slots=True)
class _Tracing:
    slots: Slots
    known: frozenset[Guarded]
    lanes: RecordingLanes
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
        results = part.instruction.meaning(lanes, *map(self.read, part.sources))  # type: ignore[misc]
        given = results if isinstance(results, tuple) else () if results is None else (results,)
        acting = self._acting(part)
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
    work = _Tracing(slots, known, RecordingLanes(wave_size))
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
        Recorded(tuple(work.lanes.steps), inputs, tuple(outputs), wave_size), tuple(work.inputs),
        tuple(operand for operand, _ in work.special), tuple((slot, places[value.number]) for slot, value in written.items()),
    )


def primitives(part: Part, slots: Slots, lanes: RecordingLanes) -> int | None:
    """How many primitives a part has; None where some have no lines. What `lanes` have recorded is dropped."""
    lanes.steps.clear()
    work = _Tracing(slots, frozenset(), lanes)
    used = (*part.sources, *part.destinations)
    if any(slots.bits[slot] > 64 for slot in used):
        return None
    try:
        work.part(part)
    except (TypeError, ValueError):  # it looks into a value
        return None
    if len(part.destinations) == 0 or not all(map(has_lines, work.lanes.steps)):
        return None
    return len(work.lanes.steps)
