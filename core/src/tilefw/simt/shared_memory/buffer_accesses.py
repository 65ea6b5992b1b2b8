"""BufferAccesses: which bytes of shared memory lane ops access, by buffer and phase of a ring, and which of them overlap.

Which bytes: those of the allocation as it is placed, so that buffers that share bytes are seen to; of a ring, one slot: accesses in
phases p and q of one iteration overlap only when p = q modulo the ring's slots, and what was phase p is phase p - 1 one iteration
later. Accesses of a ring without a phase (before its loop), and all of them after it, may be anywhere in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import Block, Operation

from tilefw.api.errors import IRError
from tilefw.simt import lane
from tilefw.simt.lane.memory import AccessOp
from tilefw.simt.shared_memory.path_state import BufferAccess
from tilefw.tile.text.source_location import place_of

# By class: xDSL's classes have a slow isinstance.
_ACCESSES = frozenset({
    lane.LoadOp, lane.StoreOp, lane.FragmentLoadOp, lane.CopyAsyncOp, lane.AsyncAtomOp, lane.ArriveOp, lane.WaitPhaseOp,
    lane.BulkCopyOp, lane.FragmentStoreOp, lane.BulkStoreOp, lane.BulkStoreWaitOp,
})


class BufferAccesses:
    """The allocations of one function, by id in `buffers`, and the loops that their phases count in."""

    def __init__(self, function: FuncOp) -> None:
        self.buffers: dict[int, lane.AllocOp] = {}
        self.rings: dict[int, _Ring] = {}
        self._collect(function.body.block, ())
        self.loops = {buffer: ring.loop for buffer, ring in self.rings.items() if ring.direct}

    def _collect(self, block: Block, loops: tuple[Operation, ...]) -> None:
        for op in block.ops:
            if op.regions:
                inner = (*loops, op) if isinstance(op, ForOp) else loops
                for region in op.regions:
                    for inside in region.blocks:
                        self._collect(inside, inner)
            elif type(op) is lane.AllocOp:
                self.buffers[op.id] = op
            elif type(op) in _ACCESSES:
                for buffer, ring, _ in _rings(op):
                    self.rings.setdefault(buffer, _Ring(ring, loops)).add_access_in(loops)

    def accessed(self, op: AccessOp) -> BufferAccess:
        """What an access of shared memory goes to."""
        return (op.buffer, self._phase(op.buffer, op.ring, op.phase))

    def read_by(self, op: lane.AsyncAtomOp | lane.BulkStoreOp) -> list[BufferAccess]:
        """What a matrix unit, or a copy engine, reads for an op."""
        if isinstance(op, lane.BulkStoreOp):
            return [self.accessed(op)]
        return [(read.buffer, self._phase(read.buffer, read.ring, read.phase)) for read in op.shared_reads()]

    def written_by(self, op: Operation) -> BufferAccess | None:
        """What an op stores to, or starts to copy to, in shared memory; None for any other op."""
        copies = isinstance(op, lane.CopyAsyncOp | lane.BulkCopyOp)
        writes = copies or isinstance(op, lane.FragmentStoreOp) or (isinstance(op, lane.StoreOp) and op.shared)
        return self.accessed(op) if writes and isinstance(op, AccessOp) else None

    def _phase(self, buffer: int, ring: int, phase: int) -> int | None:
        return phase % ring if ring and buffer in self.loops else None

    def overlap(self, a: BufferAccess, b: BufferAccess) -> bool:
        """Whether two accesses may have a byte in common."""
        if a[0] == b[0]:
            return a[1] is None or b[1] is None or a[1] == b[1]
        first, second = self.buffers[a[0]], self.buffers[b[0]]
        if first.offset is None or second.offset is None:
            unplaced = first if first.offset is None else second
            raise IRError(
                f"{unplaced.label} has no offset in shared memory", "TFW0402", place_of(unplaced),
                help="run the pass place-shared first",
            )
        return first.offset < second.offset + second.bytes and second.offset < first.offset + first.bytes

    def in_next_iteration(self, loop: Operation, access: BufferAccess) -> BufferAccess:
        """What an access of an iteration is, seen from the next one."""
        buffer, phase = access
        return (buffer, (phase - 1) % self.rings[buffer].slots) if phase is not None and self.loops[buffer] is loop else access

    def after(self, loop: Operation, access: BufferAccess) -> BufferAccess:
        """What an access is after its loop, where a phase says nothing."""
        buffer, phase = access
        return (buffer, None) if phase is not None and self.loops[buffer] is loop else access


def _rings(op: Operation) -> Iterator[tuple[int, int, int]]:
    """The rings that an op accesses, each with its slots and the phase."""
    if isinstance(op, lane.AsyncAtomOp):
        yield from ((read.buffer, read.ring, read.phase) for read in op.shared_reads() if read.ring)
    elif isinstance(op, AccessOp) and op.ring:
        yield op.buffer, op.ring, op.phase


@dataclass(slots=True)
class _Ring:
    """Where the accesses of a ring that say a phase stand: in the loops `around` all of them; its own loop is the innermost.

    `direct`: some access is in that loop and no deeper. Without one the phases of several loops were mixed, and say nothing.
    """

    slots: int
    around: tuple[Operation, ...]
    depths: set[int] = field(default_factory=set)

    def add_access_in(self, loops: tuple[Operation, ...]) -> None:
        self.depths.add(len(loops))
        same = 0
        while same < min(len(loops), len(self.around)) and loops[same] is self.around[same]:
            same += 1
        self.around = self.around[:same]

    @property
    def loop(self) -> Operation | None:
        return self.around[-1] if self.around else None

    @property
    def direct(self) -> bool:
        return bool(self.around) and min(self.depths) == len(self.around)
