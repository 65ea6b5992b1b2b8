"""Steps that follow the exact integers of offsets beside the registers (tracking/integers.py), for checks that ask for it.

Only instructions that the compiler has promised something of take part, copies of what they give, and accesses by it. A step gives
intervals; where those do not tell the integers of the lanes, the instruction is looked at lane by lane.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilefw.sim.algebra.exact import Exact
from tilefw.sim.algebra.intervals import INTERVALS, Interval
from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.engine.frame import Frame
from tilefw.sim.floats import Array
from tilefw.sim.program import Destination, Immediate, Instruction, Program, Register, Source
from tilefw.sim.steps.careful import Step
from tilefw.sim.steps.exact_form import simple_step
from tilefw.sim.tracking.integers import TOLD, Held, bounded, merged, of_lanes, told, unknown


@dataclass(slots=True)
class Followed:
    """What is followed of a program, by instruction: those that give exact integers, what copies them (its sources by destination),
    where they are lost, the low halves of wide ones among destinations, and the sources that make addresses, with whether these are
    taken without a sign."""

    exact: frozenset[int]
    lost: frozenset[int]
    copies: dict[int, dict[int, int]] = field(default_factory=dict)
    wide: dict[int, tuple[int, ...]] = field(default_factory=dict)
    addresses: dict[int, tuple[tuple[int, bool], ...]] = field(default_factory=dict)

    def __contains__(self, instruction: Instruction) -> bool:
        """Whether something is followed of an instruction."""
        index = instruction.index
        return any(index in of for of in (self.exact, self.addresses, self.copies, self.lost, self.wide))


def followed(program: Program) -> Followed | None:
    """What is to be followed of a program; None where nothing is promised of it."""
    promises = program.promises
    if promises is None or not promises.exact:
        return None
    instructions = program.instructions
    exact = {i for i in promises.exact if _gives_integers(instructions[i])}
    found = Followed(frozenset(exact), promises.lost | (promises.exact - exact), wide=dict(promises.wide))
    holds: set[int] = set()
    for i in (*promises.exact, *promises.lost):
        holds |= _registers(instructions[i].destinations)
    for i, destinations in promises.wide.items():
        holds |= {_register(instructions[i].destinations[d]) for d in destinations}
    rest = [i for i in instructions if i.meaning is not None and i.index not in promises.exact | promises.lost]
    _follow_copies(found, rest, holds)
    _follow_addresses(found, rest, holds)
    return found


def follow(
    step: Step, instruction: Instruction, sources: Sequence[int], destinations: Sequence[int], for_wave: Sequence[bool],
    of: Followed,
) -> Step:
    """The step, with what is followed of its instruction. `sources` and `destinations` are slots; `for_wave` marks destinations
    that hold one value for the wave."""
    index = instruction.index
    if index in of.exact:
        return _exact(step, instruction, tuple(sources), destinations[0], for_wave[0])
    if index in of.lost:
        return _lost(step, tuple(destinations))
    for destination, source in of.copies.get(index, {}).items():
        step = _copying(step, destinations[destination], sources[source], for_wave[destination])
    for low in of.wide.get(index, ()):
        step = _wide(step, destinations[low], destinations[low + 1], for_wave[low])
    if index in of.addresses:
        step = _accessing(step, instruction, tuple(sources), tuple((sources[s], u) for s, u in of.addresses[index]))
    return step


# --- which instructions take part ----------------------------------------------------------------------------------------------


class _Accessed(Exception):
    """The meaning has come to its access: what it gives is of no interest."""


class _Uses:
    """Finds out how the meaning of an access makes its address: `unsigned` are what it extends with zeros."""

    wave_size = 0

    def __init__(self) -> None:
        self.accesses = False
        self.unsigned: list[Interval] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: Interval(0, 0)

    def split(self, a: Interval, bits: int) -> tuple[Interval, ...]:
        return (Interval(0, 0),) * (64 // bits)

    def zero_extend(self, a: Interval, bits: int) -> Interval:
        self.unsigned.append(a)
        return Interval(0, 0)

    def _access(self, space: str, *_: Any, **__: Any) -> Any:
        self.accesses = space in ("global", "generic")
        raise _Accessed

    load = store = atomic = load_reserved = store_conditional = _access

    def copy_async(self, to: str, destination: Interval, space: str, *_: Any) -> None:
        self._access(space)


def _probes(instruction: Instruction) -> list[Interval]:
    """An interval for each source, none the same object as another's."""
    return [
        Interval(value, value, operand.bits, True)
        for operand in instruction.sources for value in (operand.value if isinstance(operand, Immediate) else 0,)
    ]


