"""stale memory: loads of global memory may return older values, as the view machine's rules allow, by the launch's seed.

It is no check of its own: it makes the memory of a launch as weak as the model says, so that a fence left out, a scope that is too
narrow or a barrier left out gives wrong results. An agent is a wave. Updates (atomics) work on the newest value; copies and reads
by engines see it too, and what an engine stored all see. Shared memory is not weak; its strong accesses and its barriers order.
Launches of one memory that run at once share what its words held, each on the device of its rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.checks.agent_order import AgentOrder, is_shared_by_all, label
from tilefw.sim.engine.batch import Batch
from tilefw.sim.engine.state import LaunchState
from tilefw.sim.floats import Array
from tilefw.sim.memory.access import Access, Piece
from tilefw.sim.memory.engine_copies import EngineCopy
from tilefw.sim.memory.regions import Region
from tilefw.sim.memory.views.words import WORD


class StaleMemory(AgentOrder):
    """What the words of a launch's memory held, for its loads."""

    name = "weak_memory"

    def __init__(self, launch: LaunchState) -> None:
        super().__init__(launch)
        self._stale = 0

    def access(self, lanes: NumpyLanes, access: Access) -> None:
        if access.kind != "read":
            for piece in self._pieces(access):
                for word, value in _values(piece, self.words.unknown(np.unique(_words(piece, access.size)).tolist())):
                    self.words.first(word, value)

    def stored(self, lanes: NumpyLanes, access: Access) -> None:
        self._store(lanes, access, updates=False)

    def accessed(self, lanes: NumpyLanes, access: Access) -> None:
        if access.kind == "atomic":
            self._store(lanes, access, updates=True)
        for piece in access.pieces:
            self._meet_at(lanes, piece, label(access.order, access.scope), access.kind != "write", access.kind != "read")

    def engine_landed(self, batch: Batch, copy: EngineCopy) -> None:
        super().engine_landed(batch, copy)
        if _is_weak(copy.destination):
            piece = Piece(copy.destination, copy.written, None)
            self.words.forget(np.unique(_words(piece, copy.size)).tolist())

    def loaded(self, lanes: NumpyLanes, access: Access, raw: Array) -> None:
        for piece in self._pieces(access):
            words, agents = _words(piece, access.size, lanes), self._agents(lanes, piece)
            chosen = np.ones(lanes.frame.shape, dtype=np.bool_) if piece.lanes is None else piece.lanes
            values = np.ascontiguousarray(raw[chosen])
            content = values.view(np.uint8).reshape(len(values), access.size)
            offsets = np.broadcast_to(piece.index, chosen.shape)[chosen] if piece.lanes is None else piece.index
            for agent in np.unique(agents).tolist():
                mine, before = np.nonzero(agents == agent)[0], self.words.stale
                found = self.words.load(agent, np.unique(words[mine]).tolist(), label(access.order, access.scope))
                self._stale += self.words.stale - before
                for lane in mine.tolist() if found else ():
                    _put(content[lane], int(piece.region.base) + int(offsets[lane]), found)
            raw[chosen] = values

    def finish(self) -> None:
        self.launch.diagnostics.counters.add("stale_reads", self._stale)

    # -- parts

    def _store(self, lanes: NumpyLanes, access: Access, updates: bool) -> None:
        for piece in self._pieces(access):
            words, agents = _words(piece, access.size, lanes), self._agents(lanes, piece)
            for agent in np.unique(agents).tolist():
                stored = _values(piece, np.unique(words[agents == agent]).tolist())
                self.words.store(agent, list(stored), label(access.order, access.scope), updates)

    def _pieces(self, access: Access) -> Iterator[Piece]:
        """Those in memory that all workgroups share and that can be written."""
        if not access.engine:
            for piece in access.pieces:
                if _is_weak(piece.region):
                    yield piece


def _is_weak(region: Region) -> bool:
    """Whether all workgroups share it and it can be written."""
    return is_shared_by_all(region) and len(region.data) >= WORD


def _words(piece: Piece, size: int, lanes: NumpyLanes | None = None) -> Array:
    """Numbers of the words that each lane touches, a row a lane."""
    index = piece.index
    if piece.lanes is None and lanes is not None:
        index = np.broadcast_to(index, lanes.frame.shape)
    first = np.uint64(piece.region.base) + index.reshape(-1).astype(np.uint64)
    # The last byte of an element that is not aligned lies in one word more.
    steps = np.array([*range(0, size, WORD), *([size - 1] if size > 1 else [])], dtype=np.uint64)
    return (first[:, None] + steps) // np.uint64(WORD)


def _values(piece: Piece, words: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Words of a region with what it holds there now."""
    data, base = piece.region.data, int(piece.region.base)
    for word in words:
        start = word * WORD - base
        yield word, int.from_bytes(data[max(start, 0) : start + WORD].tobytes().ljust(WORD, b"\0"), "little")


def _put(content: Array, address: int, found: dict[int, int]) -> None:
    """Give the bytes of one lane's element, which begins at an address, those of the words that were found."""
    for word in range(address // WORD, (address + len(content) - 1) // WORD + 1):
        if word in found:
            for byte, value in enumerate(found[word].to_bytes(WORD, "little")):
                place = word * WORD + byte - address
                if 0 <= place < len(content):
                    content[place] = value
