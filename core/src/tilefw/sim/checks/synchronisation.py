"""What barriers, fences and strong accesses order, for the race check: clocks of waves, and what workgroups know of others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.checks.check import Check
from tilefw.sim.checks.engine_order import EVERY_ADDRESS, Knowledge, join_clocks
from tilefw.sim.checks.within_workgroups import WithinWorkgroups
from tilefw.sim.engine.batch import Batch
from tilefw.sim.floats import Array
from tilefw.sim.memory.access import Access, Piece

_RELEASES = frozenset({"release", "acq_rel", "seq_cst"})
_ACQUIRES = frozenset({"acquire", "acq_rel", "seq_cst"})
# Scopes that have no other workgroup. Who reaches shared memory at all is told by where it is.
_NEAR = frozenset({"wave", "workgroup"})
# Above this many addresses in one instruction, what it releases is kept for the region as a whole.
_FEW_ADDRESSES = 64


class Synchronisation(Check):
    """A part of the race check."""

    if TYPE_CHECKING:
        _released: dict[tuple[int, int], Knowledge]
        _own: dict[tuple[int, int], Knowledge]
        _known: dict[int, Knowledge]
        _fenced: dict[int, Knowledge]
        _seen: dict[int, Knowledge]
        _within: WithinWorkgroups

        def _actors(self, lanes: NumpyLanes, piece: Piece) -> tuple[Array, Array, Array, Array]: ...
        def _tell_events(self, batch: Batch, slot: int, wave: int, key: tuple[int, int]) -> None: ...

    def barrier(self, batch: Batch, slot: int, waves: Array) -> None:
        """The waves (numbers) of a workgroup have met."""
        clocks = batch.clocks[slot]
        # Own clocks are first made equal (nothing has happened in between), so that one number serves for several readers.
        top = clocks[waves, waves].max()
        clocks[waves, waves] = top
        clocks[waves] = clocks[waves].max(axis=0)
        batch.events.barrier(slot, waves, top)
        clocks[waves, waves] = top + 1

    def barrier_all(self, batch: Batch) -> None:
        """All waves of every workgroup of the batch have met."""
        clocks = batch.clocks
        waves = np.arange(clocks.shape[1])
        top = clocks[:, waves, waves].max(axis=1, keepdims=True)
        clocks[:, waves, waves] = top
        clocks[...] = clocks.max(axis=1, keepdims=True)
        batch.events.barrier_all(top)
        clocks[:, waves, waves] = top + 1

    def fence(self, lanes: NumpyLanes, order: str, scope: str) -> None:
        """What the acting waves did before is released by their own later strong writes to their workgroup's waves, and by their
        workgroup's to others; what they have seen released is acquired. A fence of the workgroup's scope says nothing to others."""
        if scope == "wave":
            return
        acting = np.broadcast_to(np.True_ if lanes.mask is None else lanes.mask, lanes.frame.shape).any(axis=2)
        slots, waves = (np.broadcast_to(a[:, :, 0], acting.shape)[acting] for a in (lanes.frame.group, lanes.frame.wave))
        batch = lanes.batch
        for slot, wave in zip(slots.tolist(), waves.tolist(), strict=True):
            group = int(batch.workgroups[slot])
            if order in _ACQUIRES:
                self._within.acquire(batch, slot, wave)
                if scope != "workgroup":
                    join_clocks(self._known.setdefault(group, {}), self._seen.get(group, {}))
            if order in _RELEASES:
                self._within.fence(batch, slot, wave)
                if scope != "workgroup":
                    fenced = self._fenced.setdefault(group, {})
                    join_clocks(fenced, self._known.get(group, {}))
                    join_clocks(fenced, {group: batch.clocks[slot, wave].copy()})
                batch.clocks[slot, wave, wave] += 1

    def accessed(self, lanes: NumpyLanes, access: Access) -> None:
        """What strong accesses acquire from, and release to, their addresses: those that launches share, too, as memory that they
        do not share is ordered by them. One of the workgroup's scope does neither to other workgroups."""
        shared = lanes.batch.memory.region("shared")
        for piece in access.pieces:
            near = access.scope in _NEAR and piece.region is not shared
            _, _, slots, waves = self._actors(lanes, piece)
            index = piece.offsets(lanes.frame.shape)
            addresses = np.unique(index)
            many = len(addresses) > _FEW_ADDRESSES
            turns = slice(None) if piece.turns is None else piece.turns
            made = dict.fromkeys(zip(slots[turns].tolist(), waves[turns].tolist(), index[turns].tolist(), strict=True))
            if many:
                self._read_single(lanes.batch, made, id(piece.region), access, near)
                made = dict.fromkeys((slot, wave, EVERY_ADDRESS) for slot, wave, _ in made)
            for slot, wave, address in made:
                self._exchange(lanes.batch, slot, wave, (id(piece.region), address), access, near)

    def _read_single(self, batch: Batch, made: Iterable[tuple[int, int, int]], region: int, access: Access, near: bool) -> None:
        """Of the many addresses of an instruction those at which others, of fewer, have released something."""
        if access.kind == "write":
            return
        for slot, wave, address in made:
            if (region, address) in self._released:
                self._read(batch, slot, wave, (region, address), access.order in _ACQUIRES, near)

    def _exchange(self, batch: Batch, slot: int, wave: int, key: tuple[int, int], access: Access, near: bool) -> None:
        """`near`: other workgroups are told by fences alone."""
        group = int(batch.workgroups[slot])
        if access.kind != "write":
            self._read(batch, slot, wave, key, access.order in _ACQUIRES, near)
            if key[1] != EVERY_ADDRESS:
                self._read(batch, slot, wave, (key[0], EVERY_ADDRESS), access.order in _ACQUIRES, near)
        if access.kind == "read":
            return
        releases = access.order in _RELEASES
        of_others, own = self._released.setdefault(key, {}), self._own.setdefault(key, {})
        for known in (self._fenced.get(group, {}), self._known.get(group, {}) if releases and not near else {}):
            join_clocks(of_others, known, but=group)
        self._within.write(batch, slot, wave, key, releases)
        if group in self._fenced.get(group, {}):
            join_clocks(own, {group: self._fenced[group][group]})
        if releases:
            if not near:
                join_clocks(own, {group: batch.clocks[slot, wave].copy()})
            self._tell_events(batch, slot, wave, key)
            batch.clocks[slot, wave, wave] += 1

    def _read(self, batch: Batch, slot: int, wave: int, key: tuple[int, int], acquires: bool, near: bool) -> None:
        group = int(batch.workgroups[slot])
        self._within.read(batch, slot, wave, key, acquires, self._released.get(key, {}).get(group))
        into = self._known if acquires and not near else self._seen
        for told in (self._released.get(key, {}), self._own.get(key, {})):
            if any(other != group for other in told):
                join_clocks(into.setdefault(group, {}), told, but=group)
