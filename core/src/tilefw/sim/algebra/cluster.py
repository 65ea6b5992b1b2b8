"""Clusters of the lane algebra: workgroups that run together, meet at a barrier, and reach each other's shared memory.

An address in the space "cluster" is one in shared memory with the number of a workgroup of the cluster, and one more, in its bits
from 24 on; without these bits it is in one's own. """

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tilefw.sim.algebra.counting import CountingLanes
from tilefw.sim.floats import UNSIGNED, Array
from tilefw.sim.memory.access import AccessKind, Piece
from tilefw.sim.memory.engine_copies import EngineCopy
from tilefw.sim.report import LaunchStopped, first_true

_RANK = 24  # the first bit of the number
OFFSETS = (1 << _RANK) - 1  # the bits of an address that say where in a workgroup's memory it is


class ClusterLanes(CountingLanes):
    """Places in clusters; accesses to the shared memory of others."""

    def cluster_id(self, axis: int) -> Array:
        size = np.uint32(self.launch.geometry.cluster[axis])
        return self.batch.coordinates[axis][self.frame.group] // size

    def cluster_size(self, axis: int) -> Array:
        return self.const(self.launch.geometry.cluster[axis], 32)

    def cluster_place(self, axis: int) -> Array:
        size = np.uint32(self.launch.geometry.cluster[axis])
        return self.batch.coordinates[axis][self.frame.group] % size

    def cluster_address(self, address: Array, rank: Array, bits: int) -> Array:
        word = UNSIGNED[bits]
        own = address.astype(np.uint64) & ~np.uint64(0xFF << _RANK)
        there = own | ((rank.astype(np.uint64) + np.uint64(1)) << np.uint64(_RANK))
        members = self.launch.geometry.cluster_workgroups
        self.require(rank.astype(np.int64) < members, "the cluster has no workgroup of this number")
        return (own if members == 1 else there).astype(word)

    def cluster_rank_of(self, address: Array) -> Array:
        rank = (address.astype(np.uint64) >> np.uint64(_RANK)).astype(np.uint32) & np.uint32(0xFF)
        own = (self.frame.group % self.launch.geometry.cluster_workgroups).astype(np.uint32)
        return np.where(rank == 0, own, rank - np.uint32(1))

    def cluster_pieces(
        self, address: Array, size: int, kind: AccessKind, mask: Array | None, alignment: int | None
    ) -> list[Piece]:
        """Where accesses to the shared memory of a cluster go."""
        lanes = np.broadcast_to(np.True_ if mask is None else mask, self.frame.shape)
        region, whole = self.batch.memory.region("shared"), np.broadcast_to(address, self.frame.shape).astype(np.uint64)[lanes]
        rank = ((whole >> np.uint64(_RANK)) & np.uint64(0xFF)).astype(np.int64)
        offset = (whole & np.uint64(OFFSETS)).astype(np.int64)
        members = self.launch.geometry.cluster_workgroups
        own = np.broadcast_to(self.frame.group, self.frame.shape)[lanes]
        slot = np.where(rank == 0, own, own // members * members + rank - 1)
        if offset.size and (region.size < size or int(offset.max()) > region.size - size or int(rank.max()) > members):
            self._out_of_bounds("shared", address, size, kind, mask, region)
        gone = (slot != own) & ~np.asarray(self.batch.alive.any(axis=(1, 2)))[slot]
        if gone.any():
            self._ended(lanes, gone)
        self._show_address(address, whole, alignment or size, size, mask)
        return [Piece(region, offset + slot * region.stride, lanes)]

    def _ended(self, lanes: Array, gone: Array) -> None:
        bad = lanes.copy()
        bad[lanes] = gone
        self.launch.diagnostics.reporter.add(
            "bounds", "TFW0828", "an access to the shared memory of a workgroup that has ended", self.instruction,
            count=int(gone.sum()), where=self.locate(*first_true(bad)),
            note="the workgroups of a cluster meet at its barrier before one of them ends whose memory others access",
        )
        raise LaunchStopped

    def multicast(self, copy: EngineCopy, chosen: Array) -> list[EngineCopy]:
        """The copies of one copy that go to each workgroup of the cluster that has its bit in `chosen`."""
        members, stride = self.launch.geometry.cluster_workgroups, copy.destination.stride
        _, waves, width = self.batch.frame.shape
        slot = copy.thread // (waves * width)
        offset = copy.destination_index - (copy.destination_index[:, :1] // stride * stride)
        made: list[EngineCopy] = []
        for rank in range(16):
            rows = (chosen.astype(np.int64) >> rank & 1).astype(np.bool_)
            if not rows.any():
                continue
            if rank >= members:
                self.trap(f"a copy goes to workgroup {rank} of a cluster of {members}")
            there = ((slot // members * members + rank) * stride)[rows]
            part = copy.part(rows)
            barrier = None if part.barrier is None else part.barrier % stride + there
            made.append(replace(part, destination_index=offset[rows] + there[:, None], barrier=barrier))
        return made

    # --- registers ----------------------------------------------------------------------------------------------------------

    def deal_registers(self, count: int, more: bool) -> None:
        """What a wave has before it is dealt some nobody says: it counts as none. Who gets more waits until others have given
        enough away, so that each of them counts with the fewest that it has had."""
        batch, (dealt, least) = self.batch, self.batch.registers_dealt
        acting = self.acting_lanes().any(axis=2)
        if not acting.any():
            return
        slots, waves = (np.broadcast_to(a[:, :, 0], acting.shape)[acting] for a in (self.frame.group, self.frame.wave))
        before = dealt[slots, waves]
        wrong = (before > count) if more else (before > 0) & (before < count)
        if wrong.any():
            had = int(before[int(np.argmax(wrong))])
            verb, than = ("gets", "more") if more else ("keeps", "fewer")
            self.trap(f"a wave of {had} registers a lane {verb} {count}: that is not {than}")
        dealt[slots, waves] = count
        together, most = least.copy(), self.launch.chip.registers
        together[slots, waves] = count
        least[slots, waves] = np.where(least[slots, waves] == 0, count, np.minimum(least[slots, waves], count))
        sums = together.sum(axis=1)[slots] * batch.frame.shape[2]
        if most and (sums > most).any():
            self.trap(f"the waves of a workgroup would have {int(sums.max())} registers; it has {most}")

    # --- the barrier of a cluster ------------------------------------------------------------------------------------------

    def cluster_arrive(self, order: str = "release") -> None:
        batch = self.batch
        threads = batch.copies.threads(self.frame, self.mask)
        batch.met.reshape(-1)[threads] += 1
        batch.barriers_changed = True
        for observe in self.observers.cluster_met:
            observe(self, threads, order, False)

    def cluster_passed(self, order: str = "acquire") -> Array:
        batch, members = self.batch, self.launch.geometry.cluster_workgroups
        groups, waves, width = batch.frame.shape
        met = np.where(np.broadcast_to(batch.alive, batch.frame.shape), batch.met, np.iinfo(np.int64).max)
        least = met.reshape(groups // members, -1).min(axis=1)
        threads = batch.copies.threads(self.frame, None).reshape(self.frame.shape)
        passed = least[threads // (waves * width) // members] >= batch.met.reshape(-1)[threads]
        if order == "acquire" and passed.any():
            through = threads[passed if self.mask is None else passed & self.mask]
            for observe in self.observers.cluster_met:
                observe(self, through, order, True)
        return passed
