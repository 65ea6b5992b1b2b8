"""What lowerings of reductions and scans share: the combine function on vectors, and how its operands come from other threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from tilefw.simt import lane
from tilefw.simt.lane.registers import bits_of, type_name
from tilefw.simt.layout import LinearLayout, swizzle
from tilefw.simt.layout.shared import SharedLayout
from tilefw.simt.lower import shared_access
from tilefw.tile import types
from tilefw.tile.dialect.combine_op import CombineOp, CombineReturnOp
from tilefw.tile.dialect.elementwise_op import ElementwiseOp
from tilefw.tile.dialect.ops import ConstantOp

# One trip through shared memory brings up to 2^5 parts together: all waves of the largest workgroup, or the lanes of a chip without
# shuffles in two trips. Every thread reads all parts of its elements, so more at once would cost more than another trip.
ROUND = 5
# Of more values than these, each goes its way before the next: with three read at once, Welford's reduction takes 73 registers on a
# chip that has all its waves with 64.
_TOGETHER = 2


class RegionCombiner:
    """Lane IR for one op that combines. A group is a list of vectors, one for each of the op's tiles."""

    def __init__(self, context: Any, op: CombineOp) -> None:
        self.context = context
        self.builder = context.builder
        self.op = op
        self._alike: list[int] = [0]  # distances of lanes that hold the same in each register

    def combine(self, left: Sequence[SSAValue], right: Sequence[SSAValue]) -> list[SSAValue]:
        """The combine function on groups, element by element."""
        block = self.op.combine
        n = types.shape_of(left[0].type)[0]
        made: dict[SSAValue, SSAValue] = dict(zip(block.args, (*left, *right), strict=True))
        for op in block.ops:
            if isinstance(op, CombineReturnOp):
                return [made[v] for v in op.operands]
            if isinstance(op, ConstantOp):
                made[op.result] = self.builder.constant(op.value, lane.vector(n, op.result.type))
                continue
            assert isinstance(op, ElementwiseOp)
            result = op.result.type if op.row.is_cast else None
            rounding = None if op.rounding == "rtne" else op.rounding
            made[op.result] = self.builder.op(op.row.name, *(made[v] for v in op.operands), result=result, rounding=rounding)
        raise AssertionError("a combine function ends in its return")

    def pick(self, group: Sequence[SSAValue], indices: Sequence[int]) -> list[SSAValue]:
        """The elements at `indices` of each vector."""
        return [self.builder.pick(value, indices) for value in group]

    def shuffled(self, value: SSAValue, lanes: int | SSAValue, mode: str = "xor") -> SSAValue:
        """What another lane holds: the one at a distance, as XOR of their indices, or of another mode of `lane.shuffle`."""
        if not types.is_bool(value.type):
            return self.builder.shuffle(value, mode, lanes)
        wide = self.builder.shuffle(self.builder.op("extu", value, result=types.i32), mode, lanes)
        return self.builder.op("nei", wide, self.builder.constant(0, wide.type))

    def cheapest(self, distance: int) -> int:
        """Of the partners that hold the same as the one at a distance, one that the chip reaches in a single instruction."""
        exchanges = self.context.machine.chip.exchanges
        return next((distance ^ other for other in self._alike if distance ^ other in exchanges), distance)

    def now_alike(self, distance: int) -> None:
        """Lanes at that distance have combined with each other, and hold the same in each register from now on."""
        self._alike += [distance ^ other for other in self._alike]

    def exchanged(self, group: Sequence[SSAValue], written: LinearLayout, read: LinearLayout) -> list[SSAValue]:
        """A group that stands in `written`, as `read` has it, by way of shared memory: a few are stored, then read."""
        found = list(group)
        order = self._by_needs()
        together = len(group) if len(group) <= _TOGETHER else 1
        for first in range(0, len(order), together):
            some = order[first : first + together]
            sent = {i: self._sent(group[i], written, read) for i in some}
            for i, (address, buffer, layout) in sent.items():
                found[i] = shared_access.read(self.context, address, layout, read, types.element_of(group[i].type), buffer=buffer)
        return found

    def _sent(self, value: SSAValue, written: LinearLayout, read: LinearLayout) -> tuple[SSAValue, int, SharedLayout]:
        """A value that stands in `written`, stored: address, number and layout of its buffer."""
        bits = max(8, bits_of(type_name(value.type)))
        layout = swizzle.choose(written.shape, bits, [written], [read], self.context.machine.chip)
        buffer = self.builder.alloc(layout.size * bits // 8, 16, f"parts of a {self.op.noun} over axis {self.op.axis}")
        shared_access.write(self.context, buffer.results[0], layout, written, value, buffer=buffer.id)
        return buffer.results[0], buffer.id, layout

    def _by_needs(self) -> tuple[int, ...]:
        """The values of the function by how many arguments each needs, the most first.

        What is made first then uses up what it shares with the others on the way. The other way round, the shared parts of every
        step stay alive until the last value is made (Welford's differences until the sums of squares).
        """
        block = self.op.combine
        needs: dict[SSAValue, set[SSAValue]] = {argument: {argument} for argument in block.args}
        for step in block.ops:
            if isinstance(step, CombineReturnOp):
                counts = [len(needs[value]) for value in step.operands]
                return tuple(sorted(range(len(counts)), key=lambda i: -counts[i]))
            for result in step.results:
                needs[result] = set().union(*(needs[operand] for operand in step.operands))
        raise AssertionError("a combine function ends in its return")
