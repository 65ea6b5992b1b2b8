"""stale memory: loads of global memory may return older values, as the view machine's rules allow, by the launch's seed.

It is no check of its own: it makes the memory of a launch as weak as the model says, so that a fence left out, a scope that is too
narrow or a barrier left out gives wrong results. An agent is a wave. Updates (atomics) work on the newest value; copies and reads
by engines see it too. Launches of one memory that run at once share what its words held, each on the device of its rank.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import numpy as np

from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.checks.check import Check
from tilefw.sim.engine.batch import Batch
from tilefw.sim.engine.state import Geometry, LaunchState
from tilefw.sim.floats import Array
from tilefw.sim.memory.access import Access, Piece
from tilefw.sim.memory.views.adversary import Adversary
from tilefw.sim.memory.views.agents import Agents
from tilefw.sim.memory.views.events import EventLabel, Order, Participant, SyncScope
from tilefw.sim.memory.views.words import WORD, RememberedWords

_SCOPES = {
    "wave": SyncScope.SELF, "workgroup": SyncScope.WORKGROUP, "cluster": SyncScope.DEVICE, "device": SyncScope.DEVICE,
    "system": SyncScope.SYSTEM,
}
_SEQUENTIAL = {"seq_cst": "sc"}


def label(order: str, scope: str) -> EventLabel:
    """The label of an access or a fence as instructions name them. A cluster's scope is taken as the device's."""
    return EventLabel(None, cast(Order, _SEQUENTIAL.get(order, order)), _SCOPES[scope] if order != "weak" else SyncScope.SELF)


def share_memory(launches: Sequence[LaunchState], devices: Sequence[int], seed: int) -> None:
    """Launches that are about to run at once, each on a device: those with weak memory see each other's stores by its rules."""
    weak = [(one, device) for one, device in zip(launches, devices, strict=True) if one.memory.remembered is not None]
    places: list[Participant] = []
    for launch, device in weak:
        launch.memory.first_agent = len(places)
        # Workgroups of several launches on one device are different ones.
        places += _places(launch.geometry, device, len(places))
    if places:
        words = RememberedWords(Agents(places), Adversary(seed))
        for launch, _ in weak:
            launch.memory.remembered = words


def _places(geometry: Geometry, device: int, first: int) -> list[Participant]:
    return [Participant(device, first + group) for group in range(geometry.workgroups) for _ in range(geometry.waves)]


class StaleMemory(Check):
    """What the words of a launch's memory held, for its loads."""

    name = "weak_memory"

    def __init__(self, launch: LaunchState) -> None:
        super().__init__(launch)
        self._waves = launch.geometry.waves
        launch.memory.remembered = RememberedWords(Agents(_places(launch.geometry, 0, 0)), Adversary(launch.options.seed))

    @property
    def words(self) -> RememberedWords:
        """Those of the launch, or of all that run at once."""
        words = self.launch.memory.remembered
        assert words is not None
        return words

    def access(self, lanes: NumpyLanes, access: Access) -> None:
        if access.kind != "read":
            for piece in self._pieces(access):
                for word, value in _values(piece, np.unique(_words(piece, access.size))):
                    self.words.first(word, value)

    def stored(self, lanes: NumpyLanes, access: Access) -> None:
        self._store(lanes, access, updates=False)

    def accessed(self, lanes: NumpyLanes, access: Access) -> None:
        if access.kind == "atomic":
            self._store(lanes, access, updates=True)

    def loaded(self, lanes: NumpyLanes, access: Access, raw: Array) -> None:
        for piece in self._pieces(access):
            words, agents = _words(piece, access.size, lanes), self._agents(lanes, piece)
            chosen = np.ones(lanes.frame.shape, dtype=np.bool_) if piece.lanes is None else piece.lanes
            values = np.ascontiguousarray(raw[chosen])
            content = values.view(np.uint8).reshape(len(values), access.size)
            offsets = np.broadcast_to(piece.index, chosen.shape)[chosen] if piece.lanes is None else piece.index
            for agent in np.unique(agents).tolist():
                mine = np.nonzero(agents == agent)[0]
                found = self.words.load(agent, np.unique(words[mine]).tolist(), label(access.order, access.scope))
                for lane in mine.tolist() if found else ():
                    _put(content[lane], int(piece.region.base) + int(offsets[lane]), found)
            raw[chosen] = values

    def fence(self, lanes: NumpyLanes, order: str, scope: str) -> None:
        acting = np.broadcast_to(np.True_ if lanes.mask is None else lanes.mask, lanes.frame.shape)
        fence = label(order, scope)
        for agent in np.unique(self._numbers(lanes)[acting]).tolist():
            self.words.agents.fence(agent, fence.order, fence.scope)

    def barrier(self, batch: Batch, slot: int, waves: Array) -> None:
        first = self.launch.memory.first_agent + int(batch.workgroups[slot]) * self._waves
        self._meet([first + int(wave) for wave in waves])

    def barrier_all(self, batch: Batch) -> None:
        for group in batch.workgroups.tolist():
            first = self.launch.memory.first_agent + group * self._waves
            self._meet([first + wave for wave in range(self._waves)])

    def finish(self) -> None:
        self.launch.diagnostics.counters.add("stale_reads", self.words.stale)

    # -- parts

    def _meet(self, waves: list[int]) -> None:
        agents = self.words.agents
        agents.barrier([agents.arrive(wave) for wave in waves], waves)

    def _store(self, lanes: NumpyLanes, access: Access, updates: bool) -> None:
        for piece in self._pieces(access):
            words, agents = _words(piece, access.size, lanes), self._agents(lanes, piece)
            for agent in np.unique(agents).tolist():
                stored = _values(piece, np.unique(words[agents == agent]))
                self.words.store(agent, list(stored), label(access.order, access.scope), updates)

    def _pieces(self, access: Access) -> Iterator[Piece]:
        """Those in memory that all workgroups share and that can be written."""
        if not access.engine:
            for piece in access.pieces:
                if piece.region.base and not piece.region.readonly and len(piece.region.data) >= WORD:
                    yield piece

    def _numbers(self, lanes: NumpyLanes) -> Array:
        frame = lanes.frame
        numbers = self.launch.memory.first_agent + lanes.batch.workgroups[frame.group] * self._waves + frame.wave
        return np.broadcast_to(numbers, frame.shape)

    def _agents(self, lanes: NumpyLanes, piece: Piece) -> Array:
        """The wave of each lane of a piece."""
        numbers = self._numbers(lanes)
        return numbers.reshape(-1) if piece.lanes is None else numbers[piece.lanes]


def _words(piece: Piece, size: int, lanes: NumpyLanes | None = None) -> Array:
    """Numbers of the words that each lane touches, a row a lane."""
    index = piece.index
    if piece.lanes is None and lanes is not None:
        index = np.broadcast_to(index, lanes.frame.shape)
    first = np.uint64(piece.region.base) + index.reshape(-1).astype(np.uint64)
    steps = np.arange(0, size, min(size, WORD), dtype=np.uint64)
    return (first[:, None] + steps) // np.uint64(WORD)


def _values(piece: Piece, words: Array) -> Iterator[tuple[int, int]]:
    """Words of a region with what it holds there now."""
    data, base = piece.region.data, int(piece.region.base)
    for word in words.tolist():
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
