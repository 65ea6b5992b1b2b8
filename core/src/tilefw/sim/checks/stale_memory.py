"""stale memory: loads of global memory may return older values, as the view machine's rules allow, by the launch's seed.

It is no check of its own: it makes the memory of a launch as weak as the model says, so that a fence left out, a scope that is too
narrow or a barrier left out gives wrong results. An agent is a wave. Updates (atomics) work on the newest value; copies and reads
by engines see it too, and what an engine stored all see. Shared memory is not weak; its strong accesses and its barriers order.
Launches of one memory that run at once share what its words held, each on the device of its rank.
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
from tilefw.sim.memory.engine_copies import EngineCopy
from tilefw.sim.memory.regions import Region
from tilefw.sim.memory.views.adversary import Adversary
from tilefw.sim.memory.views.agents import Agents
from tilefw.sim.memory.views.events import EventLabel, Order, Participant, SyncScope
from tilefw.sim.memory.views.words import WORD, RememberedWords

_SCOPES = {
    "wave": SyncScope.SELF, "workgroup": SyncScope.WORKGROUP, "cluster": SyncScope.DEVICE, "device": SyncScope.DEVICE,
    "system": SyncScope.SYSTEM,
}
_SEQUENTIAL = {"seq_cst": "sc"}
_BARRIER = "cluster"  # the widest scope of barriers in shared memory; who passes one does not say its own


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
        self._stale = 0
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
        for piece in access.pieces:
            self._meet_at(lanes, piece, label(access.order, access.scope), access.kind != "write", access.kind != "read")

    def engine_landed(self, batch: Batch, copy: EngineCopy) -> None:
        if _is_weak(copy.destination):
            index = copy.destination_index if copy.inside is None or copy.filling else copy.destination_index[copy.inside]
            piece = Piece(copy.destination, index.reshape(-1), None)
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

    def fence(self, lanes: NumpyLanes, order: str, scope: str) -> None:
        acting = np.broadcast_to(np.True_ if lanes.mask is None else lanes.mask, lanes.frame.shape)
        fence = label(order, scope)
        for agent in np.unique(self._numbers(lanes)[acting]).tolist():
            self.words.agents.fence(agent, fence.order, fence.scope)

    def barrier(self, batch: Batch, slot: int, waves: Array) -> None:
        first = self._first(batch, slot)
        self._meet([first + int(wave) for wave in waves])

    def barrier_all(self, batch: Batch) -> None:
        for slot in range(len(batch.workgroups)):
            first = self._first(batch, slot)
            self._meet([first + wave for wave in range(self._waves)])

    def barrier_passed(self, lanes: NumpyLanes, piece: Piece) -> None:
        self._meet_at(lanes, piece, label("acquire", _BARRIER), reads=True, writes=False)

    def cluster_met(self, lanes: NumpyLanes, threads: Array, order: str, passed: bool) -> None:
        batch, members = lanes.batch, self.launch.geometry.cluster_workgroups
        for number in np.unique(threads // batch.frame.shape[2]).tolist():
            slot, wave = divmod(number, self._waves)
            agent, first = (self._first(batch, place) for place in (slot, slot // members * members))
            self.words.synchronise(agent + wave, ("cluster", first), label(order, "cluster"), reads=True, writes=not passed)

    def finish(self) -> None:
        self.launch.diagnostics.counters.add("stale_reads", self._stale)

    # -- parts

    def _first(self, batch: Batch, slot: int) -> int:
        """The agent that is the first wave of a workgroup."""
        return self.launch.memory.first_agent + int(batch.workgroups[slot]) * self._waves

    def _meet_at(self, lanes: NumpyLanes, piece: Piece, made: EventLabel, reads: bool, writes: bool) -> None:
        """A strong access of shared memory, each workgroup's at its own places."""
        region, batch = piece.region, lanes.batch
        if region is not batch.memory.region("shared"):
            return
        index = np.broadcast_to(piece.index, lanes.frame.shape).reshape(-1) if piece.lanes is None else piece.index
        for agent, place in sorted(set(zip(self._agents(lanes, piece).tolist(), index.tolist(), strict=True))):
            slot, offset = divmod(place, region.stride)
            self.words.synchronise(agent, (self._first(batch, slot), offset), made, reads, writes)

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
                if _is_weak(piece.region):
                    yield piece

    def _numbers(self, lanes: NumpyLanes) -> Array:
        frame = lanes.frame
        numbers = self.launch.memory.first_agent + lanes.batch.workgroups[frame.group] * self._waves + frame.wave
        return np.broadcast_to(numbers, frame.shape)

    def _agents(self, lanes: NumpyLanes, piece: Piece) -> Array:
        """The wave of each lane of a piece."""
        numbers = self._numbers(lanes)
        return numbers.reshape(-1) if piece.lanes is None else numbers[piece.lanes]


def _is_weak(region: Region) -> bool:
    """Whether all workgroups share it and it can be written."""
    return bool(region.base) and not region.readonly and len(region.data) >= WORD


def _words(piece: Piece, size: int, lanes: NumpyLanes | None = None) -> Array:
    """Numbers of the words that each lane touches, a row a lane."""
    index = piece.index
    if piece.lanes is None and lanes is not None:
        index = np.broadcast_to(index, lanes.frame.shape)
    first = np.uint64(piece.region.base) + index.reshape(-1).astype(np.uint64)
    # The last byte of an element that is not aligned lies in one word more.
    steps = np.array([*range(0, size, WORD), *([size - 1] if size > 1 else [])], dtype=np.uint64)
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
