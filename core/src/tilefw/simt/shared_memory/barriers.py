"""Inserts the barriers that shared memory and atomics need, and those that keep the accesses to one element in order; no other.

The rule. Two accesses to overlapping bytes, possibly by different threads, at least one of them a write, have a barrier between
them on every path. An access is a load, a fragment load or a store where it stands. An asynchronous copy is a write twice: where it
is issued, for what came before (nobody may still need the old bytes), and at the wait by which it has landed, for what comes after
(the wait speaks for the thread's own copies only). What happens between the two is the author's word: nobody accesses those bytes.

Which bytes those are, `buffer_accesses` says. What a matrix unit reads by itself it has read when its products are waited for: that
counts from the wait, where all waves of it know.

Barriers that count are made by one thread, a write, and then used by all.

Global memory is the author's: `debug_barrier` orders what threads exchange there. But which wave has an element is the compiler's
choice. Where it lets several waves load the same elements (scalars, tiles of fewer elements than threads), or deals those of a load
and of a store to the waves in different ways (masks tell how many a lane takes at once), a store to what the load may have read has
a barrier between. So has a tile's access that follows a store through the same argument and deals elements out in another way.

An atomic's order is the whole program's, and one lane makes the access: before one that releases, all lanes have made the accesses
that come before it; behind one that acquires, or that is made again until it finds what it waits for, none makes any until all know
that it is done. A fence is made by all lanes, behind what any of them has accessed, and one that acquires before what any accesses.

The least: a barrier stands right before the access that needs one, which is best in straight code (each serves as many pairs as
any could). Loops are followed until nothing changes; a barrier that only code before a loop makes necessary stands before it.
Branches join. At last every barrier is asked whether those found after it, as those of a loop's next iteration are, do without it.
Control flow in lane IR is uniform, so that all threads reach every barrier.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp, IfOp, WhileOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from tilefw.api.errors import InternalError
from tilefw.simt import lane
from tilefw.simt.lane.memory import AccessOp
from tilefw.simt.shared_memory.barrier_pruning import BarrierPruning
from tilefw.simt.shared_memory.buffer_accesses import BufferAccesses
from tilefw.simt.shared_memory.path_state import BufferAccess, PathState
from tilefw.tile import types


@dataclass(frozen=True)
class InsertBarriers(ModulePass):
    """Puts barriers between accesses of shared memory that need one.

    Runs on functions whose shared memory is placed. `disjoint`: buffers of different arguments do not overlap.
    """

    name = "insert-barriers"
    level: ClassVar[str] = "lane"
    disjoint: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.body.block.ops:
            if isinstance(function, FuncOp):
                insert_barriers(function, self.disjoint)


def insert_barriers(function: FuncOp, disjoint: bool = False) -> int:
    """Insert what one function lacks; how many."""
    analysis = BarrierAnalysis(function, disjoint)
    if not (analysis.buffers or analysis.crossed or analysis.ordered):
        return 0
    analysis.block(function.body.block, PathState())
    BarrierPruning(analysis, function.body.block).run()
    for op in analysis.before:
        barrier = lane.BarrierOp.create()
        barrier.location = op.location
        assert op.parent is not None
        op.parent.insert_op_before(barrier, op)
    return len(analysis.before)


# The ops that matter, by class: xDSL's classes have a slow isinstance.
_EVENTS = frozenset({
    lane.LoadOp, lane.StoreOp, lane.FragmentLoadOp, lane.CopyAsyncOp, lane.CommitOp, lane.WaitOp, lane.BarrierOp,
    lane.AtomicOp, lane.FenceOp, lane.AsyncAtomOp, lane.AtomWaitOp, lane.BeginBarriersOp, lane.ArriveOp, lane.WaitPhaseOp,
    lane.BulkCopyOp, lane.FragmentStoreOp, lane.BulkStoreOp, lane.BulkStoreWaitOp,
})

# An engine reads until the wait, so that others overwrite behind a barrier that stands behind the wait.
_READS = lane.LoadOp | lane.FragmentLoadOp | lane.BulkStoreOp | lane.BulkStoreWaitOp


class BarrierAnalysis:
    """`before` are the ops that need a barrier in front; `buffers` the allocations by id."""

    def __init__(self, function: FuncOp, disjoint: bool) -> None:
        self.disjoint = disjoint
        self.crossed = False  # an element of global memory may be accessed by several waves
        self.ordered = False  # some atomic acquires, releases or waits
        self.memory = BufferAccesses(function)
        self.buffers = self.memory.buffers
        self.events: dict[Block, list[Operation]] = {}
        self.before: dict[Operation, None] = {}
        self.probing = False  # only ask whether something is missing
        self.missing = False
        self.pending = 0  # the most groups that any wait leaves
        self.products = 0  # and the most products
        self._collect(function.body.block)

    def _collect(self, block: Block) -> None:
        """The ops of a block that matter here."""
        events = self.events[block] = []
        for op in block.ops:
            if op.regions:
                events.append(op)
                for region in op.regions:
                    for inside in region.blocks:
                        self._collect(inside)
            elif type(op) in _EVENTS:
                if isinstance(op, lane.AtomicOp):
                    events.append(op)
                    self.crossed |= op.deal > 0
                    self.ordered |= op.acquires or op.releases or op.waits
                elif isinstance(op, lane.FenceOp):
                    events.append(op)
                    self.ordered = True
                elif not isinstance(op, lane.MemoryOp) or op.shared:
                    events.append(op)
                    if isinstance(op, lane.WaitOp):
                        self.pending = max(self.pending, op.pending)
                    elif isinstance(op, lane.AtomWaitOp):
                        self.products = max(self.products, op.pending)
                else:
                    events.append(op)
                    self.crossed |= op.repeated or op.deal > 0

    def lacking(self, analyse: Callable[[], object]) -> bool:
        """Whether an analysis finds a barrier missing; none is added."""
        outer, self.probing, self.missing = (self.probing, self.missing), True, False
        analyse()
        found = self.missing
        self.probing, self.missing = outer
        return found

    # -- straight code

    def block(self, block: Block, state: PathState) -> PathState:
        """The state after a block; `state` is used up."""
        for op in self.events[block]:
            state = self.event(op, state)
        return state

    def event(self, op: Operation, state: PathState) -> PathState:
        """The state after one op; `state` is used up."""
        if op in self.before and not isinstance(op, ForOp | WhileOp):
            state.barrier()
        if isinstance(op, lane.BarrierUseOp):
            if any(self.memory.overlap(self.memory.accessed(op), other) for other in state.writes):
                self.need(op, state)
        elif isinstance(op, AccessOp):
            self.access(op, state)
        elif isinstance(op, lane.FenceOp):
            self.fence(op, state)
        elif isinstance(op, lane.BeginBarriersOp):
            made = (op.buffer, None)
            if any(self.memory.overlap(made, other) for other in state.writes | state.reads):
                self.need(op, state)
            state.writes.add(made)
        elif isinstance(op, lane.BarrierOp):
            state.barrier()
        elif isinstance(op, lane.CommitOp):
            self.commit(state)
        elif isinstance(op, lane.WaitOp):
            self.wait(op, state)
        elif isinstance(op, lane.AsyncAtomOp):
            self.product(op, state)
        elif isinstance(op, lane.AtomWaitOp):
            self.products_done(op, state)
        else:
            state = self.regions(op, state)
        return state

    def access(self, op: AccessOp, state: PathState) -> None:
        if isinstance(op, lane.AtomicOp):
            self.atomic(op, state)
            return
        if isinstance(op, lane.MemoryOp) and not op.shared:
            self.outside_access(op, state)
            return
        access = self.memory.accessed(op)
        reads = isinstance(op, _READS)
        earlier = state.writes if reads else state.writes | state.reads
        if any(self.memory.overlap(access, other) for other in earlier):
            self.need(op, state)
        if isinstance(op, lane.CopyAsyncOp | lane.BulkCopyOp):
            if state.acquired or self.crosses_store(op.argument, op.deal, state):
                self.need(op, state)
            state.accessed = True
            state.started.add(access)
        else:
            (state.reads if reads else state.writes).add(access)

    def outside_access(self, op: lane.MemoryOp, state: PathState) -> None:
        """A load of global memory or a store to it."""
        argument, deal = op.buffer, None if op.repeated else op.deal
        crossed = state.acquired or (bool(types.shape_of(op.accessed)) and self.crosses_store(argument, deal, state))
        if isinstance(op, lane.StoreOp):
            crossed |= self.crosses_load(argument, deal, state)
        if crossed:
            self.need(op, state)
        (state.loaded if isinstance(op, lane.LoadOp) else state.stored).add((argument, deal))
        state.accessed = True

    def atomic(self, op: lane.AtomicOp, state: PathState) -> None:
        """A load and a store in one, which also keeps what stands around it in order."""
        argument, deal = op.buffer, op.deal
        crossed = self.crosses_store(argument, deal, state) or self.crosses_load(argument, deal, state)
        if crossed or state.acquired or (op.releases and state.accessed):
            self.need(op, state)
        state.stored.add((argument, deal))
        state.accessed, state.acquired = True, op.acquires or op.waits

    def fence(self, op: lane.FenceOp, state: PathState) -> None:
        """All lanes make it: behind what each of them did before, and the atomic of one of them that it acquires by."""
        if state.accessed or state.acquired:
            self.need(op, state)
        state.accessed, state.acquired = True, op.acquires

    def crosses_store(self, argument: int, deal: int | None, state: PathState) -> bool:
        """Whether an access of a tile may reach, in another wave, what was stored through the same argument."""
        return any(argument == other and deal != known for other, known in state.stored)

    def crosses_load(self, argument: int, deal: int | None, state: PathState) -> bool:
        """Whether a write may overwrite, in another wave, what was loaded."""
        return any(deal != known and self.may_be_one(argument, other) for other, known in state.loaded)

    def may_be_one(self, argument: int, other: int) -> bool:
        """Whether the buffers of two arguments may overlap, -1 for one that is not known."""
        return not self.disjoint or argument == other or min(argument, other) < 0

    def need(self, op: Operation, state: PathState) -> None:
        """A barrier before `op`."""
        if self.probing:
            self.missing = True
        else:
            self.before[op] = None
        state.barrier()

    def commit(self, state: PathState) -> None:
        groups = [*state.groups, frozenset(state.started)]
        state.started = set()
        # Every wait makes what is older than it counts land, whatever the groups were.
        surplus = max(0, len(groups) - self.pending - 1)
        oldest = frozenset(t for group in groups[: surplus + 1] for t in group)
        state.groups = (oldest, *groups[surplus + 1 :])

    def wait(self, op: lane.WaitOp, state: PathState) -> None:
        kept = state.groups[len(state.groups) - op.pending :] if op.pending < len(state.groups) else state.groups
        kept = kept if op.pending else ()
        for group in state.groups[: len(state.groups) - len(kept)]:
            state.writes |= group
        state.groups = kept

    def product(self, op: lane.AsyncAtomOp, state: PathState) -> None:
        reads = frozenset(self.memory.read_by(op))
        if any(self.memory.overlap(read, write) for read in reads for write in state.writes):
            self.need(op, state)
        products = (*state.products, reads)
        surplus = max(0, len(products) - self.products - 1)
        state.products = (frozenset().union(*products[: surplus + 1]), *products[surplus + 1 :])

    def products_done(self, op: lane.AtomWaitOp, state: PathState) -> None:
        done = max(0, len(state.products) - op.pending)
        state.reads.update(*state.products[:done])
        state.products = state.products[done:]

    # -- control flow

    def regions(self, op: Operation, state: PathState) -> PathState:
        if isinstance(op, IfOp):
            ends = [self.block(region.block, state.copy()) if region.blocks else state for region in op.regions]
            return ends[0].join(ends[1])
        if isinstance(op, ForOp | WhileOp):
            return self.loop(op, state)
        raise InternalError(f"no rule for barriers in {op.name}")

    def loop(self, op: ForOp | WhileOp, state: PathState) -> PathState:
        if op not in self.before:
            fresh = state.copy()
            fresh.barrier()
            settled = self.settle(op, fresh)
            if not self.lacking(lambda: self.settle(op, state.copy())):
                return self.settle(op, state)
            self.need(op, state)
            return settled
        state.barrier()
        return self.settle(op, state)

    def settle(self, op: ForOp | WhileOp, entry: PathState) -> PathState:
        """The state after a loop that is entered in `entry`, when going round again changes nothing."""
        into = entry
        while True:
            known = len(self.before)
            leaving, again = self.round(op, into.copy())
            following = entry.join(self.next_iteration(op, again))
            if len(self.before) == known:
                following = into.join(following)
                if following == into:
                    return self.outside(op, leaving)
            into = following

    def round(self, op: ForOp | WhileOp, state: PathState) -> tuple[PathState, PathState]:
        """One round of a loop: the states in which it may be left and in which it goes on."""
        if isinstance(op, ForOp):
            end = self.block(op.body.block, state.copy())
            return state.join(end), end
        checked = self.block(op.before_region.block, state)
        return checked, self.block(op.after_region.block, checked.copy())

    def next_iteration(self, op: Operation, state: PathState) -> PathState:
        return self.mapped(state, lambda access: self.memory.in_next_iteration(op, access))

    def outside(self, op: Operation, state: PathState) -> PathState:
        """After its loop a phase says nothing."""
        return self.mapped(state, lambda access: self.memory.after(op, access))

    def mapped(self, state: PathState, change: Callable[[BufferAccess], BufferAccess]) -> PathState:
        groups, products = (tuple(frozenset(map(change, group)) for group in of) for of in (state.groups, state.products))
        reads, writes, started = (set(map(change, access)) for access in (state.reads, state.writes, state.started))
        return PathState(
            reads, writes, set(state.loaded), set(state.stored), started, groups, products, state.accessed, state.acquired
        )
