"""The strict simulator of the Tarn N1: scratch knows what is in flight, and the kit's steps know the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tilefw.api import Artifact, Entry
from tilefw.api.sim import (
    WORDS,
    ProgramCall,
    ProgramDevice,
    ProgramFault,
    RunningProgram,
    SimulatedEntry,
    TextInstruction,
    codes,
    elements,
    parse_programs,
    simulated_entry,
)
from tilefw_tarn.isa import LOCAL_BYTES, MATRIX, ROWS, TABLE, TAGS

Array = np.ndarray[Any, Any]


class TarnSimulator(ProgramDevice):
    """Runs the text of artifacts."""

    format = "tarn"

    def decode(self, artifact: Artifact, name: str) -> Mapping[str, SimulatedEntry]:
        kernels = parse_programs(artifact.text, name, TABLE)
        return {kernel.entry.name: simulated_entry(kernel, ROWS, _ACTIONS, _TarnProgram) for kernel in kernels}


class _TarnProgram(RunningProgram):
    """One program's state, with its copies in flight."""

    def __init__(self, call: ProgramCall, entry: Entry, registers: list[Array | None]) -> None:
        super().__init__(call, entry, registers, LOCAL_BYTES)
        self.flying = np.zeros(LOCAL_BYTES, bool)
        self.copies: list[tuple[int, bool, Array, Array, Array]] = []  # tag, inward, bytes here, elements in memory, what is copied

    def places(self, addresses: Array, width: int) -> Array:
        index = super().places(addresses, width)
        if self.copies and self.flying[index].any():
            raise ProgramFault("pending", "a copy of these bytes of scratch has not been awaited")
        return index

    def reach(self, addresses: Array, width: int) -> None:
        for _, inward, _, others, data in self.copies:
            if inward or not len(others) or not len(addresses):
                continue
            if int(addresses.max()) + width > int(others.min()) and int(others.max()) + data.shape[1] > int(addresses.min()):
                raise ProgramFault("pending", "a copy to these bytes of memory has not been awaited")

    def start(self, tag: int, inward: bool, here: Array, there: Array, width: int) -> None:
        if not 0 <= tag < TAGS:
            raise ProgramFault("bounds", f"DMA has {TAGS} tags, no {tag}")
        index = self.places(here, width)
        self.reach(there, width)
        data = self.call.memory.read(there, width) if inward else self.read_local(here, width)
        self.flying[index] = True
        self.copies.append((tag, inward, index, there, data))

    def wait(self, tag: int) -> None:
        for copy in [copy for copy in self.copies if copy[0] == tag]:
            self.copies.remove(copy)
            _, inward, index, there, data = copy
            self.flying[index] = False
            if not inward:
                self.call.memory.write(there, data)
                continue
            if not np.array_equal(data, self.call.memory.read(there, data.shape[1])):
                raise ProgramFault("pending", "what this copy reads was written while it was in flight")
            self.local[index], self.written[index] = data, True

    def finish(self) -> None:
        if self.copies:
            raise ProgramFault("leftovers", f"the program ends and copies of tag {self.copies[0][0]} have not been awaited")


def _copy(program: _TarnProgram, made: TextInstruction, sources: list[int]) -> None:
    tag, width = program.whole(sources[0]), program.whole(sources[1])
    elements, places = program.get(sources[2]), program.get(sources[3])
    for dim in range(4, len(sources), 3):
        count, stride, step = program.whole(sources[dim]), program.get(sources[dim + 1]), program.get(sources[dim + 2])
        if not 0 <= count <= LOCAL_BYTES:
            raise ProgramFault("bounds", f"DMA counts to {LOCAL_BYTES} along a dim, not to {count}")
        along = np.arange(count, dtype=np.uint64)
        elements, places = ((at[:, None] + along * by).ravel() for at, by in ((elements, stride), (places, step)))
    program.start(tag, ".in." in made.opcode, places, elements, width)


def _multiply(program: _TarnProgram, made: TextInstruction, sources: list[int]) -> None:
    _, type_, sums, _ = made.opcode.split(".")
    rows, columns, depth = MATRIX
    starts, steps = ([program.get(source) for source in sources[part : part + 3]] for part in (0, 3))

    def tile(which: int, height: int, width: int, element: str) -> Array:
        size = np.uint64(WORDS[element]().itemsize)
        down, across = np.arange(height, dtype=np.uint64)[:, None], np.arange(width, dtype=np.uint64)
        return (starts[which] + down * steps[which] + across * size).ravel()

    total = tile(0, rows, columns, sums)
    left, right = (
        _wide(elements(program.read_local(places, WORDS[type_]().itemsize), type_), type_)
        for places in (tile(1, rows, depth, type_), tile(2, depth, columns, type_))
    )
    before = elements(program.read_local(total, 4), sums).astype(np.float64)
    made_now = left.reshape(rows, depth) @ right.reshape(depth, columns)
    program.write_local(total, codes((before + made_now.ravel()).astype(np.float32)))


def _wide(x: Array, type_: str) -> Array:
    if type_ == "bf16":
        return (x.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    return (x.view(np.float16) if type_ == "f16" else x).astype(np.float64)


_ACTIONS = {"dma": _copy, "mma": _multiply, "wait": lambda program, made, sources: program.wait(program.whole(sources[0]))}
