"""Places allocations of shared memory: those that are never alive at once may stand on the same bytes.

An allocation lives from its first access to its last. Where it is made outside a loop and accessed inside, it lives all through the
loop, since an iteration may read what one before left. What asynchronous copies write lives until a wait that leaves nothing
pending, what a producer copies until its consumers have read it; barriers that count live from where they are made to the end.
Large ones are placed first, then early ones, each at the lowest bytes that nothing alive at the same time has ("first fit by
decreasing size", as in register allocation of arrays). That two buffers follow each other on the same bytes is the barrier pass's
business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp, WhileOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from tilefw.api.errors import CapacityError, Place, UnsupportedError
from tilefw.api.integers import round_up
from tilefw.simt import lane
from tilefw.simt.lane.memory import AccessOp
from tilefw.tile.dialect.base import integer_attr
from tilefw.tile.text.source_location import place_of


@dataclass(frozen=True)
class PlaceShared(ModulePass):
    """Gives every `lane.alloc` its offset, and the function its bytes. Raises CapacityError (TFW0651) above `limit` bytes."""

    limit: int
    name = "place-shared"
    level: ClassVar[str] = "lane"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.body.block.ops:
            if isinstance(function, FuncOp):
                place_shared(function, self.limit)


class SharedMemory(NamedTuple):
    """What a placed function takes of shared memory: `bytes`, the first of them at a multiple of `align`."""

    bytes: int
    align: int


def shared_memory(function: FuncOp) -> SharedMemory:
    """What a placed function takes; no bytes where it has no allocation."""
    bytes, align = function.attributes.get("lane.shared_bytes"), function.attributes.get("lane.shared_align")
    if not isinstance(bytes, IntegerAttr) or not isinstance(align, IntegerAttr):
        return SharedMemory(0, 1)
    return SharedMemory(bytes.value.data, align.value.data)


def set_shared_memory(function: FuncOp, taken: SharedMemory) -> None:
    """Say what a function takes, which `shared_memory` gives."""
    function.attributes["lane.shared_bytes"] = integer_attr(taken.bytes)
    function.attributes["lane.shared_align"] = integer_attr(taken.align)


@dataclass(slots=True)
class _Allocation:
    """An allocation, the steps of the function between which it lives, and where it is placed."""

    op: lane.AllocOp
    loops: tuple[Operation, ...]
    first: int = -1
    last: int = -1
    offset: int = 0
    copied: bool = False
    kept: bool = False

    def overlaps(self, other: _Allocation) -> bool:
        return self.first <= other.last and other.first <= self.last

    @property
    def end(self) -> int:
        return self.offset + self.op.bytes


def place_shared(function: FuncOp, limit: int) -> None:
    """Place one function's allocations; those that nothing accesses go away."""
    buffers = _AllocationLifetimes().of(function)
    alive = [b for b in buffers if b.first >= 0]
    for buffer in buffers:
        if buffer.first < 0 and not any(result.uses for result in buffer.op.results):
            buffer.op.detach()
            buffer.op.erase()
    placed: list[_Allocation] = []
    for buffer in sorted(alive, key=lambda b: (-b.op.bytes, b.first)):
        buffer.offset = _lowest(buffer, [other for other in placed if other.overlaps(buffer)])
        buffer.op.properties["offset"] = integer_attr(buffer.offset)
        placed.append(buffer)
    total = max((b.end for b in placed), default=0)
    if total > limit:
        raise _too_much(placed, total, limit)
    if total:
        set_shared_memory(function, SharedMemory(total, max(b.op.align for b in placed)))


def _lowest(buffer: _Allocation, taken: list[_Allocation]) -> int:
    offset = 0
    for other in sorted(taken, key=lambda b: b.offset):
        if offset + buffer.op.bytes <= other.offset:
            break
        offset = max(offset, round_up(other.end, buffer.op.align))
    return offset


# The ops that matter, by class: xDSL's classes have a slow isinstance.
_EVENTS = frozenset({
    lane.AllocOp, lane.LoadOp, lane.StoreOp, lane.FragmentLoadOp, lane.CopyAsyncOp, lane.WaitOp, lane.AsyncAtomOp,
    lane.BulkCopyOp, lane.FragmentStoreOp, lane.BulkStoreOp, lane.BulkStoreWaitOp,
    lane.BeginBarriersOp, lane.ArriveOp, lane.WaitPhaseOp,
})


