"""What each wave of a recorded launch executed, instruction by instruction, with its accesses to memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tilefw.api.execution_trace import AccessTrace, BarrierTrace, BatchTrace, ExecutionTrace


@dataclass(slots=True)
class WaveAccess:
    """One access of one wave: `chunks` of global memory, `passes` of shared memory, `nbytes` asked for by its lanes, `size`
    by each. `repeats`: the most lanes of an atomic access that want one address. `words`, `moment`, `changed`, `order`: of an
    access with a memory order, as its trace has them. `remote_latency`: cycles until another device has answered, None for the
    device's own memory. `marked`: somebody asks when the wave issues it. `failed`: the moment of the last poll of these words that
    failed before it, 0 where none did."""

    kind: str
    chunks: tuple[int, ...]
    passes: int
    nbytes: int
    size: int = 4
    repeats: int = 1
    words: tuple[int, ...] = ()
    moment: int = 0
    changed: bool = False
    order: str = "weak"
    remote_latency: float | None = None
    marked: bool = False
    failed: int = 0
    _lines: tuple[int, ...] | None = field(default=None, init=False, compare=False)

    def lines(self, chunks_a_line: int) -> tuple[int, ...]:
        """The lines of so many chunks that its chunks lie in, each once; a chip has one size of line."""
        if self._lines is None:
            self._lines = tuple(dict.fromkeys(chunk // chunks_a_line for chunk in self.chunks))
        return self._lines


class BarrierUse(NamedTuple):
    """A barrier that counts, at an address of a workgroup's shared memory, which has ended so many phases when a wave uses it."""

    owner: int
    address: int
    ended: int


@dataclass(slots=True)
class WaveStream:
    """The instructions of one wave by number, in order, and by place in that order its accesses and the barriers that count that it
    uses. `narrow`: places at which a block begins that a part of the lanes executes, with its length and that part."""

    workgroup: int
    wave: int
    instructions: list[int] = field(default_factory=list)
    accesses: dict[int, list[WaveAccess]] = field(default_factory=dict)
    narrow: list[tuple[int, int, float]] = field(default_factory=list)
    barriers: dict[int, list[BarrierUse]] = field(default_factory=dict)

    def kept(self, places: Sequence[int]) -> WaveStream:
        """The stream of what stands at these places, in order, without `narrow`."""
        moved = {place: at for at, place in enumerate(places)}
        return WaveStream(
            self.workgroup, self.wave, [self.instructions[place] for place in places],
            {moved[place]: found for place, found in self.accesses.items() if place in moved},
            barriers={moved[place]: found for place, found in self.barriers.items() if place in moved},
        )


def streams(trace: ExecutionTrace, workgroups: Sequence[int]) -> list[WaveStream]:
    """The streams of the waves of some workgroups, in their order."""
    wanted = {number: place for place, number in enumerate(workgroups)}
    found: dict[tuple[int, int], WaveStream] = {}
    for batch in trace.batches:
        slots = [(slot, number) for slot, number in enumerate(batch.workgroups) if number in wanted]
        if slots:
            made = {(slot, wave): WaveStream(number, wave) for slot, number in slots for wave in range(batch.waves)}
            _follow(batch, made)
            found.update({(wanted[stream.workgroup], stream.wave): stream for stream in made.values()})
    return [found[key] for key in sorted(found)]


def _follow(batch: BatchTrace, made: dict[tuple[int, int], WaveStream]) -> None:
    for run in batch.runs:
        numbers = range(run.start, run.start + run.count)
        active = [(key, stream) for key, stream in made.items() if run.waves[key]]
        firsts = [len(stream.instructions) for _, stream in active]
        for key, stream in active:
            if run.filled is not None and run.filled[key] < 1:
                stream.narrow.append((len(stream.instructions), run.count, float(run.filled[key])))
            stream.instructions.extend(numbers)
        for access in run.accesses:
            rows = (np.cumsum(access.waves) - 1).reshape(access.waves.shape)
            for (key, stream), first in zip(active, firsts, strict=True):
                if access.waves[key]:
                    place = first + access.instruction - run.start
                    stream.accesses.setdefault(place, []).append(_of_wave(access, int(rows[key])))
        if run.barriers:
            begun = {key: (stream, first - run.start) for (key, stream), first in zip(active, firsts, strict=True)}
            for use in run.barriers:
                _at_barriers(use, begun)


def _at_barriers(use: BarrierTrace, begun: Mapping[tuple[int, int], tuple[WaveStream, int]]) -> None:
    """`begun`: by wave its stream, and what makes a place there of an instruction's number."""
    columns = (use.workgroups, use.waves, use.owners, use.addresses, use.ended)
    for group, wave, *barrier in zip(*(column.tolist() for column in columns), strict=True):
        if (group, wave) in begun:
            stream, first = begun[group, wave]
            stream.barriers.setdefault(first + use.instruction, []).append(BarrierUse(*barrier))


def _of_wave(access: AccessTrace, row: int) -> WaveAccess:
    chunks = access.chunks[row]
    return WaveAccess(
        access.kind, tuple(chunks[chunks >= 0].tolist()), int(access.passes[row]), int(access.nbytes[row]), access.size,
        1 if access.repeats is None else int(access.repeats[row]), () if access.words is None else access.words[row], access.moment,
        access.changed, access.order,
    )
