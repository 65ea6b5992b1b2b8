"""Turns groups of engines' copies into phases of counting barriers: a commit is an arrival, a wait is for a phase.

There is a ring of barriers, one more than groups are ever under way. Group g, counted from the function's start, is the phase
g div N of barrier g mod N. Its copies complete there; one thread arrives, once, and announces their bytes. A wait that leaves so
many groups under way becomes waits for the phases of those that it covers, which every thread makes. How many groups are under way
is known at every op; which barrier is next to be waited for, and its parity, loops carry.

Between a wait for a phase and the arrival at the barrier's next one is a barrier of the workgroup: that which keeps the engine off
the slot until all have read it. So no thread is left waiting for a phase of which the next one is over too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from tilefw.api.errors import CapacityError, InternalError
from tilefw.api.integers import round_up
from tilefw.passes.rewriting import erase, place_before
from tilefw.simt import lane
from tilefw.simt.description import ChipDescription
from tilefw.simt.shared_memory.placement import SharedMemory, set_shared_memory, shared_memory
from tilefw.simt.software_pipeline.loop_frame import carrying
from tilefw.tile import types
from tilefw.tile.dialect.base import integer_attr, string_attr
from tilefw.tile.nested_ops import nested_ops
from tilefw.tile.text.source_location import place_of

_ARRIVALS = 1  # a phase, of the thread that started its copies


@dataclass(frozen=True)
class PlacePhases(ModulePass):
    """Runs on functions whose shared memory is placed and whose waits and barriers stand."""

    name = "place-phases"
    level: ClassVar[str] = "lane"
    chip: ChipDescription

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.body.block.ops:
            if isinstance(function, FuncOp) and any(_is_to_complete(each) for each in nested_ops(function)):
                _Phases(function, self.chip).run()


@dataclass(frozen=True)
class _Next:
    """The barrier whose phase is waited for next, and the parity of that: numbers where they are known, else values."""

    slot: int | SSAValue = 0
    parity: int | SSAValue = 0


class _Emitter:
    """Makes lane ops before one op."""

    def __init__(self, before: Operation) -> None:
        self.before = before

    def insert(self, op: Operation) -> Operation:
        place_before(op, self.before)
        return op

    def constant(self, value: int | SSAValue) -> SSAValue:
        return value if isinstance(value, SSAValue) else self.insert(lane.ConstantOp(value, types.i32)).results[0]

    def row(self, name: str, *operands: int | SSAValue) -> SSAValue:
        return self.insert(lane.ELEMENTWISE[name](*(self.constant(each) for each in operands))).results[0]


class _Phases:
    """The rewrite of one function. `under_way` groups are committed and not waited for, at the op that is looked at."""

    def __init__(self, function: FuncOp, chip: ChipDescription) -> None:
        self.function = function
        self.barrier_bytes = chip.barrier_bytes
        self.limit = chip.shared_bytes
        self.number = 1 + _most_under_way(function)
        # Groups of lanes' own copies keep their commits and waits.
        self.others = any(type(op) is lane.CopyAsyncOp for op in nested_ops(function))
        self.under_way = 0
        self.buffer = -1
        self.barriers: SSAValue
        self.first: SSAValue  # whether a thread is the workgroup's first

    def run(self) -> None:
        self._make_barriers()
        self._block(self.function.body.block, _Next())

    def _make_barriers(self) -> None:
        """Behind all that is placed; the other threads use them behind a barrier of the workgroup."""
        function, first = self.function, self.function.body.block.first_op
        assert first is not None
        placed = shared_memory(function)
        offset = round_up(placed.bytes, self.barrier_bytes)
        size = self.number * self.barrier_bytes
        if offset + size > self.limit:
            raise CapacityError(
                f"the kernel needs {offset + size} bytes of shared memory at once; a workgroup has at most {self.limit}",
                code="TFW0651", place=place_of(function), note=f"{size} bytes for barriers of copies",
                resource="shared memory", needed=offset + size, available=self.limit, unit="bytes",
                help="a smaller block along K, or smaller tiles take less; fewer stages do not fit either",
            )
        here = _Emitter(first)
        self.buffer = 1 + max((op.id for op in nested_ops(function) if isinstance(op, lane.AllocOp)), default=-1)
        properties: dict[str, Attribute] = {
            "id": integer_attr(self.buffer), "bytes": integer_attr(size), "align": integer_attr(self.barrier_bytes),
            "label": string_attr("barriers of copies"), "offset": integer_attr(offset),
        }
        self.barriers = here.insert(lane.AllocOp.create(result_types=[types.i32], properties=properties)).results[0]
        set_shared_memory(function, SharedMemory(offset + size, max(placed.align, self.barrier_bytes)))
        vec1 = lane.vector(1, types.i32)
        thread = here.insert(lane.ThreadIdOp.create(result_types=[vec1])).results[0]
        zero = here.insert(lane.ConstantOp(0, vec1)).results[0]
        self.first = here.row("eqi", thread, zero)
        numbers = {"buffer": self.buffer, "number": self.number, "count": _ARRIVALS}
        made = {name: integer_attr(number) for name, number in numbers.items()}
        here.insert(lane.BeginBarriersOp.create(operands=[self.barriers], properties=made))
        here.insert(lane.ShowBarriersOp.create())
        here.insert(lane.BarrierOp.create())

    def _block(self, block: Block, following: _Next) -> _Next:
        copies: list[lane.BulkCopyOp] = []
        for op in list(block.ops):
            if isinstance(op, lane.BulkCopyOp):
                copies.append(op)
            elif isinstance(op, lane.CommitOp):
                self._commit(op, copies, following)
                copies = []
            elif isinstance(op, lane.WaitOp):
                following = self._wait(op, following)
            elif isinstance(op, ForOp) and _has_groups(op):
                following = self._loop(op, following)
            elif any(_is_to_complete(inner) for region in op.regions for block in region.blocks for inner in block.walk()):
                raise InternalError(f"no rule for phases in {op.name}")
            # The groups in a branch are of lanes' own copies, and waited for there: they keep their commits and waits.
        if copies:
            raise InternalError("engines' copies are committed in another block")
        return following

    def _commit(self, op: lane.CommitOp, copies: Sequence[lane.BulkCopyOp], following: _Next) -> None:
        """The copies complete on the group's barrier, at which one thread arrives."""
        here = _Emitter(copies[0] if copies else op)
        slot: int | SSAValue
        if isinstance(following.slot, int):
            slot = (following.slot + self.under_way) % self.number
        else:
            slot = following.slot
            if self.under_way:
                beyond = here.row("addi", slot, self.under_way)
                wrapped = here.row("subi", beyond, self.number)
                slot = here.row("select", here.row("lts", beyond, self.number), beyond, wrapped)
        barrier = self._address(here, slot)
        announced = self._announced(here, copies)
        parts = {"address": barrier, "when": self.first, **({} if isinstance(announced, int) else {"announced": announced})}
        properties: dict[str, Attribute] = {
            "parts": string_attr(",".join(parts)), "buffer": integer_attr(self.buffer),
            "bytes": integer_attr(announced if isinstance(announced, int) else 0),
        }
        here.insert(lane.ArriveOp.create(operands=list(parts.values()), properties=properties))
        for copy in copies:
            copy.properties["parts"] = string_attr(f"{copy.properties['parts'].data},barrier")  # type: ignore[attr-defined]
            copy.operands = [*copy.operands, barrier]
        self.under_way += 1
        self._drop(op)

    def _announced(self, here: _Emitter, copies: Sequence[lane.BulkCopyOp]) -> int | SSAValue:
        """The bytes of the copies that are made: those of a group are made, or not, all together."""
        total = sum(copy.bytes for copy in copies)
        if not copies or not isinstance(copies[0].needed("when").owner, lane.ELEMENTWISE["andi"]):
            return total
        if len({copy.needed("when") for copy in copies}) != 1:
            raise InternalError("copies of one group are made under different conditions")
        vec1 = lane.vector(1, types.i32)
        made, none = (here.insert(lane.ConstantOp(number, vec1)).results[0] for number in (total, 0))
        return here.row("select", copies[0].needed("when"), made, none)

    def _wait(self, op: lane.WaitOp, following: _Next) -> _Next:
        here = _Emitter(op)
        for _ in range(max(0, self.under_way - op.pending)):
            operands = [self._address(here, following.slot), here.constant(following.parity)]
            properties: dict[str, Attribute] = {"parts": string_attr("address,parity"), "buffer": integer_attr(self.buffer)}
            here.insert(lane.WaitPhaseOp.create(operands=operands, properties=properties))
            following = self._advanced(here, following)
            self.under_way -= 1
        self._drop(op)
        return following

    def _advanced(self, here: _Emitter, following: _Next) -> _Next:
        if isinstance(following.slot, int) and isinstance(following.parity, int):
            slot = (following.slot + 1) % self.number
            return _Next(slot, following.parity ^ int(not slot))
        more = here.row("addi", following.slot, 1)
        inside = here.row("lts", more, self.number)
        parity = here.row("select", inside, following.parity, here.row("subi", 1, following.parity))
        return _Next(here.row("select", inside, more, 0), parity)

    def _loop(self, op: ForOp, following: _Next) -> _Next:
        """Have a loop carry what is waited for next."""
        here, before = _Emitter(op), self.under_way
        starts = {"full_slot": here.constant(following.slot), "full_parity": here.constant(following.parity)}
        new, carried = carrying(op, starts)
        end = self._block(new.body.block, _Next(*carried))
        if self.under_way != before:
            raise InternalError("an iteration commits more groups of copies than it waits for, or fewer")
        last = new.body.block.last_op
        assert last is not None
        at_end = _Emitter(last)
        last.operands = [*last.operands, at_end.constant(end.slot), at_end.constant(end.parity)]
        return _Next(new.results[-2], new.results[-1])

    def _address(self, here: _Emitter, slot: int | SSAValue) -> SSAValue:
        offset = slot * self.barrier_bytes if isinstance(slot, int) else here.row("muli", slot, self.barrier_bytes)
        return here.row("addi", self.barriers, offset)

    def _drop(self, op: Operation) -> None:
        if not self.others:
            erase(op)


def _is_to_complete(op: Operation) -> bool:
    """Whether an op is a copy without a barrier; those of roles have theirs."""
    return isinstance(op, lane.BulkCopyOp) and op.part("barrier") is None


def _has_groups(op: Operation) -> bool:
    return any(isinstance(each, lane.CommitOp | lane.WaitOp | lane.BulkCopyOp) for each in nested_ops(op))


def _most_under_way(function: FuncOp) -> int:
    """The most groups that are committed and not waited for at once."""
    most = under_way = 0
    for op in nested_ops(function):  # an iteration leaves as many as there were before it
        if isinstance(op, lane.CommitOp):
            under_way += 1
            most = max(most, under_way)
        elif isinstance(op, lane.WaitOp):
            under_way = min(under_way, op.pending)
    return most