def _results(meaning: Callable[..., Any], lanes: Any, values: Sequence[Any]) -> tuple[Any, ...] | None:
    """What a meaning gives on intervals; None where it looks into what is not known, as into parts of a value."""
    try:
        results = meaning(lanes, *values)
    except (TypeError, AttributeError, ValueError, IndexError):
        return None
    return results if isinstance(results, tuple) else (results,)


def _gives_integers(instruction: Instruction) -> bool:
    """Whether the first result is a sum, product, choice or copy of the sources."""
    assert instruction.meaning is not None
    found = _results(instruction.meaning, INTERVALS, _probes(instruction))
    return found is not None and isinstance(found[0], Interval)


def _follow_copies(found: Followed, rest: Sequence[Instruction], holds: set[int]) -> None:
    """Copies of what registers `holds` have, and copies of these."""
    no_copies: set[str] = set()
    changed = True
    while changed:
        changed = False
        for instruction in rest:
            if instruction.index in found.copies or instruction.mnemonic in no_copies or not _reads(instruction, holds):
                continue
            copies = _copies(instruction)
            if not copies:
                no_copies.add(instruction.mnemonic)
                continue
            found.copies[instruction.index] = copies
            more = {_register(instruction.destinations[d]) for d in copies} - holds
            holds |= more
            changed = changed or bool(more)


def _copies(instruction: Instruction) -> dict[int, int]:
    """Which destinations get what a source holds, maybe another lane's."""
    assert instruction.meaning is not None
    probes = _probes(instruction)
    results = _results(instruction.meaning, INTERVALS, probes) or ()
    return {
        d: s for d, result in enumerate(results[: len(instruction.destinations)]) for s, probe in enumerate(probes)
        if result is probe and isinstance(instruction.sources[s], Register) and isinstance(instruction.destinations[d], Register)
    }


def _follow_addresses(found: Followed, rest: Sequence[Instruction], holds: set[int]) -> None:
    """Accesses of global memory by what registers `holds` have."""
    known: dict[tuple[str, int], frozenset[int] | None] = {}
    for instruction in rest:
        if not _reads(instruction, holds):
            continue
        kind = instruction.mnemonic, len(instruction.sources)
        if kind not in known:
            known[kind] = _unsigned_sources(instruction)
        unsigned = known[kind]
        if unsigned is not None:
            found.addresses[instruction.index] = tuple(
                (s, s in unsigned) for s, operand in enumerate(instruction.sources) if _registers((operand,)) & holds
            )


def _unsigned_sources(instruction: Instruction) -> frozenset[int] | None:
    """Which sources an access extends with zeros to an address; None for an instruction that does not access global memory."""
    assert instruction.meaning is not None
    uses, probes = _Uses(), _probes(instruction)
    with suppress(_Accessed, TypeError, ValueError):
        instruction.meaning(uses, *probes)
    extended = {id(each) for each in uses.unsigned}
    return frozenset(s for s, probe in enumerate(probes) if id(probe) in extended) if uses.accesses else None


def _reads(instruction: Instruction, registers: set[int]) -> bool:
    return not registers.isdisjoint(_registers(instruction.sources))


def _registers(operands: Iterable[Source | Destination]) -> set[int]:
    return {operand.index for operand in operands if isinstance(operand, Register)}


def _register(operand: Destination) -> int:
    return operand.index if isinstance(operand, Register) else -1


# --- the steps -----------------------------------------------------------------------------------------------------------------


