"""Control flow as the machine's loops and branches: what they carry and hand on stands in variables and in buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic

from xdsl.dialects.scf import ForOp, IfOp, WhileOp
from xdsl.ir import Block, Operation, SSAValue

from tilefw.loops.access import element_name
from tilefw.loops.buffers import TileBuffer
from tilefw.loops.early import EarlyLoads
from tilefw.loops.lowering import TileLowering
from tilefw.loops.machine import V
from tilefw.loops.matrix import is_zero, may_begin
from tilefw.loops.plan import carried_out, end_of, statements_reading
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.elementwise_op import ElementwiseOp


def _region(lowering: TileLowering[V], block: Block, op: Operation) -> None:
    """The ops of a region, and back to the op that holds it."""
    lowering.block(block)
    lowering.op = op


def for_loop(lowering: TileLowering[V], op: ForOp) -> None:
    elements, machine = lowering.elements, lowering.machine
    body = op.body.block
    begin, end, step = (elements.scalars[v] for v in (op.lb, op.ub, op.step))
    last = body.last_op
    assert last is not None
    carried = _Carried(lowering, op, op.iter_args, body.args[1:], op.results, last.operands)
    early = EarlyLoads(lowering, op)
    scalars = zip(body.args[1:], op.iter_args, strict=True)
    early.begin(begin, end, step, {argument: elements.scalars[v] for argument, v in scalars if not types.is_tile(v.type)})
    with machine.loop(begin, end, step) as counter, lowering.region():
        elements.scalars[body.args[0]] = counter
        carried.begin()
        early.turn(counter, end, step)
        carried.share(last.operands)
        _region(lowering, body, op)
        lowering.op = last
        carried.hand_on(last.operands)
    lowering.op = op
    early.end()
    carried.end()


def branch(lowering: TileLowering[V], op: IfOp) -> None:
    elements, machine, legal = lowering.elements, lowering.machine, lowering.legal
    condition = elements.scalars[op.cond]
    targets: list[Any] = [
        lowering.allocate(result, end_of(op, lowering.plan)) if types.is_tile(result.type)
        else machine.variable(element_name(result.type)) for result in op.results
    ]
    for region, holds in ((op.true_region, condition), (op.false_region, None)):
        if not region.blocks:
            continue
        with machine.branch(legal.not_(condition) if holds is None else holds), lowering.region():
            _region(lowering, region.block, op)
            last = region.block.last_op
            assert last is not None
            lowering.op = last
            _assign_all(lowering, targets, last.operands)
    lowering.op = op
    for result, target in zip(op.results, targets, strict=True):
        if isinstance(target, TileBuffer):
            elements.buffers[result] = target
        else:
            elements.scalars[result] = machine.read(target)


def _assign_all(lowering: TileLowering[V], targets: Sequence[Any], values: Sequence[SSAValue]) -> None:
    """Write values to targets that none of them is read from."""
    for target, value in zip(targets, values, strict=True):
        if isinstance(target, TileBuffer):
            lowering.store_value(value, target)
        else:
            lowering.machine.assign(target, lowering.elements.scalars[value])


def while_loop(lowering: TileLowering[V], op: WhileOp) -> None:
    """The loop's first region computes what the second gets: each has places of its own, and none is read while it is written."""
    elements, machine = lowering.elements, lowering.machine
    before, after = op.before_region.block, op.after_region.block
    end = end_of(op, lowering.plan)
    carried = _Carried(lowering, op, op.arguments, before.args, ())
    passed: list[Any] = [
        lowering.allocate(result, end) if types.is_tile(result.type)
        else machine.variable(element_name(result.type)) for result in op.results
    ]
    with machine.forever(), lowering.region():
        carried.begin()
        _region(lowering, before, op)
        condition = before.last_op
        assert condition is not None
        lowering.op = condition
        held, *values = condition.operands
        _assign_all(lowering, passed, values)
        machine.leave(lowering.legal.not_(elements.scalars[held]))
        for argument, target in zip(after.args, passed, strict=True):
            if isinstance(target, TileBuffer):
                elements.buffers[argument] = target
            else:
                elements.scalars[argument] = machine.read(target)
        _region(lowering, after, op)
        last = after.last_op
        assert last is not None
        lowering.op = last
        _assign_all(lowering, carried.places, last.operands)
    lowering.op = op
    for result, target in zip(op.results, passed, strict=True):
        if isinstance(target, TileBuffer):
            elements.buffers[result] = target
        else:
            elements.scalars[result] = machine.read(target)


