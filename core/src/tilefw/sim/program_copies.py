"""Copies by an engine, as text and as steps: bytes in flight are touched by nobody until their tag has been awaited.

`dma.in.N tag, width, memory, local, count, stride, local stride, …`, and `dma.out.N` the other way, count N dims; `wait tag`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tilefw.api.artifact import Entry
from tilefw.sim.floats import Array
from tilefw.sim.program_device import ProgramCall, ProgramFault
from tilefw.sim.program_steps import Action, RunningProgram
from tilefw.sim.program_text import TextInstruction


def copy_shapes(dims: int) -> dict[str, str]:
    """The instructions of an engine that counts as many dims, for a `TextTable`."""
    ways = {f"dma.{way}.{count}": "ll" + "i" * (2 + 3 * count) for way in ("in", "out") for count in range(1, dims + 1)}
    return {"wait": "l", **ways}


class CopyingProgram(RunningProgram):
    """One program's state, with its copies in flight; there are `tags` of them."""

    def __init__(
        self, call: ProgramCall, entry: Entry, registers: list[Array | None], local_bytes: int, tags: int
    ) -> None:
        super().__init__(call, entry, registers, local_bytes)
        self.tags = tags
        self.flying = np.zeros(len(self.local), bool)
        self.copies: list[tuple[int, bool, Array, Array, Array]] = []  # tag, inward, bytes here, elements there, what is copied

    def places(self, addresses: Array, width: int) -> Array:
        """As ever; none of them is in flight."""
        index = super().places(addresses, width)
        if self.copies and self.flying[index].any():
            raise ProgramFault("pending", "a copy of these bytes of the program's own memory has not been awaited")
        return index

    def reach(self, addresses: Array, width: int) -> None:
        """Memory that a copy will write is not accessed."""
        for _, inward, _, others, data in self.copies:
            if not inward and _overlap(addresses, width, others, data.shape[1]):
                raise ProgramFault("pending", "a copy to these bytes of memory has not been awaited")

    def start(self, tag: int, inward: bool, here: Array, there: Array, width: int) -> None:
        """Begin a copy of elements. Raises ProgramFault."""
        self._tag(tag)
        if width not in (1, 2, 4, 8):
            raise ProgramFault("bounds", f"the engine copies elements of 1, 2, 4 or 8 bytes, not of {width}")
        index = self.places(here, width)
        self.reach(there, width)
        data = self.call.memory.read(there, width) if inward else self.read_local(here, width)
        self.flying[index] = True
        self.copies.append((tag, inward, index, there, data))

    def _tag(self, tag: int) -> None:
        if not 0 <= tag < self.tags:
            raise ProgramFault("bounds", f"the engine has {self.tags} tags, no {tag}")

    def wait(self, tag: int) -> None:
        """Finish all copies with a tag. Raises ProgramFault where one has read what was written meanwhile."""
        self._tag(tag)
        finished = [copy for copy in self.copies if copy[0] == tag]
        self.copies = [copy for copy in self.copies if copy[0] != tag]
        for _, inward, index, there, data in finished:
            self.flying[index] = False
            if not inward:
                self.call.memory.write(there, data)
                continue
            if not np.array_equal(data, self.call.memory.read(there, data.shape[1])):
                raise ProgramFault("pending", "what this copy reads was written while it was in flight")
            self.local[index], self.written[index] = data, True

    def finish(self) -> None:
        """No copy is left in flight."""
        if self.copies:
            raise ProgramFault("leftovers", f"the program ends and copies of tag {self.copies[0][0]} have not been awaited")


def _overlap(addresses: Array, width: int, others: Array, others_width: int) -> bool:
    """Whether elements at some addresses share a byte with elements at others."""
    if not len(addresses) or not len(others):
        return False
    ordered = np.sort(others)
    before = np.searchsorted(ordered, addresses + np.uint64(width))  # how many begin before an element ends
    last = ordered[np.maximum(before, 1) - 1]
    return bool(((before > 0) & (last + np.uint64(others_width) > addresses)).any())


def _copy(program: CopyingProgram, made: TextInstruction, sources: list[int]) -> None:
    tag, width = program.whole(sources[0]), program.whole(sources[1])
    there, here = program.get(sources[2]), program.get(sources[3])
    for dim in range(4, len(sources), 3):
        count, stride, step = program.whole(sources[dim]), program.get(sources[dim + 1]), program.get(sources[dim + 2])
        most = len(program.local) // max(1, len(here))
        if not 0 <= count <= most:
            raise ProgramFault("bounds", f"the engine counts to {most} along this dim, not to {count}")
        along = np.arange(count, dtype=np.uint64)
        there, here = (at[:, None] + along * by for at, by in ((there, stride), (here, step)))
        there, here = there.ravel(), here.ravel()
    program.start(tag, ".in." in made.opcode, here, there, width)


def _wait(program: CopyingProgram, made: TextInstruction, sources: list[int]) -> None:
    program.wait(program.whole(sources[0]))


COPY_ACTIONS: Mapping[str, Action] = {"dma": _copy, "wait": _wait}
"""What the instructions of `copy_shapes` do to a `CopyingProgram`."""
