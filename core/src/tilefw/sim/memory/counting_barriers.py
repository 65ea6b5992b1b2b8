"""Barriers that count arrivals and bytes, as words of 64 bits in memory: how one is made, arrived at, and passes to its next phase.

A word holds the arrivals that its phase still wants, how many each phase wants, the bytes that are still to come (or have come
before they were announced) and the parity of the phase. A phase is over when nothing of either is wanted; the next one begins at
once. """

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilefw.sim.floats import Array

MOST_ARRIVALS = (1 << 20) - 1
MOST_BYTES = (1 << 20) - 1
BYTES = 8  # of a barrier
_PENDING, _EXPECTED, _BYTES, _PHASE, _MARK = 0, 20, 40, 61, 62
_FIELD = np.uint64((1 << 20) - 1)
_BIAS = 1 << 20
_MADE = np.uint64(2)  # the mark of a word that is a barrier: neither zeros nor ones are


@dataclass(slots=True)
class BarrierWords:
    """Barriers in parts, each an array of int64: `bytes` are positive while some are to come. `made`: the word is a barrier."""

    pending: Array
    expected: Array
    bytes: Array
    phase: Array
    made: Array

    @classmethod
    def of(cls, words: Array) -> BarrierWords:
        """The parts of words as they stand in memory."""
        words = np.asarray(words, dtype=np.uint64)

        def part(shift: int, mask: np.uint64) -> Array:
            return ((words >> np.uint64(shift)) & mask).astype(np.int64)

        signed = part(_BYTES, np.uint64(2 * _BIAS - 1)) - _BIAS
        return cls(
            part(_PENDING, _FIELD), part(_EXPECTED, _FIELD), signed, part(_PHASE, np.uint64(1)),
            (words >> np.uint64(_MARK)) == _MADE,
        )

    @classmethod
    def begun(cls, count: Array) -> BarrierWords:
        """New barriers for so many arrivals a phase."""
        count = np.asarray(count, dtype=np.int64)
        zeros = np.zeros_like(count)
        return cls(count.copy(), count.copy(), zeros, zeros.copy(), np.ones(count.shape, dtype=np.bool_))

    def words(self) -> Array:
        """As they stand in memory."""
        def placed(part: Array, shift: int) -> Array:
            return part.astype(np.uint64) << np.uint64(shift)

        found = (
            placed(self.pending, _PENDING) | placed(self.expected, _EXPECTED) | placed(self.bytes + _BIAS, _BYTES)
            | placed(self.phase, _PHASE)
        )
        return found | (np.where(self.made, _MADE, np.uint64(0)) << np.uint64(_MARK))

    def advance(self) -> Array:
        """Begin the next phase of those whose phase is over; tells which these are."""
        over = self.made & (self.pending == 0) & (self.bytes == 0)
        self.pending = np.where(over, self.expected, self.pending)
        self.phase = np.where(over, 1 - self.phase, self.phase)
        return over


class BarrierWaits:
    """Which phase of which barrier each thread of a batch has begun to wait for, and how many phases each barrier has ended.

    A barrier that ends two phases under a wait for the first leaves the wait standing: its parity is that of the next phase again.
    """

    def __init__(self, threads: int) -> None:
        self._barrier = np.full(threads, -1, dtype=np.int64)
        self._phase = np.zeros(threads, dtype=np.int64)
        self._ended: dict[int, int] = {}

    def advanced(self, places: Array, over: Array) -> None:
        """The barriers at these places have begun their next phase where `over` holds."""
        for place in places[over].tolist():
            self._ended[place] = self._ended.get(place, 0) + 1

    def made(self, places: Array) -> None:
        """New barriers: nobody waits for what was there before."""
        self._barrier[np.isin(self._barrier, places)] = -1

    def waits(self, threads: Array, places: Array, over: Array) -> Array:
        """These threads ask barriers at these places, and those where `over` does not hold wait on; gives by how many phases each
        has been overrun."""
        number, of = np.unique(places, return_inverse=True)
        ended = np.array([self.ended(place) for place in number.tolist()], dtype=np.int64)[of.reshape(-1)]
        new = self._barrier[threads] != places
        self._phase[threads] = np.where(new, ended, self._phase[threads])
        self._barrier[threads] = np.where(over, -1, places)
        return np.where(over, 0, ended - self._phase[threads])

    def ended(self, place: int) -> int:
        """How many phases a barrier has ended."""
        return self._ended.get(place, 0)

    def given_up(self, threads: Array) -> None:
        """These threads wait no longer, though nothing has ended."""
        self._barrier[threads] = -1


def described(word: int) -> str:
    """What a barrier still wants, for messages."""
    parts = BarrierWords.of(np.array([word], dtype=np.uint64))
    if not parts.made[0]:
        return "no barrier"
    pending, missing = int(parts.pending[0]), int(parts.bytes[0])
    wanted = [f"{pending} of {int(parts.expected[0])} arrivals"] if pending else []
    if missing > 0:
        wanted.append(f"{missing} bytes")
    if missing < 0:
        wanted.append(f"the announcement of {-missing} bytes that have come")
    return f"phase {int(parts.phase[0])} wants {' and '.join(wanted) or 'nothing'}"