def _exact(step: Step, instruction: Instruction, sources: tuple[int, ...], to: int, for_wave: bool) -> Step:
    """The first destination stands for what the meaning gives as an exact integer."""
    meaning = instruction.meaning
    assert meaning is not None

    def whole(lanes: NumpyLanes, frame: Frame) -> None:
        merge = frame.wave_merge if for_wave else frame.merge
        held = [frame.integers(slot).of(merge) for slot in sources]
        before = None if merge is None else frame.followed(to)
        step(lanes, frame)
        after = _given(lanes, meaning, held, frame.registers[to])
        for each in held:
            if each.where is not None and (merge is None or (merge & ~each.where).any()):
                after = after.only(each.where)
        frame.held[to] = after if merge is None else merged(before, after, merge)

    if instruction.destinations[0].bits > 32:
        return _passing(step, whole, sources)
    return simple_step(step, whole, meaning, instruction.sources, sources, to, for_wave) or whole


def _passing(step: Step, careful: Step, sources: tuple[int, ...]) -> Step:
    """A step of more than 32 bits, in which nothing wraps around. What it gives is followed where an operand stands for another
    integer than its register holds."""

    def whole(lanes: NumpyLanes, frame: Frame) -> None:
        for slot in sources:
            held = frame.followed(slot)
            if held is not None and not held.leaf and not (held.known and held.true):
                careful(lanes, frame)
                return
        step(lanes, frame)

    return whole


def _given(lanes: NumpyLanes, meaning: Callable[..., Any], held: Sequence[Held], value: Array) -> Held:
    """What a register that now has `value` stands for."""
    results = _results(meaning, INTERVALS, [h if h.known else None for h in held])
    interval = None if results is None else results[0]
    if interval is None:
        return unknown(value)
    if told(interval):
        return bounded(value, interval)
    found = meaning(lanes.exact, *(_lanes_of(h) for h in held))
    first = found[0] if isinstance(found, tuple) else found
    return of_lanes(value, first.signed(), interval.bits) if first.known else unknown(value)


def _lanes_of(held: Held) -> Exact:
    if not held.known:
        return Exact(held.value, None, False)
    return Exact(held.value) if held.leaf else Exact(held.value, held.integers())


def _lost(step: Step, destinations: tuple[int, ...]) -> Step:
    def whole(lanes: NumpyLanes, frame: Frame) -> None:
        step(lanes, frame)
        for slot in destinations:
            frame.held[slot] = unknown(frame.registers[slot])

    return whole


def _copying(step: Step, to: int, source: int, for_wave: bool) -> Step:
    """A destination stands for what a source does."""

    def whole(lanes: NumpyLanes, frame: Frame) -> None:
        held = frame.followed(source)
        if held is None:
            step(lanes, frame)
            return
        merge = frame.wave_merge if for_wave else frame.merge
        before = None if merge is None else frame.followed(to)
        step(lanes, frame)
        after = held.of(merge).moved(frame.registers[to], _whole)
        frame.held[to] = after if merge is None else merged(before, after, merge)

    return whole


def _wide(step: Step, low: int, high: int, for_wave: bool) -> Step:
    """The low half of an integer stands for all of it."""

    def whole(lanes: NumpyLanes, frame: Frame) -> None:
        merge = frame.wave_merge if for_wave else frame.merge
        before = None if merge is None else frame.followed(low)
        step(lanes, frame)
        value = frame.registers[low]
        after = of_lanes(value, lanes.join((value, frame.registers[high])).view(np.int64), 32)
        frame.held[low] = after if merge is None else merged(before, after, merge)

    return whole


def _whole(lanes: Array) -> Array:
    return lanes


def _accessing(step: Step, instruction: Instruction, sources: tuple[int, ...], uses: tuple[tuple[int, bool], ...]) -> Step:
    """Before an access by an integer that its register may not hold, look in which lanes that is so."""
    meaning = instruction.meaning
    assert meaning is not None

    def whole(lanes: NumpyLanes, frame: Frame) -> None:
        for slot, unsigned in uses:
            held = frame.followed(slot)
            if held is None or not held.meant:
                continue
            held = held.of(lanes.mask)
            if not (held.low >= 0 and held.high < TOLD if unsigned else held.true):
                lanes.instruction = instruction
                given = [frame.integers(s).of(lanes.mask) for s in sources]
                lanes.exact_addresses.masks = [lanes.mask, *(each.where for each in given if each.meant)]
                meaning(lanes.exact_addresses, *map(_lanes_of, given))
                break
        step(lanes, frame)

    return whole
