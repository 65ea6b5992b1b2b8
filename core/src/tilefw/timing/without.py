"""A launch without one of its inefficiencies: what its waves would execute then, and what its chip would not do."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tilefw.api.execution_trace import CHUNK
from tilefw.sim.program import Barrier
from tilefw.timing.chip_timing import ChipTiming, InstructionCost, Purpose
from tilefw.timing.phases import ARRIVES
from tilefw.timing.processor import REAL, Ideal
from tilefw.timing.streams import WaveAccess, WaveStream

Waves = Sequence[WaveStream]
_ROOM = 1 << 60


@dataclass(frozen=True, slots=True)
class Subject:
    """What an inefficiency is looked for in: the chip, the code, the lanes of a wave, the streams of a processor's workgroups,
    how many of these the chip could hold at once, how many come in all, and bytes a thread that an assembler spills."""

    chip: ChipTiming
    instructions: Sequence[Any]
    lanes: int
    waves: Waves
    room: int
    most: int
    spilled: int = 0


@dataclass(frozen=True, slots=True)
class Without:
    """The chip, the streams, and what a processor is spared."""

    chip: ChipTiming
    waves: Waves
    ideal: Ideal = REAL


def conflicts(of: Subject) -> Without | None:
    """Each passage through shared memory moves all that it can."""
    row = of.chip.shared_row

    def passed(access: WaveAccess, _: set[int]) -> WaveAccess:
        return replace(access, passes=min(access.passes, max(1, -(-access.nbytes // row))) if access.passes else 0)

    return _changed(of, passed)


def scattered(of: Subject) -> Without | None:
    """Lanes want no more chunks than their bytes fill; those come first that the wave has not had."""

    def packed(access: WaveAccess, had: set[int]) -> WaveAccess:
        most = -(-access.nbytes // CHUNK)
        if len(access.chunks) <= most:
            return access
        fresh = [chunk for chunk in access.chunks if chunk not in had]
        kept = (fresh + [chunk for chunk in access.chunks if chunk in had])[:most]
        had.update(kept)
        return replace(access, chunks=tuple(sorted(kept)))

    return _changed(of, packed)


def exchanges(of: Subject) -> Without | None:
    """What waves put into shared memory from registers stays in registers, and as much of what they read from there."""
    put, got = 0, 0
    copies = {number for number, i in enumerate(of.instructions) if of.chip.cost(i).role in ("copy", "bulk")}
    for stream in of.waves:
        for place, found in stream.accesses.items():
            if stream.instructions[place] not in copies:
                put += sum(access.nbytes for access in found if access.passes and access.kind == "write")
                got += sum(access.nbytes for access in found if access.passes and access.kind == "read")
    if not put or not got:
        return None
    share = min(1.0, put / got)
    executed: dict[int, list[WaveAccess]] = defaultdict(list)
    for stream in of.waves:
        for place, found in stream.accesses.items():
            executed[stream.instructions[place]] += found
    spared = {n for n, found in executed.items() if n not in copies and all(a.passes and not a.chunks for a in found)}

    def cost(instruction: Any) -> InstructionCost:
        own = of.chip.cost(instruction)
        if instruction.index not in spared:
            return own
        return replace(own, cycles=own.cycles * (1 - share), latency=own.latency * (1 - share), slots=own.slots * (1 - share))

    def passed(access: WaveAccess, _: set[int]) -> WaveAccess:
        return replace(access, passes=round(access.passes * (1 - share))) if not access.chunks else access

    changed = _changed(of, passed)
    return None if changed is None else replace(changed, chip=replace(of.chip, cost=cost))


def work(purpose: Purpose, of: Subject) -> Without | None:
    """Instructions of a purpose take no time, and touch no memory."""
    numbers = {number for number, i in enumerate(of.instructions) if of.chip.cost(i).purpose == purpose}
    if not any(numbers.intersection(stream.instructions) for stream in of.waves):
        return None

    def cost(instruction: Any) -> InstructionCost:
        own = of.chip.cost(instruction)
        return replace(own, cycles=0, latency=0, slots=0) if instruction.index in numbers else own

    waves = [
        replace(s, accesses={place: a for place, a in s.accesses.items() if s.instructions[place] not in numbers}) for s in of.waves
    ]
    return Without(replace(of.chip, cost=cost), waves)


def spills(of: Subject) -> Without | None:
    """Every register's value stays there."""
    if of.chip.spills_later:
        return Without(of.chip, of.waves, Ideal(spills=True)) if of.spilled else None
    return work("spill", of)


def waited_loads(of: Subject) -> Without | None:
    """Of loads that a wave makes again and again nobody waits for the latency, as if they had been made early enough."""
    hidden: set[int] = set()
    for stream in of.waves:
        counts: dict[int, int] = defaultdict(int)
        for place, found in stream.accesses.items():
            if any(access.chunks and access.kind == "read" for access in found):
                counts[stream.instructions[place]] += 1
        hidden.update(number for number, count in counts.items() if count > 1)
    return Without(of.chip, of.waves, Ideal(hidden=frozenset(hidden))) if hidden else None


def barriers(of: Subject) -> Without | None:
    """No wave waits for another at a barrier."""
    numbers = {number for number, i in enumerate(of.instructions) if isinstance(i.flow, Barrier)}
    if not any(numbers.intersection(stream.instructions) for stream in of.waves):
        return None
    return Without(of.chip, of.waves, Ideal(barriers=True))


