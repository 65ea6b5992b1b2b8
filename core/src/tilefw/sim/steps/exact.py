"""Steps that follow the exact integers of offsets beside the registers (tracking/integers.py), for checks that ask for it.

Only instructions that the compiler has promised something of take part, copies of what they give, and accesses by it. A step gives
intervals; where those do not tell the integers of the lanes, the instruction is looked at lane by lane.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilefw.sim.algebra.exact import Exact
from tilefw.sim.algebra.intervals import INTERVALS, Interval, largest
from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.engine.frame import Frame
from tilefw.sim.floats import Array
from tilefw.sim.program import Destination, Immediate, Instruction, Program, Register, Source
from tilefw.sim.steps.careful import Step
from tilefw.sim.steps.exact_form import simple_step
from tilefw.sim.tracking.integers import TOLD, Held, bounded, merged, of_lanes, own, told, unknown


@dataclass(slots=True)
class Followed:
    """What is followed of a program, by instruction: those that give exact integers, what copies them (its sources by destination),
    where they are lost, the low halves of wide ones among destinations, and the sources that make addresses, with whether these are
    taken without a sign. Integers from `plain[0]` up to `plain[1]` are what any access takes their registers for."""

    exact: frozenset[int]
    lost: frozenset[int]
    plain: tuple[int, int] = (0, 0)
    copies: dict[int, dict[int, int]] = field(default_factory=dict)
    wide: dict[int, tuple[int, ...]] = field(default_factory=dict)
    addresses: dict[int, tuple[tuple[int, bool], ...]] = field(default_factory=dict)

    def instructions(self) -> frozenset[int]:
        """Of which instructions something is followed."""
        return frozenset((*self.exact, *self.lost, *self.addresses, *self.copies, *self.wide))


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
    promised = promises.exact | promises.lost
    rest = [(i, _registers(i.sources)) for i in instructions if i.meaning is not None and i.index not in promised]
    _follow_copies(found, rest, holds)
    _follow_addresses(found, rest, holds)
    unsigned = {unsigned for uses in found.addresses.values() for _, unsigned in uses}
    signed = False in unsigned or any(instructions[i].destinations[0].bits > 32 for i in exact)
    found.plain = (0 if True in unsigned else -(1 << 31), 1 << 31 if signed else 1 << 32)
    return found


def follow(
    step: Step, instruction: Instruction, sources: Sequence[int], destinations: Sequence[int], for_wave: Sequence[bool],
    of: Followed,
) -> Step:
    """The step, with what is followed of its instruction. `sources` and `destinations` are slots; `for_wave` marks destinations
    that hold one value for the wave."""
    index = instruction.index
    if index in of.exact:
        return _exact(step, instruction, tuple(sources), destinations[0], for_wave[0], of.plain)
    if index in of.lost:
        return _lost(step, tuple(destinations))
    for destination, source in of.copies.get(index, {}).items():
        step = _copying(step, destinations[destination], sources[source], for_wave[destination])
    for low in of.wide.get(index, ()):
        step = _wide(step, destinations[low], destinations[low + 1], for_wave[low], of.plain)
    if index in of.addresses:
        step = _accessing(step, instruction, tuple(sources), tuple((sources[s], u) for s, u in of.addresses[index]))
    return step


# --- which instructions take part ----------------------------------------------------------------------------------------------


class _Accessed(Exception):
    """The meaning has come to its access: what it gives is of no interest."""


@dataclass(frozen=True, slots=True)
class _Made:
    """A value of a meaning, by the numbers of the sources that it is made of."""

    sources: frozenset[int] = frozenset()


class _Uses:
    """Finds out of which sources the meaning of an access makes its addresses; `unsigned` are those that it extends with zeros."""

    wave_size = 0

    def __init__(self) -> None:
        self.accesses = False
        self.address: frozenset[int] = frozenset()
        self.unsigned: frozenset[int] = frozenset()

    def __getattr__(self, name: str) -> Any:
        return lambda *operands, **keywords: _made_of((*operands, *keywords.values()))

    def join(self, parts: Sequence[_Made]) -> _Made:
        """Of an integer in two registers what is meant is not followed."""
        return _Made()

    def add_carry(self, *operands: _Made) -> tuple[_Made, _Made]:
        made = _made_of(operands)
        return made, made

    sub_borrow = add_carry

    def split(self, a: _Made, bits: int) -> tuple[_Made, ...]:
        return (a,) * (64 // bits)

    def zero_extend(self, a: _Made, bits: int) -> _Made:
        self.unsigned |= a.sources
        return a

    def _access(self, space: str, address: _Made, *_: Any, **__: Any) -> Any:
        self.accesses, self.address = space in ("global", "generic"), address.sources
        raise _Accessed

    load = store = atomic = load_reserved = store_conditional = _access

    def copy_async(self, to: str, destination: _Made, space: str, source: _Made, *_: Any, **__: Any) -> None:
        self._access(space, _made_of((destination, source)))


def _made_of(values: Iterable[Any]) -> _Made:
    sources: frozenset[int] = frozenset()
    for value in values:
        if isinstance(value, _Made):
            sources |= value.sources
        elif isinstance(value, (list, tuple)):
            sources |= _made_of(value).sources
    return _Made(sources)


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


_Reading = tuple[Instruction, set[int]]
"""An instruction, and the registers that it reads."""


def _follow_copies(found: Followed, rest: Sequence[_Reading], holds: set[int]) -> None:
    """Copies of what registers `holds` have, and copies of these."""
    no_copies: set[str] = set()
    changed = True
    while changed:
        changed = False
        for instruction, read in rest:
            if read.isdisjoint(holds) or instruction.index in found.copies or instruction.mnemonic in no_copies:
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


def _follow_addresses(found: Followed, rest: Sequence[_Reading], holds: set[int]) -> None:
    """Accesses of global memory by what registers `holds` have."""
    idle: set[str] = set()
    for instruction, read in rest:
        if read.isdisjoint(holds) or instruction.mnemonic in idle:
            continue
        made_of = _address_sources(instruction)
        if made_of is None:
            idle.add(instruction.mnemonic)
            continue
        uses = tuple((s, unsigned) for s, unsigned in made_of.items() if _registers((instruction.sources[s],)) & holds)
        if uses:
            found.addresses[instruction.index] = uses


def _address_sources(instruction: Instruction) -> Mapping[int, bool] | None:
    """The sources that an access of global memory makes its address of, with whether it extends them with zeros; None for another
    instruction."""
    assert instruction.meaning is not None
    uses = _Uses()
    with suppress(_Accessed, TypeError, ValueError):
        instruction.meaning(uses, *(_Made(frozenset((s,))) for s in range(len(instruction.sources))))
    return {s: s in uses.unsigned for s in sorted(uses.address)} if uses.accesses else None


def _registers(operands: Iterable[Source | Destination]) -> set[int]:
    return {operand.index for operand in operands if isinstance(operand, Register)}


def _register(operand: Destination) -> int:
    return operand.index if isinstance(operand, Register) else -1


# --- the steps -----------------------------------------------------------------------------------------------------------------


def _exact(
    step: Step, instruction: Instruction, sources: tuple[int, ...], to: int, for_wave: bool, plain: tuple[int, int]
) -> Step:
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
        _watch(lanes, after, plain)
        frame.held[to] = after if merge is None else merged(before, after, merge)

    if instruction.destinations[0].bits > 32:
        return _passing(step, whole, sources)
    return simple_step(step, whole, meaning, instruction.sources, sources, to, for_wave, plain) or whole


def _watch(lanes: NumpyLanes, held: Held, plain: tuple[int, int]) -> None:
    """From now on registers are looked at wherever they are used, if this one stands for other than what it holds."""
    if not (held.known and held.sure and (held.leaf or (plain[0] <= held.low and held.high < plain[1]))):
        lanes.strayed = True


def _passing(step: Step, careful: Step, sources: tuple[int, ...]) -> Step:
    """A step of more than 32 bits, in which nothing wraps around. What it gives is followed where an operand stands for another
    integer than its register holds."""

    def whole(lanes: NumpyLanes, frame: Frame) -> None:
        if not lanes.strayed:
            step(lanes, frame)
            return
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
        lanes.strayed = True
        step(lanes, frame)
        for slot in destinations:
            frame.held[slot] = unknown(frame.registers[slot])

    return whole


def _copying(step: Step, to: int, source: int, for_wave: bool) -> Step:
    """A destination stands for what a source does."""

    def whole(lanes: NumpyLanes, frame: Frame) -> None:
        held = frame.followed(source)
        merge = frame.wave_merge if for_wave else frame.merge
        before = None if merge is None else frame.followed(to)
        step(lanes, frame)
        if held is None:
            if before is not None and before.follows and merge is not None:
                frame.held[to] = merged(before, own(frame.registers[to]), merge)
            return
        after = held.of(merge).moved(frame.registers[to], _whole)
        frame.held[to] = after if merge is None else merged(before, after, merge)

    return whole


def _wide(step: Step, low: int, high: int, for_wave: bool, plain: tuple[int, int]) -> Step:
    """The low half of an integer stands for all of it."""

    def whole(lanes: NumpyLanes, frame: Frame) -> None:
        merge = frame.wave_merge if for_wave else frame.merge
        before = None if merge is None else frame.followed(low)
        step(lanes, frame)
        value, above = frame.registers[low], frame.registers[high]
        if largest(above) == 0:
            after = Held(value, 0, largest(value), False)
        else:
            after = of_lanes(value, lanes.join((value, above)).view(np.int64), 32)
        _watch(lanes, after, plain)
        frame.held[low] = after if merge is None else merged(before, after, merge)

    return whole


def _whole(lanes: Array) -> Array:
    return lanes


def _accessing(step: Step, instruction: Instruction, sources: tuple[int, ...], uses: tuple[tuple[int, bool], ...]) -> Step:
    """Before an access by an integer that its register may not hold, look in which lanes that is so."""
    meaning = instruction.meaning
    assert meaning is not None

    def whole(lanes: NumpyLanes, frame: Frame) -> None:
        for slot, unsigned in uses if lanes.strayed else ():
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
