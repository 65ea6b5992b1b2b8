"""Waves whose loop repeats the same instructions: a few turns are timed, and the others take as long as each of those.

A loop of one wave is periodic where its turns are the same instructions one by one. A launch is shortened where all its waves make
equally many turns of their longest such loop, unless it comes back to memory of long before; what two lengths differ by is what a
turn adds.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tilefw.timing.processor import Outcome
from tilefw.timing.streams import WaveAccess, WaveStream

SHORT, LONG = 8, 16
"""Turns of the two lengths that are timed."""
WORTH = 3 * LONG
"""Turns from which a loop is shortened."""


@dataclass(frozen=True, slots=True)
class Periods:
    """All waves' streams cut to SHORT and to LONG turns of the `turns` that they make."""

    turns: int
    short: tuple[WaveStream, ...]
    long: tuple[WaveStream, ...]


def periods(streams: Sequence[WaveStream]) -> Periods | None:
    """The streams cut, or None where their turns are few, differ, or are not equally many."""
    found = [_turns(stream.instructions) for stream in streams]
    counts = {len(heads) - 1 for heads in found}
    if len(counts) != 1 or min(counts) < WORTH or any(map(_comes_back, streams[:1], found[:1])):
        return None
    cut = {
        most: tuple(_cut(stream, heads[most], heads[-1]) for stream, heads in zip(streams, found, strict=True))
        for most in (SHORT, LONG)
    }
    return Periods(counts.pop(), cut[SHORT], cut[LONG])


def extended(short: Outcome, long: Outcome, turns: int) -> Outcome:
    """The outcome of so many turns, from those of SHORT and LONG."""
    more = (turns - LONG) / (LONG - SHORT)

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


def _cut(stream: WaveStream, end: int, resume: int) -> WaveStream:
    """The stream without what lies between two places."""
    accesses: dict[int, list[WaveAccess]] = {}
    for place, found in stream.accesses.items():
        if place < end:
            accesses[place] = found
        elif place >= resume:
            accesses[place - (resume - end)] = found
    kept = stream.instructions[:end] + stream.instructions[resume:]
    return WaveStream(stream.workgroup, stream.wave, kept, accesses)
