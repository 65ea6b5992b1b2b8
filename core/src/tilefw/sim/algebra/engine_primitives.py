"""The primitives of what works beside the waves: barriers that count arrivals and bytes, engines that copy blocks of memory, and
registers that waves hand to each other.

An engine sees shared memory by a view of its own: what threads have written there is theirs alone until a fence of views.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from tilefw.sim.algebra.boxes import Box
from tilefw.sim.algebra.widths import no_result, one_bit, one_word, primitive
from tilefw.sim.memory.reductions import Reduction

Value = Any
Space = str


class EnginePrimitives:
    """Barriers that count and engines that copy. A part of `Algebra`."""

    # --- barriers that count: 8 aligned bytes of shared memory each ------------------------------------------------------

    @primitive(no_result)
    def barrier_begin(self, space: Space, address: Value, count: Value) -> None:
        """Make a barrier each phase of which wants `count` arrivals (32 bits, 1 to 2**20 - 1)."""

    @primitive(no_result)
    def barrier_end(self, space: Space, address: Value) -> None:
        """The place is no barrier any more; nobody may wait there."""

    @primitive(lambda *_, **__: 64)
    def barrier_arrive(
        self, space: Space, address: Value, count: Value, *, expect: Value | None = None, drop: bool = False,
        order: str = "release", scope: str = "workgroup",
    ) -> Value:
        """So many arrivals (32 bits); with `expect`, so many bytes are announced first; with `drop`, later phases want as many
        arrivals less. Gives the state before, which names the phase. Lanes go one after the other."""

    @primitive(no_result)
    def barrier_expect(self, space: Space, address: Value, count: Value) -> None:
        """The phase wants so many bytes more (32 bits)."""

    @primitive(no_result)
    def barrier_deliver(self, space: Space, address: Value, count: Value, *, order: str = "relaxed") -> None:
        """So many bytes (32 bits) have come; with the order "release", so has what the thread has done before."""

    @primitive(one_bit)
    def barrier_passed(
        self, space: Space, address: Value, phase: Value, by: Literal["state", "parity"], *, order: str = "acquire",
        scope: str = "workgroup",
    ) -> Value:
        """Whether a phase is over: that of a state which an arrival gave, or the last one of a parity (32 bits, 0 or 1). With
        the flow `Await` lanes where it is not wait."""

    @primitive(one_word)
    def barrier_wanted(self, state: Value) -> Value:
        """How many arrivals the phase of a state wanted."""

    @primitive(no_result)
    def barrier_arrive_behind_copies(self, space: Space, address: Value, count: bool) -> None:
        """One arrival once all copies that the thread has started by `copy_async` are done; with `count` the phase wants that one
        more."""

    # --- registers of a wave -----------------------------------------------------------------------------------------------

    @primitive(no_result)
    def deal_registers(self, count: int, more: bool) -> None:
        """The acting waves have so many registers a lane from now on: more than before, out of what others of their workgroup have
        given away, or fewer. Stops the launch where that is neither, or where the workgroup cannot have so many."""

    # --- barriers of a cluster ---------------------------------------------------------------------------------------------

    @primitive(no_result)
    def cluster_arrive(self, order: str = "release") -> None:
        """The thread has come to its cluster's barrier."""

    @primitive(one_bit)
    def cluster_passed(self, order: str = "acquire") -> Value:
        """Whether every thread of the cluster has arrived as often as this one, or has ended. Goes with the flow `Await`."""

    @primitive(lambda address, rank, bits: bits)
    def cluster_address(self, address: Value, rank: Value, bits: int) -> Value:
        """The address, in the shared memory of workgroup number `rank` of the cluster, of what stands at `address` in one's own."""

    @primitive(one_word)
    def cluster_rank_of(self, address: Value) -> Value:
        """The number in its cluster of the workgroup in whose shared memory an address lies."""

    @primitive(one_word)
    def cluster_id(self, axis: int) -> Value:
        """Index of the cluster in the grid of clusters."""

    @primitive(one_word)
    def cluster_size(self, axis: int) -> Value:
        """Workgroups of a cluster along an axis."""

    @primitive(one_word)
    def cluster_place(self, axis: int) -> Value:
        """Index of the workgroup in its cluster."""

    # --- copies by an engine -------------------------------------------------------------------------------------------------

    @primitive(no_result)
    def engine_copy(
        self, destination_space: Space, destination: Value, source_space: Space, source: Value, size: Value, *,
        barrier: Value | None = None, barrier_space: Space = "shared", reduction: Reduction | None = None,
        multicast: Value | None = None,
    ) -> None:
        """Start copying `size` bytes (32 bits, a multiple of 16, as both addresses are). It completes with that many bytes
        delivered to a barrier, or without one with the thread's group. `multicast` (16 bits): a copy of it goes to the same address
        in each workgroup of the cluster that has its bit, and completes on the barrier at the same address there."""

    @primitive(no_result)
    def engine_box(
        self, box: Box, shared_space: Space, shared: Value, coordinates: Sequence[Value], *, store: bool,
        barrier: Value | None = None, barrier_space: Space = "shared", reduction: Reduction | None = None,
        multicast: Value | None = None, where: Value | None = None,
    ) -> None:
        """Start copying a box of an array in global memory to shared memory, or with `store` back: see `Box`. What lies outside
        the array is filled, and not stored. Completes as `engine_copy` does. With `where`, only lanes in which that predicate holds
        start one."""

    @primitive(no_result)
    def engine_commit(self) -> None:
        """The thread's copies by engines since its last commit, as far as no barrier completes them, become its newest group."""

    @primitive(no_result)
    def engine_wait(self, pending: int, reads: bool) -> None:
        """Until at most the `pending` newest groups of the thread are unfinished; with `reads`, still read their sources."""

    @primitive(no_result)
    def descriptor(self, address: Value, event: Literal["written", "acquired", "used"]) -> None:
        """A descriptor in global memory was written and released for engines, is acquired by the workgroup as it is now, or is used
        by an engine."""

    @primitive(no_result)
    def view_fence(self) -> None:
        """What the acting waves have written and know to be written in shared memory is there for engines, too."""
