"""Divides a program whose loop hands copies over: some waves copy, others do the rest, and both meet at barriers that count.

The producer is the program without what it does not need to copy: its loops, addresses and copies. The consumers are the program
without the copies. For each slot there are two barriers. Behind its copies into a slot each thread of the producer arrives at
`full`, once they have landed, and consumers wait for that. A consumer arrives at `empty` for the slot of the last iteration, when
all that read it is done, and the producer waits for that before it fills the slot again:

    producer                                      consumers
    for i …:  wait empty[slot]                    for i …:  wait full[slot]
              copies into slot                              first product of slot
              arrive at full[slot] behind them              arrive at empty[slot - 1], when its products are done
                                                            the rest of the body

Where products alone read the slots, one thread of each wave arrives: the wait for products is the wave's. Loads are a lane's own.

In the first iteration of all nothing was read before; consumers arrive for the last slot nevertheless, whose phases at `empty` are
so one ahead of the others'. Where lanes copy, the producer's threads are as many as the consumers', so that the same lanes copy the
same bytes. Where an engine makes all copies, a few waves are enough, of which the first one alone comes into the loop: one thread
announces their bytes, and starts them. The others only give their registers away.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.scf import ForOp, IfOp, YieldOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from tilefw.api.integers import ceil_div
from tilefw.api.remark import Remark
from tilefw.passes.rewriting import erase
from tilefw.passes.side_effects import is_side_effect_free
from tilefw.simt import lane
from tilefw.simt.description import LaneMachine
from tilefw.simt.lower import remarks
from tilefw.simt.roles.needed import without_rest
from tilefw.tile import types
from tilefw.tile.dialect.base import integer_attr, string_attr
from tilefw.tile.nested_ops import nested_ops
from tilefw.tile.text.source_location import place_of


@dataclass(frozen=True)
class DivideRoles(ModulePass):
    """Divides the functions with a `lane.hand_over`. Runs before shared memory is placed."""

    name = "divide-roles"
    level: ClassVar[str] = "lane"
    machine: LaneMachine

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.body.block.ops:
            if isinstance(function, FuncOp) and any(type(inner) is lane.HandOverOp for inner in nested_ops(function)):
                _Division(function, self.machine).run()


class _Division:
    """One function's."""

    def __init__(self, function: FuncOp, machine: LaneMachine) -> None:
        self.function = function
        self.machine = machine
        self.block = function.body.block
        inner = nested_ops(function)
        (self.hand_over,) = (op for op in inner if isinstance(op, lane.HandOverOp))
        self.copies = [op for op in inner if isinstance(op, lane.CopyAsyncOp | lane.BulkCopyOp)]
        self.by_lanes = any(isinstance(op, lane.CopyAsyncOp) for op in self.copies)
        self.by_engine = any(isinstance(op, lane.BulkCopyOp) for op in self.copies)
        waves = machine.waves if self.by_lanes else machine.chip.role_waves * machine.workgroups
        self.producers = waves * machine.lanes
        self.starters = self.producers if self.by_lanes else machine.lanes
        self.allocations = [op for op in inner if isinstance(op, lane.AllocOp)]
        self.products = any(isinstance(op, lane.AsyncAtomOp) for op in inner)
        self.slots = self.hand_over.slots
        self.location = self.hand_over.location

    def run(self) -> None:
        """The program's own ops become the consumers', copies of them the producer's; where there are registers for both."""
        if self._needs_more_registers():
            self._stay_whole()
            return
        rings = {copy.buffer for copy in self.copies}
        for ring in reversed([op for op in self.allocations if op.id in rings]):
            ring.detach()
            first = self.block.first_op
            assert first is not None
            self.block.insert_op_before(ring, first)
        body = [op for op in self.block.ops if not (isinstance(op, lane.AllocOp) and op.id in rings)]
        last = body.pop()
        assert isinstance(last, ReturnOp)
        threads = self.machine.threads
        full = self._barriers("full", self.starters * (int(self.by_lanes) + int(self.by_engine)), last)
        self.by_waves = not any(_reads_slot(op, rings) for outer in body for op in nested_ops(outer))
        empty = self._barriers("empty", threads // (self.machine.lanes if self.by_waves else 1), last)
        if self.by_engine or self.machine.workgroups > 1:
            self._insert(lane.ShowBarriersOp.create(), last)
        self._insert(lane.BarrierOp.create(), last)
        producer, consumers = Block(), Block()
        known: dict[SSAValue, SSAValue] = {}
        for op in body:
            clone = op.clone(known)
            for made, old in zip(nested_ops(clone), nested_ops(op), strict=True):
                made.location = old.location
            producer.add_op(clone)
        for op in body:
            op.detach()
            consumers.add_op(op)
        self._divide(last, producer, consumers)
        _renumber_threads(producer, threads)
        self._produce(producer, full, empty)
        self._consume(consumers, full, empty)
        if self.starters < self.producers:
            self._only_first_wave(producer)
        self._deal_registers(producer, consumers)
        self.function.attributes["lane.waves"] = integer_attr((threads + self.producers) // self.machine.lanes)

    @property
    def workgroup_threads(self) -> int:
        """The threads of a workgroup, of all roles."""
        return (self.machine.threads + self.producers) // self.machine.workgroups

    def _needs_more_registers(self) -> bool:
        """Whether what the loop carries leaves a lane too few of the registers that it has before they are dealt out."""
        chip, loop = self.machine.chip, self.hand_over.parent_op()
        if not chip.processor_registers or not isinstance(loop, ForOp):
            return False
        each = min(chip.registers, chip.processor_registers // self.workgroup_threads)
        return chip.role_registers.beside_sums + sum(_registers(value.type) for value in loop.iter_args) > each

    def _stay_whole(self) -> None:
        """All waves copy, wait for that, and work."""
        here = self.hand_over
        self._insert(lane.CommitOp.create(), here)
        self._insert(lane.WaitOp.create(properties={"pending": integer_attr(0)}), here)
        remarks.add(self.function, Remark(
            "TFW0627", "this loop is not divided among groups of warps: lanes have to copy, and too few registers are left",
            "align what it reads to 16 bytes for the copy engine, or take smaller tiles; its copies are not issued early",
            place_of(here, with_text=False),
        ))
        erase(here)

    def _divide(self, last: Operation, producer: Block, consumers: Block) -> None:
        """The branch between the roles."""
        thread = self._insert(lane.ThreadIdOp.create(result_types=[lane.vector(1, types.i32)]), last)
        bound = self._insert(lane.ConstantOp(self.machine.threads, lane.vector(1, types.i32)), last)
        copies = self._insert(lane.ELEMENTWISE["ges"](thread.results[0], bound.results[0]), last)
        uniform = self._insert(lane.UniformOp.create(operands=[copies.results[0]], result_types=[types.i1]), last)
        for block in (producer, consumers):
            block.add_op(YieldOp())
        branch = IfOp.create(
            operands=[uniform.results[0]], regions=[Region(producer), Region(consumers)],
            attributes={lane.ROLES: integer_attr(self.machine.threads)},
        )
        self._insert(branch, last)

    def _deal_registers(self, producer: Block, consumers: Block) -> None:
        """Copying takes few registers: where a lane would have less than it may, the consumers get what the producer leaves."""
        chip = self.machine.chip
        unit = chip.register_deal
        if not unit or not chip.processor_registers:
            return
        threads, takes = self.machine.threads, chip.role_registers
        few = takes.copying if self.by_lanes else takes.starting
        each = chip.processor_registers // self.workgroup_threads // unit * unit
        most = chip.registers // unit * unit
        if not few < each < most:
            return
        many = (each * (threads + self.producers) - few * self.producers) // threads // unit * unit
        for block, count in ((producer, few), (consumers, min(most, many))):
            first = block.first_op
            assert first is not None
            properties: dict[str, Attribute] = {"count": integer_attr(count)}
            if count > each:
                properties["more"] = UnitAttr()
            self._insert(lane.RegistersOp.create(properties=properties), first)

    def _barriers(self, name: str, count: int, before: Operation) -> lane.AllocOp:
        """One barrier a slot, of so many arrivals a phase."""
        size = self.machine.chip.barrier_bytes
        number = 1 + max(op.id for op in self.allocations)
        properties: dict[str, Attribute] = {
            "id": integer_attr(number), "bytes": integer_attr(size * self.slots), "align": integer_attr(size),
            "label": string_attr(f"barriers of {name} slots"), "kept": UnitAttr(),
        }
        alloc = lane.AllocOp.create(result_types=[types.i32], properties=properties)
        self._insert(alloc, before)
        self.allocations.append(alloc)
        made = {"buffer": integer_attr(number), "number": integer_attr(self.slots), "count": integer_attr(count)}
        self._insert(lane.BeginBarriersOp.create(operands=[alloc.results[0]], properties=made), before)
        return alloc

    # -- the roles

    def _produce(self, block: Block, full: lane.AllocOp, empty: lane.AllocOp) -> None:
        without_rest(block, lambda op: isinstance(op, lane.CopyAsyncOp | lane.BulkCopyOp | lane.HandOverOp))
        here = _hand_over(block)
        slot, parity = here.operands
        copies = [op for op in _block(here).ops if isinstance(op, lane.CopyAsyncOp | lane.BulkCopyOp)]
        first = copies[0]
        ahead = self._row("eqi", first, slot, self._number(self.slots - 1, first))
        behind = self._row("subi", first, self._number(1, first), parity)
        self._wait(empty, slot, self._row("select", first, ahead, parity, behind), first)
        self._announce(full, slot, [op for op in copies if isinstance(op, lane.BulkCopyOp)])
        if self.by_lanes:
            self._arrive(full, slot, here, copies=UnitAttr())
            self._insert(lane.CommitOp.create(), here)
            last = block.last_op
            assert last is not None
            self._insert(lane.WaitOp.create(properties={"pending": integer_attr(0)}), last)  # no thread ends before its copies do
        erase(here)

    def _only_first_wave(self, block: Block) -> None:
        """The other waves of the producer have nothing to do."""
        body, last = Block(), block.last_op
        assert last is not None
        for op in [op for op in block.ops if op is not last]:
            op.detach()
            body.add_op(op)
        body.add_op(YieldOp())
        thread = self._insert(lane.ThreadIdOp.create(result_types=[lane.vector(1, types.i32)]), last)
        bound = self._insert(lane.ConstantOp(self.machine.threads + self.starters, lane.vector(1, types.i32)), last)
        starts = self._insert(lane.ELEMENTWISE["lts"](thread.results[0], bound.results[0]), last)
        uniform = self._insert(lane.UniformOp.create(operands=[starts.results[0]], result_types=[types.i1]), last)
        self._insert(IfOp.create(operands=[uniform.results[0]], regions=[Region(body), Region()]), last)

    def _announce(self, full: lane.AllocOp, slot: SSAValue, copies: Sequence[lane.BulkCopyOp]) -> None:
        """The thread that starts an engine's copies announces their bytes before, and they complete there. The other threads arrive
        as well: none may still wait for the slot's last phase at `empty` when the next one ends."""
        if not copies:
            return
        first = copies[0]
        barrier, total, vec1 = self._address(full, slot, first), sum(copy.bytes for copy in copies), lane.vector(1, types.i32)
        bytes, none = (self._insert(lane.ConstantOp(number, vec1), first).results[0] for number in (total, 0))
        announced = self._row("select", first, first.needed("when"), bytes, none)
        properties = {"parts": string_attr("address,announced"), "buffer": integer_attr(full.id), "bytes": integer_attr(total)}
        self._insert(lane.ArriveOp.create(operands=[barrier, announced], properties=properties), first)
        for copy in copies:
            copy.properties["parts"] = string_attr(f"{copy.properties['parts'].data},barrier")  # type: ignore[attr-defined]
            copy.operands = [*copy.operands, barrier]

    def _consume(self, block: Block, full: lane.AllocOp, empty: lane.AllocOp) -> None:
        without_rest(block, lambda op: _has_effect(op) and not isinstance(op, lane.CopyAsyncOp | lane.BulkCopyOp))
        here = _hand_over(block)
        slot, parity = here.operands
        self._wait(full, slot, parity, here)
        if self.machine.chip.shared_views and self.products and self.by_lanes:
            self._insert(lane.FenceViewOp.create(), here)
        product = next((op for op in _block(here).ops if isinstance(op, lane.AsyncAtomOp)), None)
        place = here if product is None else product.next_op
        assert place is not None
        zero = self._number(0, place)
        before = self._row("subi", place, slot, self._number(1, place))
        before = self._row("select", place, self._row("eqi", place, slot, zero), self._number(self.slots - 1, place), before)
        more: dict[str, Attribute] = {} if self.by_lanes else {"first": UnitAttr()}  # where the wave is that starts the engine
        when = self._first_lane(block) if self.by_waves else None
        self._arrive(empty, before, place, when, products=integer_attr(0 if product is None else 1), **more)
        erase(here)

    # -- ops

    def _insert(self, op: Operation, before: Operation) -> Operation:
        op.location = self.location
        assert before.parent is not None
        before.parent.insert_op_before(op, before)
        return op

    def _number(self, number: int, before: Operation) -> SSAValue:
        return self._insert(lane.ConstantOp(number, types.i32), before).results[0]

    def _row(self, name: str, before: Operation, *operands: SSAValue) -> SSAValue:
        return self._insert(lane.ELEMENTWISE[name](*operands), before).results[0]

    def _address(self, barriers: lane.AllocOp, slot: SSAValue, before: Operation) -> SSAValue:
        size = self._number(self.machine.chip.barrier_bytes, before)
        return self._row("addi", before, barriers.results[0], self._row("muli", before, slot, size))

    def _wait(self, barriers: lane.AllocOp, slot: SSAValue, parity: SSAValue, before: Operation) -> None:
        properties = {"parts": string_attr("address,parity"), "buffer": integer_attr(barriers.id)}
        operands = [self._address(barriers, slot, before), parity]
        self._insert(lane.WaitPhaseOp.create(operands=operands, properties=properties), before)

    def _arrive(
        self, barriers: lane.AllocOp, slot: SSAValue, before: Operation, when: SSAValue | None = None, **more: Attribute
    ) -> None:
        parts = {"address": self._address(barriers, slot, before), **({} if when is None else {"when": when})}
        properties = {"parts": string_attr(",".join(parts)), "buffer": integer_attr(barriers.id), **more}
        self._insert(lane.ArriveOp.create(operands=list(parts.values()), properties=properties), before)

    def _first_lane(self, block: Block) -> SSAValue:
        """Whether a thread is the first of its wave, known from the beginning of a role on."""
        first, vec1 = block.first_op, lane.vector(1, types.i32)
        assert first is not None
        thread = self._insert(lane.ThreadIdOp.create(result_types=[vec1]), first)
        last, zero = (self._insert(lane.ConstantOp(number, vec1), first) for number in (self.machine.lanes - 1, 0))
        return self._row("eqi", first, self._row("andi", first, thread.results[0], last.results[0]), zero.results[0])


def _registers(type: Attribute) -> int:
    """Of 32 bits, for a value in a lane."""
    count = (types.shape_of(type) or (1,))[0]
    return ceil_div(count * types.dtype_of(type).storage_bits, 32)


def _block(op: Operation) -> Block:
    assert op.parent is not None
    return op.parent


def _hand_over(block: Block) -> lane.HandOverOp:
    (found,) = (inner for op in block.ops for inner in nested_ops(op) if isinstance(inner, lane.HandOverOp))
    return found


def _reads_slot(op: Operation, rings: Collection[int]) -> bool:
    """Whether lanes themselves read a ring."""
    if isinstance(op, lane.LoadOp):
        return op.shared and op.buffer in rings
    return isinstance(op, lane.FragmentLoadOp) and op.buffer in rings


def _has_effect(op: Operation) -> bool:
    """Whether an op does more than give values: loads, too, are there for those alone, if none waits for another program."""
    if isinstance(op, lane.LoadOp):
        return op.fetches_anew
    return not isinstance(op, lane.FragmentLoadOp | lane.AllocOp) and not is_side_effect_free(op)


def _renumber_threads(block: Block, first: int) -> None:
    """Threads of the producer are counted from 0."""
    for op in [inner for outer in block.ops for inner in nested_ops(outer) if isinstance(inner, lane.ThreadIdOp)]:
        offset = lane.ConstantOp(first, op.results[0].type)
        number = lane.ELEMENTWISE["subi"](op.results[0], offset.results[0])
        _block(op).insert_ops_after([offset, number], op)
        op.results[0].replace_uses_with_if(number.results[0], lambda use, number=number: use.operation is not number)
