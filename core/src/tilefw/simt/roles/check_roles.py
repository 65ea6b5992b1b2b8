"""Checks a program that was divided: each role does its own alone, and what they hand over is handed over both ways.

Of the producer: in each iteration it waits for an empty slot before its copies, and arrives behind them once they have landed. It
writes, reads and multiplies nothing. Where an engine makes all copies its first wave alone comes to them. Of the consumers: they
copy nothing, read slots behind the wait for full ones alone, and when they arrive for an empty slot no product of an earlier
iteration is under way. Barriers want as many arrivals as threads come to them. Nothing is shared with the pass that divides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp, IfOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from tilefw.simt import lane
from tilefw.simt.lane.violation import violation
from tilefw.tile.nested_ops import nested_ops

_COPIES = lane.CopyAsyncOp | lane.BulkCopyOp
_OF_CONSUMERS = (
    lane.LoadOp | lane.FragmentLoadOp | lane.StoreOp | lane.FragmentStoreOp | lane.BulkStoreOp | lane.BulkStoreWaitOp
    | lane.AtomicOp | lane.AsyncAtomOp | lane.AtomOp | lane.BarrierOp
)


@dataclass(frozen=True)
class CheckRoles(ModulePass):
    """Raises InternalError for what a role does that is not its own, and for a hand-over that is missing."""

    name = "check-roles"
    level: ClassVar[str] = "lane"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.body.block.ops:
            if isinstance(function, FuncOp):
                check_roles(function)


def check_roles(function: FuncOp) -> None:
    """Check one function, where it has roles."""
    inner = nested_ops(function)
    branch = next((op for op in inner if isinstance(op, IfOp) and lane.ROLES in op.attributes), None)
    if branch is None:
        return
    producer, consumers = (region.block for region in branch.regions)
    counts = {op.buffer: op.count for op in inner if isinstance(op, lane.BeginBarriersOp)}
    copies = [op for op in _inside(producer) if isinstance(op, _COPIES)]
    if not copies:
        raise violation("the producer copies nothing", branch)
    full, empty = _check_producer(producer, copies)
    _check_consumers(consumers, {copy.buffer for copy in copies}, full, empty)
    threads = _number(branch, lane.ROLES)
    producers = _number(function, "lane.waves") * _number(function, "lane.lanes") - threads
    by_lanes = any(isinstance(copy, lane.CopyAsyncOp) for copy in copies)
    arriving = producers if by_lanes else _number(function, "lane.lanes")
    if not by_lanes and arriving < producers and _only(producer, copies[0]) != threads + arriving:
        raise violation("more waves than the first of the producer start an engine's copies, or none", copies[0])
    if by_lanes and any(op.first for op in _inside(consumers) if isinstance(op, lane.ArriveOp)):
        raise violation("consumers arrive in the first workgroup alone, and producers of others wait as well", branch)
    freeing = threads // (_number(function, "lane.lanes") if _by_first_lanes(consumers, {copy.buffer for copy in copies}) else 1)
    if counts.get(full) != arriving * len({type(copy) for copy in copies}) or counts.get(empty) != freeing:
        raise violation("a barrier does not want the arrivals that come", branch)


def _number(op: Operation, name: str) -> int:
    attribute = op.attributes.get(name)
    return attribute.value.data if isinstance(attribute, IntegerAttr) else 0


def _inside(block: Block) -> Iterator[Operation]:
    for op in block.ops:
        yield from op.walk()


def _check_producer(block: Block, copies: Sequence[lane.CopyAsyncOp | lane.BulkCopyOp]) -> tuple[int, int]:
    """The barriers of full and of empty slots."""
    for op in _inside(block):
        if isinstance(op, _OF_CONSUMERS):
            raise violation("the producer does what is not its own", op)
    body = copies[0].parent
    assert body is not None
    waits = [op for op in _inside(block) if isinstance(op, lane.WaitPhaseOp)]
    arrivals = [op for op in _inside(block) if isinstance(op, lane.ArriveOp)]
    if len(waits) != 1 or len({op.buffer for op in arrivals}) != 1:
        raise violation("the producer does not wait for one slot and hand over one in each iteration", copies[0])
    order = {op: number for number, op in enumerate(body.ops)}
    if any(copy.parent is not body for copy in copies) or not isinstance(body.parent_op(), ForOp):
        raise violation("the producer's copies are not those of one loop", copies[0])
    if any(op.parent is not body for op in (*waits, *arrivals)) or any(order[copy] < order[waits[0]] for copy in copies):
        raise violation("the producer does not wait before its copies, and hand them over, in each iteration", copies[0])
    own = [copy for copy in copies if isinstance(copy, lane.CopyAsyncOp)]
    behind = [op for op in arrivals if op.copies]
    if own and (len(behind) != 1 or any(order[copy] > order[behind[0]] for copy in own)):
        raise violation("lanes do not arrive behind their copies", own[0])
    announced = sum(op.bytes for op in arrivals if not op.copies)
    moved = [copy for copy in copies if isinstance(copy, lane.BulkCopyOp)]
    if announced != sum(copy.bytes for copy in moved) or any(copy.part("barrier") is None for copy in moved):
        raise violation("the bytes of engines' copies are not those that were announced", copies[0])
    return arrivals[0].buffer, waits[0].buffer


def _only(producer: Block, copy: Operation) -> int:
    """The number below which threads come to a copy: that of the outermost branch around it in the producer; 0 without one."""
    inside = list(_inside(producer))
    branch = next((op for op in producer.ops if isinstance(op, IfOp) and copy in set(op.regions[0].walk())), None)
    uniform = None if branch is None else branch.cond.owner
    compared = uniform.operands[0].owner if isinstance(uniform, lane.UniformOp) and uniform in inside else None
    if not isinstance(compared, lane.ELEMENTWISE["lts"]):
        return 0
    thread, bound = (operand.owner for operand in compared.operands)
    return int(bound.value) if isinstance(thread, lane.ThreadIdOp) and isinstance(bound, lane.ConstantOp) else 0


def _check_consumers(block: Block, rings: set[int], full: int, empty: int) -> None:
    waits = [op for op in _inside(block) if isinstance(op, lane.WaitPhaseOp)]
    arrivals = [op for op in _inside(block) if isinstance(op, lane.ArriveOp)]
    if [op.buffer for op in waits] != [full] or [op.buffer for op in arrivals] != [empty]:
        raise violation("the consumers do not take one slot and free one in each iteration", next(_inside(block)))
    body = waits[0].parent
    if body is None or arrivals[0].parent is not body:
        raise violation("the consumers free a slot where they take none", arrivals[0])
    behind = False
    taken = set[Operation]()
    for op in body.ops:
        if behind:
            taken.update(op.walk())
        behind |= op is waits[0]
    for op in _inside(block):
        if isinstance(op, _COPIES):
            raise violation("the consumers copy", op)
        if _buffers(op) & rings and op not in taken:
            raise violation("a slot is read without the wait for it", op)
    _check_products(body, arrivals[0])


def _buffers(op: Operation) -> set[int]:
    """The allocations that an op reads."""
    if isinstance(op, lane.AsyncAtomOp):
        return {read.buffer for read in op.shared_reads()}
    if isinstance(op, lane.FragmentLoadOp) or (isinstance(op, lane.LoadOp) and op.shared):
        return {op.buffer}
    return set()


def _by_first_lanes(consumers: Block, rings: set[int]) -> bool:
    """Whether one lane of each wave frees a slot, which is enough where the wave's products alone have read it."""
    arrival = next(op for op in _inside(consumers) if isinstance(op, lane.ArriveOp))
    when = arrival.part("when")
    if when is None:
        return False
    compared = when.owner
    masked = compared.operands[0].owner if isinstance(compared, lane.ELEMENTWISE["eqi"]) else None
    if not isinstance(masked, lane.ELEMENTWISE["andi"]) or not isinstance(masked.operands[0].owner, lane.ThreadIdOp):
        raise violation("the consumers free a slot by threads that are not the first of their waves", arrival)
    reader = next((op for op in _inside(consumers) if _buffers(op) & rings and not isinstance(op, lane.AsyncAtomOp)), None)
    if reader is not None:
        raise violation("lanes read a slot that the first of them frees", reader)
    return True


def _check_products(body: Block, arrival: lane.ArriveOp) -> None:
    """Two iterations: at the arrival of the second no product of the first is under way."""
    under_way: list[int] = []
    for iteration in range(2):
        for op in (inner for outer in body.ops for inner in outer.walk()):
            if isinstance(op, lane.AsyncAtomOp):
                under_way.append(iteration)
            elif isinstance(op, lane.AtomWaitOp):
                under_way = under_way[max(0, len(under_way) - op.pending) :]
            elif op is arrival and iteration and 0 in under_way:
                raise violation("a slot is given back while a product reads it", op)
