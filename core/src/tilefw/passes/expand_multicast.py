"""Accesses of all ranks' copies at once, for targets without multicast addresses: a loop over the ranks, from rank 0 on.

A load combines what the ranks hold in their order, so that the result has the same bits on every rank; floats of 16 bits are added
in fp32 and rounded once. An update makes one atomic access a rank. The pointer holds multicast addresses: a rank's copy is as far
from them as its heap is from where the multicast mapping begins, which the node context tells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from tilefw.node_context import HEAP_ALIGNMENT, HEAP_BASES, MULTICAST_BASE, NUM_RANKS
from tilefw.passes.rewriting import erase, place_before, replace
from tilefw.tile import types
from tilefw.tile.dialect import elementwise_op, ops
from tilefw.tile.dialect.base import integer_attr
from tilefw.tile.dialect.multicast_op import MulticastOp
from tilefw.tile.nested_ops import nested_ops

Served = Callable[[MulticastOp], bool]


@dataclass(frozen=True)
class ExpandMulticastPass(ModulePass):
    """Writes accesses of all ranks' copies as loops over ranks, but for those that the target `serves`."""

    serves: Served | None = None
    name = "expand-multicast"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for found in [o for o in nested_ops(op) if isinstance(o, MulticastOp)]:
            if self.serves is None or not self.serves(found):
                _LoopOverRanks(found).make()


class _LoopOverRanks:
    """The loop of one op."""

    def __init__(self, op: MulticastOp) -> None:
        self.op = op
        self.block: Block | None = None  # where ops go; before the op while it is None
        element = types.element_of(op.value.type)
        self.size = types.dtype_of(element).storage_bits // 8
        self.narrow = types.is_float(element) and types.dtype_of(element).bits < 32

    def make(self) -> None:
        """Put it in the op's place."""
        op = self.op
        ranks = self.op_of(elementwise_op.build("trunci", self.word(self.constant(NUM_RANKS, types.i64)), result=types.i32))
        loads = op.action == "load"
        carried = [self.loaded(self.constant(0, types.i32))] if loads else []
        block = Block(arg_types=[types.i32, *(value.type for value in carried)])
        self.block = block
        if loads:
            ends = [self.combined(block.args[1], self.loaded(block.args[0]))]
        else:
            ends = []
            self.written(block.args[0])
        self.add(scf.YieldOp(*ends))
        self.block = None
        bounds = (self.constant(int(loads), types.i32), ranks, self.constant(1, types.i32))
        loop = scf.ForOp(*bounds, carried, Region(block))
        place_before(loop, op)
        if loads:
            replace(op, self.result(loop.results[0]))
        else:
            assert not op.result_is_used, "a store or an update has no result"
            erase(op)

    def loaded(self, rank: SSAValue) -> SSAValue:
        """What a rank's copy holds, as it is combined."""
        value = self.op_of(ops.LoadOp(self.copy_of(rank), self.op.offsets, self.op.mask))
        return self.row_of("castf", value, element=types.f32) if self.narrow else value

    def combined(self, before: SSAValue, more: SSAValue) -> SSAValue:
        return self.row_of(self.op.row, before, more)

    def result(self, found: SSAValue) -> SSAValue:
        """In the elements' type, and what masked-off elements are."""
        op = self.op
        if self.narrow:
            found = self.row_of("castf", found, element=types.element_of(op.value.type))
        return found if op.mask is None else self.op_of(elementwise_op.build("select", op.mask, found, op.value))

    def written(self, rank: SSAValue) -> None:
        """One rank's copy is stored to, or updated."""
        op, copy = self.op, self.copy_of(rank)
        if op.action == "store":
            self.add(ops.StoreOp(copy, op.value, op.offsets, op.mask))
        else:
            self.add(ops.AtomicRmwOp(op.kind, copy, op.value, op.offsets, op.mask, order=op.order, scope=op.scope))

    def copy_of(self, rank: SSAValue) -> SSAValue:
        """The pointer moved to a rank's heap."""
        pointer = self.op.pointer
        wide = self.row_of("extu", rank, element=types.i64)
        base = self.word(self.row_of("addi", wide, self.constant(HEAP_BASES, types.i64)))
        distance = self.row_of("subi", base, self.word(self.constant(MULTICAST_BASE, types.i64)))
        if self.size > 1:
            distance = self.row_of("shrs", distance, self.constant(self.size.bit_length() - 1, types.i64))
        distance.owner.attributes["tile.divisible"] = integer_attr(HEAP_ALIGNMENT // self.size)  # type: ignore[union-attr]
        if types.is_tile(pointer.type):
            distance = self.op_of(ops.SplatOp(distance, types.with_element(pointer.type, types.i64)))
        return self.op_of(ops.AddPtrOp(pointer, distance))

    def word(self, index: SSAValue) -> SSAValue:
        """A word of the node context."""
        return self.op_of(ops.LoadOp(self.op_of(ops.AddPtrOp(self.op.context, index))))

    def constant(self, number: int, type: Attribute) -> SSAValue:
        return self.op_of(ops.ConstantOp(number, type))

    def row_of(self, name: str, *operands: SSAValue, element: Attribute | None = None) -> SSAValue:
        result = None if element is None else types.with_element(operands[0].type, element)
        return self.op_of(elementwise_op.build(name, *operands, result=result))

    def op_of(self, made: Operation) -> SSAValue:
        self.add(made)
        results: Sequence[SSAValue] = made.results
        return results[0]

    def add(self, made: Operation) -> None:
        """At the end of what is made."""
        if self.block is None:
            place_before(made, self.op)
        else:
            made.location = self.op.location
            self.block.add_op(made)