def same_addresses(of: Subject) -> Without | None:
    """Atomic accesses to one address take their turns in no time."""
    if not any(access.kind == "atomic" for stream in of.waves for found in stream.accesses.values() for access in found):
        return None
    return Without(replace(of.chip, atomic_cycles=0.0), of.waves)


def lost_lines(of: Subject) -> Without | None:
    """Caches hold all that has come to them."""
    levels = tuple(replace(level, nbytes=_ROOM) for level in of.chip.levels[:-1])
    return Without(replace(of.chip, levels=(*levels, of.chip.levels[-1])), of.waves)


def divergence(of: Subject) -> Without | None:
    """Lanes that go one way are in waves of their own: of the waves that execute a block in part of their lanes, as many execute it
    as those lanes fill."""
    if not any(stream.narrow for stream in of.waves):
        return None
    filled: dict[int, float] = defaultdict(float)
    return Without(of.chip, [_together(stream, filled) for stream in of.waves])


def _together(stream: WaveStream, filled: dict[int, float]) -> WaveStream:
    dropped: set[int] = set()
    for first, count, part in stream.narrow:
        start = stream.instructions[first]
        if start not in filled:  # waves that go one way are others than those that go the other
            filled[start] = 0.5 * (len(filled) % 2)
        filled[start] += part
        if filled[start] >= 1 - 1e-9:
            filled[start] -= 1
        else:
            dropped.update(range(first, first + count))
    return stream.kept([place for place in range(len(stream.instructions)) if place not in dropped])


def idle_lanes(of: Subject) -> Without | None:
    """A workgroup has no more waves than its accesses to memory fill."""
    asked: dict[int, int] = defaultdict(int)
    turns: dict[tuple[int, int], int] = {}
    for stream in of.waves:
        for place, found in stream.accesses.items():
            if not of.instructions[stream.instructions[place]].wave:
                asked[stream.wave] += sum(access.nbytes for access in found if access.chunks)
                turns[stream.workgroup, place] = max(access.size if access.chunks else 0 for access in found)
    waves = len({stream.wave for stream in of.waves})
    offered = sum(turns.values()) * waves * of.lanes
    keep = max(1, math.ceil(waves * sum(asked.values()) / offered)) if offered else waves
    if keep >= waves:
        return None
    chosen = set(sorted(asked, key=lambda wave: -asked[wave])[:keep])
    begins = {number for number, i in enumerate(of.instructions) if of.chip.cost(i).role in ARRIVES}
    chosen |= {s.wave for s in of.waves if begins.intersection(s.instructions)}  # others wait for what these begin
    return Without(of.chip, [stream for stream in of.waves if stream.wave in chosen])


def small_tiles(of: Subject) -> Without | None:
    """Products of tiles twice as long and wide: half of all else for each."""
    executed = {number for stream in of.waves for number in stream.instructions}
    if not any(of.chip.cost(of.instructions[number]).pipe in of.chip.matrix_pipes for number in executed):
        return None

    def cost(instruction: Any) -> InstructionCost:
        own = of.chip.cost(instruction)
        return own if own.pipe in of.chip.matrix_pipes else replace(own, cycles=own.cycles / 2, slots=own.slots / 2)

    def halved(access: WaveAccess, had: set[int]) -> WaveAccess:
        if access.kind != "read":
            return access
        return replace(access, chunks=access.chunks[: -(-len(access.chunks) // 2)], passes=-(-access.passes // 2))

    changed = _changed(of, halved)
    return None if changed is None else replace(changed, chip=replace(of.chip, cost=cost))


def empty_places(of: Subject) -> Without | None:
    """A processor holds as many workgroups as waves leave room for, four times those that it does at most: they hide one another's
    waits."""
    numbers = list(dict.fromkeys(stream.workgroup for stream in of.waves))
    wanted = min(of.room, of.most, 4 * len(numbers))
    if wanted <= len(numbers):
        return None
    waves = [_elsewhere(stream, copy) for copy in range(-(-wanted // len(numbers))) for stream in of.waves]
    kept = set(list(dict.fromkeys(stream.workgroup for stream in waves))[:wanted])
    return Without(of.chip, [stream for stream in waves if stream.workgroup in kept])


def _elsewhere(stream: WaveStream, copy: int) -> WaveStream:
    """The same wave of another workgroup, whose memory is its own."""
    if not copy:
        return stream
    apart = copy << 44
    accesses = {
        place: [replace(a, chunks=tuple(chunk + apart for chunk in a.chunks)) for a in found]
        for place, found in stream.accesses.items()
    }
    barriers = {place: [use._replace(owner=use.owner + apart) for use in found] for place, found in stream.barriers.items()}
    return replace(stream, workgroup=stream.workgroup + apart, accesses=accesses, barriers=barriers)


def _changed(of: Subject, change: Callable[[WaveAccess, set[int]], WaveAccess]) -> Without | None:
    """The streams with other accesses; None where all stay as they are."""
    made, same = [], True
    for stream in of.waves:
        had: set[int] = set()
        accesses = {place: [change(access, had) for access in found] for place, found in stream.accesses.items()}
        same = same and accesses == stream.accesses
        made.append(replace(stream, accesses=accesses))
    return None if same else Without(of.chip, made)


conversions = partial(work, "conversion")
special = partial(work, "special")