class _AllocationLifetimes:
    """One walk over a function in program order, a step an op."""

    def __init__(self) -> None:
        self.step = 0
        self.buffers: dict[int, _Allocation] = {}
        self.spans: dict[Operation, list[_Allocation]] = {}  # what is accessed in a loop but made outside it
        self.loops: list[Operation] = []

    def of(self, function: FuncOp) -> list[_Allocation]:
        self.block(function.body.block)
        for buffer in self.buffers.values():
            if buffer.copied or buffer.kept:  # no wait came that leaves nothing pending, or it is for barriers
                buffer.last = self.step
            if buffer.op.kept:
                buffer.first, buffer.last = 0, self.step
        return list(self.buffers.values())

    def block(self, block: Block) -> None:
        for op in block.ops:
            self.step += 1
            if op.regions:
                self.regions(op)
            elif type(op) not in _EVENTS:
                continue
            elif isinstance(op, lane.AllocOp):
                self.buffers[op.id] = _Allocation(op, tuple(self.loops))
            elif isinstance(op, AccessOp):
                self.access(op)
            elif isinstance(op, lane.AsyncAtomOp):  # beyond it, who writes these bytes is made to wait
                for read in op.shared_reads():
                    self.extend_lifetime(self.buffers[read.buffer])
            elif isinstance(op, lane.WaitOp):
                self.wait(op)
            elif isinstance(op, lane.BeginBarriersOp):
                self.buffers[op.buffer].kept = True
                self.extend_lifetime(self.buffers[op.buffer])

    def access(self, op: AccessOp) -> None:
        if isinstance(op, lane.MemoryOp) and not op.shared:
            return
        buffer = self.buffers[op.buffer]
        buffer.copied |= isinstance(op, lane.CopyAsyncOp | lane.BulkCopyOp)
        self.extend_lifetime(buffer)

    def extend_lifetime(self, buffer: _Allocation) -> None:
        if buffer.first < 0:
            buffer.first = self.step
        buffer.last = max(buffer.last, self.step)
        if len(self.loops) > len(buffer.loops):
            self.spans.setdefault(self.loops[len(buffer.loops)], []).append(buffer)

    def wait(self, op: lane.WaitOp) -> None:
        for buffer in self.buffers.values():
            if buffer.copied:
                self.extend_lifetime(buffer)
                buffer.copied = op.pending > 0

    def regions(self, op: Operation) -> None:
        loop = isinstance(op, ForOp | WhileOp)
        begin = self.step
        if loop:
            self.loops.append(op)
        for region in op.regions:
            for block in region.blocks:
                self.block(block)
            if lane.ROLES in op.attributes:  # consumers wait for all that a producer copies (`check_roles.py`)
                for buffer in self.buffers.values():
                    buffer.copied = False
        if loop:
            self.loops.pop()
        self.step += 1
        for buffer in self.spans.pop(op, ()):
            buffer.first = min(buffer.first, begin)
            buffer.last = max(buffer.last, self.step)


def _too_much(placed: list[_Allocation], total: int, limit: int) -> UnsupportedError | CapacityError:
    """The error, with the buffers that are alive where most is needed, the largest first."""
    def peak(at: int) -> list[_Allocation]:
        return [b for b in placed if b.first <= at <= b.last]

    most = max((peak(b.first) for b in placed), key=lambda group: sum(b.op.bytes for b in group))
    places = [place_of(b.op) for b in most]
    listed = [f"{b.op.bytes} bytes for {b.op.label}{_where(p)}" for b, p in zip(most, places, strict=True)]
    if not limit:
        message = f"the kernel needs {total} bytes of shared memory, and the chip has none"
        return UnsupportedError(message, code="TFW0651", place=places[0], note="; ".join(listed))
    return CapacityError(
        f"the kernel needs {total} bytes of shared memory at once; a workgroup has at most {limit}",
        code="TFW0651", place=places[0], note="; ".join(listed),
        help="a smaller block along K, or smaller tiles take less; fewer stages do not fit either",
        resource="shared memory", needed=total, available=limit, unit="bytes",
    )


def _where(place: Place | None) -> str:
    return "" if place is None else f", {place.file}:{place.line}"
