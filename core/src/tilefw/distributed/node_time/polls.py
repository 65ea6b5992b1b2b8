"""What a wave executed without its polls that failed: a wait is one poll, however often the simulator's order made it ask.

Polls that fail are accesses with a memory order that change nothing, by one instruction to the same words, with no other access to
global memory between them. Where the waves of a workgroup meet in such a loop, the others lose the same turns of it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from tilefw.timing.streams import WaveAccess, WaveStream

_Cut = tuple[int, int]


def without_failed_polls(waves: Sequence[WaveStream], barriers: frozenset[int]) -> list[WaveStream]:
    """The waves of one workgroup; `barriers` are the numbers of the instructions at which all of them meet."""
    meetings = [[place for place, number in enumerate(wave.instructions) if number in barriers] for wave in waves]
    own = [_failed(wave) for wave in waves]
    cuts = [list(found) for found in own]
    for number, found in enumerate(own):
        for first, last in found:
            before, after = bisect_left(meetings[number], first), bisect_left(meetings[number], last)
            for other in range(len(waves)):
                theirs = meetings[other]
                if before < after < len(theirs) and not own[other]:  # the poll that succeeds meets as well
                    cuts[other].append((theirs[before] + 1, theirs[after] + 1))
    return [_cut(wave, sorted(set(found))) for wave, found in zip(waves, cuts, strict=True)]


def _failed(wave: WaveStream) -> list[_Cut]:
    """From each poll that failed to the next one."""
    found = []
    asked = [place for place in sorted(wave.accesses) if any(access.chunks for access in wave.accesses[place])]
    for place, following in pairwise(asked):
        same = wave.instructions[place] == wave.instructions[following]
        words = _polled(wave.accesses[place])
        if same and words and words == tuple(word for access in wave.accesses[following] for word in access.words):
            found.append((place, following))
            for access in wave.accesses[following]:
                access.failed = max(one.moment for one in wave.accesses[place])
    return found


def _polled(accesses: Sequence[WaveAccess]) -> tuple[int, ...]:
    """The words that are looked at and stay as they are; none where anything else is done."""
    if not all(access.words and not access.changed and access.kind != "write" for access in accesses):
        return ()
    return tuple(word for access in accesses for word in access.words)


def _cut(wave: WaveStream, cuts: Sequence[_Cut]) -> WaveStream:
    """The stream without what lies from the first place of each cut up to its last."""
    if not cuts:
        return wave
    places: list[int] = []
    begin = 0
    for first, last in [*cuts, (len(wave.instructions),) * 2]:
        places += range(begin, first)
        begin = max(begin, last)
    return wave.kept(places)
