"""Waves whose loop repeats the same instructions: a few turns are timed, and the others take as long as each of those.

A loop of one wave is periodic where its turns are the same instructions one by one. A launch is shortened where all its waves make
equally many turns of their longest such loop, unless it comes back to memory of long before; what two lengths differ by is what a
turn adds. Waves that are few instructions beside those turns stay whole.

Waves hand slots of a ring to each other at barriers that count. Whole rounds of the ring are left out, and the phases behind them
are counted on from those before, so that each wait still is for what its own turn, or an earlier one, has of it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tilefw.timing.processor import Outcome
from tilefw.timing.streams import BarrierUse, WaveAccess, WaveStream

Barrier = tuple[int, int]

SHORT, LONG = 8, 16
"""Turns of the two lengths that are timed."""
WORTH = 3 * LONG
"""Turns from which a loop is shortened."""


@dataclass(frozen=True, slots=True)
class Periods:
    """All waves' streams cut to `few` turns (SHORT or a few more) and to `many` (LONG or so) of the `turns` that they make."""

    turns: int
    few: int
    many: int
    short: tuple[WaveStream, ...]
    long: tuple[WaveStream, ...]


def periods(streams: Sequence[WaveStream]) -> Periods | None:
    """The streams cut, or None where their turns are few, differ, or are not equally many."""
    found = [_turns(stream.instructions) for stream in streams]
    turning = [(stream, heads) for stream, heads in zip(streams, found, strict=True) if len(heads) > 1]
    counts = {len(heads) - 1 for _, heads in turning}
    if len(counts) != 1 or min(counts) < WORTH or _comes_back(*turning[0]):
        return None
    turns = counts.pop()
    longest = min(heads[LONG] - heads[0] for _, heads in turning)
    if any(len(heads) == 1 and len(stream.instructions) > longest for stream, heads in zip(streams, found, strict=True)):
        return None
    rings = {_ring(stream, heads) for stream, heads in turning}
    ring = math.lcm(*rings) if 0 not in rings else 0
    if not 0 < ring <= SHORT:
        return None
    phases = {barrier: count for stream, heads in turning for barrier, count in _phases(stream, heads, ring).items()}
    dropped = [(turns - most) // ring * ring for most in (SHORT, LONG)]
    short, long = (
        tuple(
            _cut(stream, heads, count, {barrier: each * count // ring for barrier, each in phases.items()})
            for stream, heads in zip(streams, found, strict=True)
        )
        for count in dropped
    )
    return Periods(turns, turns - dropped[0], turns - dropped[1], short, long)


def extended(short: Outcome, long: Outcome, of: Periods) -> Outcome:
    """The outcome of all turns, from those of few and of many."""
    more = (of.turns - of.many) / (of.many - of.few)

    def line(a: float, b: float) -> float:
        return b + (b - a) * more

    def all_lines(a: Mapping, b: Mapping) -> dict:
        return {key: max(0.0, line(a.get(key, 0.0), b[key])) for key in b}

    stalls: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for number, causes in long.stalls.items():
        stalls[number].update(all_lines(short.stalls.get(number, {}), causes))
    executed = {number: round(count) for number, count in all_lines(short.executed, long.executed).items()}
    limits = all_lines(short.limits, long.limits)
    cycles, total = line(short.cycles, long.cycles), sum(limits.values())
    scaled = {cause: taken * cycles / total for cause, taken in limits.items()}
    busy, moved = all_lines(short.busy, long.busy), all_lines(short.moved, long.moved)
    return Outcome(cycles, scaled, busy, stalls, executed, moved, all_lines(short.operations, long.operations))


def _turns(instructions: Sequence[int]) -> list[int]:
    """Where the turns of the longest periodic loop begin, and the place behind the last; one place where there is no such loop."""
    heads = Counter(after for before, after in pairwise(instructions) if after <= before)
    best: list[int] = [0]
    for head, count in heads.items():
        if count >= WORTH:
            places = [place for place, number in enumerate(instructions) if number == head]
            run = _alike(instructions, places)
            if run[-1] - run[0] > best[-1] - best[0]:
                best = run
    return best


def _alike(instructions: Sequence[int], places: Sequence[int]) -> list[int]:
    """The longest run of places between which the instructions are the same each time."""
    begin, best = 0, (0, 0)
    for place in range(1, len(places) - 1):
        if instructions[places[place] : places[place + 1]] != instructions[places[begin] : places[begin + 1]]:
            begin = place
        best = max(best, (place + 1 - begin, begin))
    return list(places[best[1] : best[1] + best[0] + 1])


def _comes_back(stream: WaveStream, heads: Sequence[int]) -> bool:
    """Whether turns read again what turns read that are more than LONG before: the first turns do not tell how later ones are."""
    last: dict[int, int] = {}
    asked = again = 0
    for turn, (first, end) in enumerate(pairwise(heads)):
        for place in range(first, end):
            for access in stream.accesses.get(place, ()):
                for chunk in access.chunks:
                    asked += 1
                    again += turn - last.get(chunk, turn) > LONG
                    last[chunk] = turn
    return 4 * again > asked


def _used(stream: WaveStream, first: int, end: int) -> list[BarrierUse]:
    """The barriers that count which a stream uses between two places, in order."""
    return [use for place in range(first, end) for use in stream.barriers.get(place, ())]


def _ring(stream: WaveStream, heads: Sequence[int]) -> int:
    """After how many turns a wave uses the same barriers again; 0: never."""
    turns = [[use[:2] for use in _used(stream, *around)] for around in pairwise(heads)]
    return next((n for n in range(1, SHORT + 1) if turns[n:] == turns[:-n]), 0)


def _phases(stream: WaveStream, heads: Sequence[int], ring: int) -> dict[Barrier, int]:
    """How many phases each barrier that a wave uses ends in a round of the ring."""
    first = {use[:2]: use.ended for use in reversed(_used(stream, heads[0], heads[ring]))}
    next_ = {use[:2]: use.ended for use in reversed(_used(stream, heads[ring], heads[2 * ring]))}
    return {barrier: next_[barrier] - ended for barrier, ended in first.items()}


def _cut(stream: WaveStream, heads: Sequence[int], dropped: int, phases: Mapping[Barrier, int]) -> WaveStream:
    """The stream without its last `dropped` turns, in which barriers end so many `phases`."""
    if len(heads) == 1:
        return stream
    end, resume = heads[-1 - dropped], heads[-1]
    accesses: dict[int, list[WaveAccess]] = {}
    barriers: dict[int, list[BarrierUse]] = {}
    for place, found in stream.accesses.items():
        if place < end:
            accesses[place] = found
        elif place >= resume:
            accesses[place - (resume - end)] = found
    for place, used in stream.barriers.items():
        if place < end:
            barriers[place] = used
        elif place >= resume:
            barriers[place - (resume - end)] = [use._replace(ended=use.ended - phases.get(use[:2], 0)) for use in used]
    kept = stream.instructions[:end] + stream.instructions[resume:]
    return WaveStream(stream.workgroup, stream.wave, kept, accesses, barriers=barriers)
