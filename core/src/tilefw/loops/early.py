"""Loads of a loop that are copied a turn early: the next turn's copy is started before this turn's work, into a second buffer.

A load may be early where nothing in the loop changes what it reads, and where its place in the next turn follows from numbers that
are known at the top of this one: the counter, what the loop carries, and arithmetic on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic

from xdsl.dialects.scf import ForOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tilefw.api.errors import CapacityError
from tilefw.api.integers import round_up
from tilefw.loops.access import TileAccess, access_of, element_name
from tilefw.loops.buffers import ALIGNMENT, TileBuffer
from tilefw.loops.copies import start_copy_in
from tilefw.loops.effects import Effects
from tilefw.loops.elements import code_of
from tilefw.loops.lowering import TileLowering
from tilefw.loops.machine import V
from tilefw.loops.plan import StoragePlan, end_of
from tilefw.passes.rewriting import block_of
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.block_ops import LoadBlockOp
from tilefw.tile.dialect.elementwise_op import ElementwiseOp


def early_loads(plan: StoragePlan, effects: Effects) -> set[Operation]:
    """The copied loads of loops that may be started a turn early."""
    return {op for op in plan.copied if isinstance(op, LoadBlockOp) and _may_be_early(op, effects)}


def _may_be_early(load: LoadBlockOp, effects: Effects) -> bool:
    loop = load.parent_op()
    if not isinstance(loop, ForOp) or effects.may_change(loop, load.base):
        return False  # what is polled may say when the load may read as well
    body = loop.body.block
    other = load.other
    if other is not None and types.is_tile(other.type) and not isinstance(other.owner, ops.ConstantOp) and block_of(other) is body:
        return False
    scalars = [value for value in load.operands if value is not None and not types.is_tile(value.type)]
    return all(_follows(value, body, set()) for value in scalars)


def _follows(value: SSAValue, body: Block, seen: set[SSAValue]) -> bool:
    """Whether a scalar of the next turn follows from what is known at the top of this one."""
    if value in seen or block_of(value) is not body:
        return True
    seen.add(value)
    if isinstance(value, BlockArgument):
        return value.index == 0 or (not types.is_tile(value.type) and _follows(_handed_on(value), body, seen))
    op = value.owner
    computed = isinstance(op, ElementwiseOp | ops.ConstantOp | ops.AddPtrOp)
    return computed and all(_follows(operand, body, seen) for operand in op.operands)


def _handed_on(argument: BlockArgument) -> SSAValue:
    """What an argument of a loop's body, but for the counter, is in the next turn."""
    last = argument.block.last_op
    assert last is not None
    return last.operands[argument.index - 1]


@dataclass(frozen=True, slots=True)
class _EarlyLoad(Generic[V]):
    """A load with its two buffers, `apart` bytes from each other; `side` is a variable: the bytes to the one of this turn."""

    op: Operation
    access: TileAccess
    offset: int
    apart: int
    side: V
    tag: int

    def buffer(self, moved: V) -> TileBuffer:
        return TileBuffer(self.offset, self.access.shape, self.access.element, moved=moved)


class EarlyLoads(Generic[V]):
    """The early loads of one loop, while it is written."""

    def __init__(self, lowering: TileLowering[V], loop: ForOp) -> None:
        self.lowering = lowering
        self.loop = loop
        self.body = loop.body.block
        self.loads: list[_EarlyLoad[V]] = []
        for op in self.body.ops:
            if op in lowering.plan.early and lowering.tags_used + 1 < lowering.machine.copy_tags:
                self._take(op)

    def _take(self, op: Operation) -> None:
        """Two buffers and a tag for a load; one that finds no room is no early one."""
        lowering = self.lowering
        access = access_of(op)  # type: ignore[arg-type]
        size = TileBuffer(0, access.shape, access.element).nbytes
        apart = round_up(size, ALIGNMENT)
        try:
            last = end_of(self.loop, lowering.plan)
            held = lowering.scratch.allocate((2 * apart,), "i8", lowering.now, last, op.results[0].name_hint or "")
        except CapacityError:
            return
        lowering.tags_used += 1
        self.loads.append(_EarlyLoad(op, access, held.offset, apart, lowering.machine.variable("i64"), lowering.tags_used))

    def begin(self, begin: V, end: V, step: V, carried: Mapping[SSAValue, V]) -> None:
        """Before the loop: the first turn's copies, if there is one."""
        if not self.loads:
            return
        legal, machine = self.lowering.legal, self.lowering.machine
        for load in self.loads:
            machine.assign(load.side, legal.integer(0, "i64"))
        zero = legal.integer(0, machine.type_of(step))
        turns = legal("andi", legal("lts", begin, end), legal("lts", zero, step))
        with machine.branch(turns), self.lowering.region():
            for load in self.loads:
                self._start(load, legal.integer(0, "i64"), {self.body.args[0]: begin, **carried})

    def turn(self, counter: V, end: V, step: V) -> None:
        """At the top of the body: this turn's copies are awaited, the next turn's started, if there is one."""
        if not self.loads:
            return
        legal, machine = self.lowering.legal, self.lowering.machine
        others: list[V] = []
        for load in self.loads:
            machine.wait_copy(load.tag)
            side = machine.read(load.side)
            others.append(legal("subi", legal.integer(load.apart, "i64"), side))
            self.lowering.copied_early[load.op] = load.buffer(side)
        with machine.branch(legal("ltu", step, legal("subi", end, counter))), self.lowering.region():
            following: dict[SSAValue, V] = {self.body.args[0]: legal("addi", counter, step)}
            for load, other in zip(self.loads, others, strict=True):
                self._start(load, other, following, later=True)
        for load, other in zip(self.loads, others, strict=True):
            machine.assign(load.side, other)

    def end(self) -> None:
        """Behind the loop."""
        self.lowering.tags_used -= len(self.loads)

    def _start(self, load: _EarlyLoad[V], moved: V, known: Mapping[SSAValue, V], later: bool = False) -> None:
        facts = dict(known)
        buffer = load.buffer(moved)
        start_copy_in(self.lowering, load.access, buffer, load.tag, lambda value: self._scalar(value, facts, later))

    def _scalar(self, value: SSAValue, known: dict[SSAValue, V], later: bool) -> V:
        """A scalar of the body, computed from what is known of its turn; with `later`, of the turn behind the one being written."""
        if value not in known:
            known[value] = self._made(value, known, later)
        return known[value]

    def _made(self, value: SSAValue, known: dict[SSAValue, V], later: bool) -> V:
        elements = self.lowering.elements
        if block_of(value) is not self.body:
            return elements.scalars[value]
        if isinstance(value, BlockArgument):
            return self._scalar(_handed_on(value), {}, False) if later else elements.scalars[value]
        op = value.owner
        if isinstance(op, ops.ConstantOp):
            return self.lowering.machine.const(code_of(op), element_name(value.type))
        assert isinstance(op, ElementwiseOp | ops.AddPtrOp)
        operands = [self._scalar(operand, known, later) for operand in op.operands]
        if isinstance(op, ops.AddPtrOp):
            return elements.moved(operands[0], operands[1], op.pointer)
        return elements.row(op, operands)
