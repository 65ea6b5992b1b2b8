"""What workgroups that run side by side share of memory, by the instruction that asks for it: from how all of them begin.

A line that n workgroups of a die want costs each of them an n-th of its way from memory. Instructions ask for the same kind of
memory again and again, so the beginning of every resident workgroup says what each instruction shares.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from tilefw.api.execution_trace import AccessTrace, BatchTrace, ExecutionTrace
from tilefw.timing.chip_timing import ChipTiming, MemoryLevel

_Touches = dict[int, dict[int, np.ndarray]]
"""Chunks by workgroup and instruction, each once."""


class Sharing:
    """What is shared of each level of a chip's memory, by `beginnings`: the recorded beginnings of workgroups that run together."""

    def __init__(self, chip: ChipTiming, beginnings: ExecutionTrace) -> None:
        touches: _Touches = {}
        for batch in beginnings.batches:
            touches.update(_of_batch(batch))
        self._levels = [_SharedLevel(chip, level, touches) for level in chip.levels[:-1]]

    def part(self, level: int, instruction: int) -> float:
        """What a workgroup pays of what an instruction brings from behind a level (its place in the chip's): 1 where it shares
        nothing."""
        found = self._levels[level]
        return found.parts.get(instruction, found.usual)

    def usual(self, level: int) -> float:
        """`part` of all instructions together."""
        return self._levels[level].usual


class _SharedLevel:
    def __init__(self, chip: ChipTiming, level: MemoryLevel, touches: _Touches) -> None:
        self.parts: dict[int, float] = {}
        self.usual = 1.0
        if level.shared_by == "processor":
            return
        dies = chip.dies if level.shared_by == "die" else 1
        paid, asked = defaultdict[int, float](float), defaultdict[int, int](int)
        for die in range(dies):
            mine = [by for workgroup, by in touches.items() if workgroup % dies == die and by]
            if not mine:
                continue
            wholes = [np.unique(np.concatenate(list(by.values()))) for by in mine]
            chunks, counts = np.unique(np.concatenate(wholes), return_counts=True)
            for by in mine:
                for instruction, wanted in by.items():
                    paid[instruction] += float((1.0 / counts[np.searchsorted(chunks, wanted)]).sum())
                    asked[instruction] += len(wanted)
        self.parts = {instruction: paid[instruction] / count for instruction, count in asked.items()}
        if asked:
            self.usual = sum(paid.values()) / sum(asked.values())


def contention(traces: Sequence[ExecutionTrace]) -> dict[int, float]:
    """By atomic instruction, the part of the workgroups that want the same chunks: from the first trace in which two of them or
    more execute it; 0 where none tells."""
    found: dict[int, float] = {}
    for recorded in traces:
        wanting: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
        for batch in recorded.batches:
            for slot, access, chunks in _accesses(batch):
                if access.kind == "atomic":
                    wanting[access.instruction][batch.workgroups[slot]].update(chunks.tolist())
        for instruction, by in wanting.items():
            if len(by) > 1 and instruction not in found:
                counts = Counter(chunk for chunks in by.values() for chunk in chunks)
                asked = sum(counts.values())
                shared = sum(count * count for count in counts.values() if count > 1) / asked
                found[instruction] = shared / len(by)
    return found


def _of_batch(batch: BatchTrace) -> _Touches:
    parts: dict[int, dict[int, list[np.ndarray]]] = {number: defaultdict(list) for number in batch.workgroups}
    for slot, access, chunks in _accesses(batch):
        parts[batch.workgroups[slot]][access.instruction].append(chunks)
    return {
        workgroup: {instruction: np.unique(np.concatenate(found)) for instruction, found in by.items()}
        for workgroup, by in parts.items()
    }


def _accesses(batch: BatchTrace) -> Iterator[tuple[int, AccessTrace, np.ndarray]]:
    """(Workgroup of the batch, access, chunks) of every access to global memory."""
    for run in batch.runs:
        for access in run.accesses:
            if access.chunks.shape[1]:
                slots = np.nonzero(access.waves)[0]
                for slot in np.unique(slots):
                    chunks = access.chunks[slots == slot].reshape(-1)
                    yield int(slot), access, chunks[chunks >= 0]