class _Carried(Generic[V]):
    """The values that a loop carries from one round to the next: variables, and buffers that live as long as the loop."""

    def __init__(
        self, lowering: TileLowering[V], op: Operation, inits: Sequence[SSAValue], args: Sequence[SSAValue],
        results: Sequence[SSAValue], handed_on: Sequence[SSAValue] = (),
    ) -> None:
        self.lowering = lowering
        self.args = args
        self.results = results
        self.places: list[Any] = []
        self.unbegun: list[tuple[V, SSAValue, TileBuffer]] = []
        end = end_of(op, lowering.plan)
        for number, (init, argument) in enumerate(zip(inits, args, strict=True)):
            if types.is_tile(argument.type):
                last = max([end, *(lowering.plan.last_read.get(result, 0) for result in results[number : number + 1])])
                place: Any = lowering.allocate(argument, last)
                if not self._begins(init, argument, handed_on[number : number + 1], place):
                    lowering.store_value(init, place)
            else:
                place = lowering.machine.variable(element_name(argument.type))
                lowering.machine.assign(place, lowering.elements.scalars[init])
            self.places.append(place)

    def _begins(self, init: SSAValue, argument: SSAValue, handed_on: Sequence[SSAValue], place: TileBuffer) -> bool:
        """Whether a product begins the sums of zeros that are carried to it alone: then nothing writes zeros, unless there is no
        turn of the loop."""
        lowering, uses = self.lowering, list(argument.uses)
        op = handed_on[0].owner if handed_on else None
        if not isinstance(op, ops.DotOp) or op.parent is not argument.owner or op.acc is not argument or len(uses) > 1:
            return False
        if not is_zero(init) or not may_begin(lowering, op):
            return False
        variable = lowering.unbegun[op.result] = lowering.machine.variable("i1")
        lowering.machine.assign(variable, lowering.machine.const(1, "i1"))
        self.unbegun.append((variable, init, place))
        return True

    def begin(self) -> None:
        """At the top of the body: its arguments are what the places hold."""
        self._read(self.args)

    def end(self) -> None:
        """Behind the loop: its results are what the places hold."""
        for variable, init, place in self.unbegun:
            with self.lowering.machine.branch(self.lowering.machine.read(variable)), self.lowering.region():
                self.lowering.store_value(init, place)
        self._read(self.results)

    def _read(self, values: Sequence[SSAValue]) -> None:
        elements = self.lowering.elements
        for value, place in zip(values, self.places, strict=True):
            if isinstance(place, TileBuffer):
                elements.buffers[value] = place
            else:
                elements.scalars[value] = self.lowering.machine.read(place)

    def share(self, handed_on: Sequence[SSAValue]) -> None:
        """A product that is added to a carried tile, whose old elements nothing reads any more, is summed up in its place."""
        lowering = self.lowering
        for argument, place, value in zip(self.args, self.places, handed_on, strict=True):
            op = value.owner
            if not isinstance(place, TileBuffer) or not isinstance(op, ops.DotOp) or op.parent is not argument.owner:
                continue
            if argument in (op.a, op.b) or (op.sizes[0] > 1 and any(lowering.reads(each, argument) for each in (op.a, op.b))):
                continue  # a factor is read until the last sum is there, or those of one batch after the other
            position = lowering.plan.position[op]
            readers = [carried_out(reader, lowering.plan) for reader in statements_reading(argument, lowering.plan)]
            earlier = all(r is op or (r.parent is op.parent and lowering.plan.position[r] < position) for r in readers)
            if earlier and self._by_element(op.acc, argument):
                lowering.in_place[value] = place

    def _by_element(self, value: SSAValue, argument: SSAValue) -> bool:
        """Whether element i of a value reads no other element of the argument than i."""
        seen: set[SSAValue] = set()
        pending = [value]
        while pending:
            reader = pending.pop()
            if reader in seen or reader is argument or not self.lowering.reads(reader, argument):
                continue
            seen.add(reader)
            if not isinstance(reader.owner, ElementwiseOp):
                return False
            pending.extend(reader.owner.operands)
        return True

    def hand_on(self, values: Sequence[SSAValue]) -> None:
        """At the end of the body: all places get their new values at once."""
        lowering = self.lowering
        elements, machine = lowering.elements, lowering.machine
        scalars = [None if isinstance(p, TileBuffer) else elements.scalars[v] for p, v in zip(self.places, values, strict=True)]
        for place, scalar in zip(self.places, scalars, strict=True):
            if scalar is not None:
                machine.assign(place, scalar)
        late: list[tuple[TileBuffer, TileBuffer]] = []
        for number, (argument, place, value) in enumerate(zip(self.args, self.places, values, strict=True)):
            if not isinstance(place, TileBuffer) or elements.buffers.get(value) is place:
                continue
            others = any(lowering.reads(v, argument) for n, v in enumerate(values) if n != number)
            if not others and self._by_element(value, argument):
                lowering.store_value(value, place)
                continue
            kept = lowering.temporary(place.shape, place.element)
            lowering.store_value(value, kept)
            late.append((kept, place))
        for kept, place in late:
            lowering.copy(kept, place)
