"""A program that a cluster of workgroups makes together: its threads, its number in the grid, its barrier, its shared memory.

To lowering the cluster is one workgroup of all its waves. Here its threads are counted through the workgroups; the workgroups of a
program are neighbours along the first axis of the grid; a barrier is the cluster's. Each workgroup has a copy of the program's
shared memory: whoever stores stores to all copies, so that everybody reads in its own. A store is seen behind the next barrier,
as in one workgroup. Nobody stores before all workgroups have begun, and none ends while another may still store to it. Barriers
that count are shared in this way too: each workgroup makes its own and waits there, who arrives does so in all where somebody may
wait, and a copy of an engine goes to all workgroups and completes at the barrier of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilefw.api.integers import log2
from tilefw.machine.inst import Slice
from tilefw.simt.chip import LaneChip
from tilefw.simt.chip_requests import LaneAccess
from tilefw.simt.select import declared
from tilefw.simt.select.code import Code, Element

PEERS = "cluster"  # the space of a store to the shared memory of one of the workgroups (`LaneAccess.space`)


class ClusterSelection:
    """What depends on how many `workgroups` make a program; with one it is as the chip has it."""

    def __init__(self, code: Code, chip: LaneChip) -> None:
        self.code = code
        self.chip = chip
        self.workgroups = code.function.attributes.workgroups
        self.participants: int | None = None  # threads that barriers are for, of a group of waves with a role of its own
        self.first_role = 0  # the threads of the role whose threads are counted first; 0 where there are no roles

    def thread_id(self) -> Element:
        """The thread's index among all of the program."""
        own = self.chip.thread_id(self.code)
        if self.workgroups == 1:
            return own
        rank, workgroup = self.chip.cluster_rank(self.code), self.code.function.attributes.workgroup
        assert workgroup is not None
        if not self.first_role:
            return self.code("addi.i32", self.code("shl.i32", rank, self.code.i32(log2(workgroup[0]))), own)
        return self._thread_of_role(own, rank, workgroup[0])

    def _thread_of_role(self, own: Element, rank: Element, threads: int) -> Element:
        """The first threads of each workgroup have one role, the others another: all of the first are counted before the others."""
        code, first = self.code, self.first_role // self.workgroups
        before = code("muli.i32", rank, code.i32(first))
        behind = code("addi.i32", code("muli.i32", rank, code.i32(threads - first)), code.i32(self.first_role - first))
        is_first = code("lts.i32", own, code.i32(first))
        return code("addi.i32", own, code("select.i32", is_first, before, behind))

    def program_id(self, axis: int) -> Element:
        """The index of the program."""
        return self._programs(self.chip.program_id(self.code, axis), axis)

    def num_programs(self, axis: int) -> Element:
        """The programs of the grid."""
        return self._programs(self.chip.num_programs(self.code, axis), axis)

    def _programs(self, workgroups: Element, axis: int) -> Element:
        if axis or self.workgroups == 1:
            return workgroups
        return self.code("shru.i32", workgroups, self.code.i32(log2(self.workgroups)))

    def barrier(self) -> None:
        """A barrier of all threads of the program, or of the role that is under way. In a cluster all meet that have not ended: a
        role comes to it where the other one has nothing left to do but to end (`roles.meeting`)."""
        if self.participants is not None and self.workgroups == 1:
            declared.act(self.chip, self.code, "barriers", lambda: self.chip.group_barrier(self.code, self.participants or 0))
            return
        barrier = self.chip.barrier if self.workgroups == 1 else self.chip.cluster_barrier
        declared.act(self.chip, self.code, "barriers", lambda: barrier(self.code))

    def meet(self) -> None:
        """Have all workgroups begun, or none ended: a barrier of a cluster."""
        if self.workgroups > 1:
            self.barrier()

    def peers(self, address: Slice, count: int) -> Sequence[Slice]:
        """What stands at an address of the program's shared memory, in the copies of the first so many workgroups
        (`LaneChip.peer_address`)."""
        return [self.chip.peer_address(self.code, address, rank) for rank in range(count)]

    def stores(self, access: LaneAccess) -> Sequence[LaneAccess]:
        """The stores by which all of the program see one: of shared memory, one to each workgroup's."""
        if self.workgroups == 1 or access.space != "shared":
            return (access,)
        return [replace(access, space=PEERS, address=address) for address in self.peers(access.address, self.workgroups)]
