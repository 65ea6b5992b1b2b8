"""Which tile values should share a layout: a union-find over elementwise ops, accesses, carried values and branch results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ConditionOp, ForOp, IfOp, WhileOp, YieldOp
from xdsl.ir import Block, Operation, SSAValue

from tilefw.simt.assign.transfer import keeps_layout
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.atomic_ops import AtomicOp
from tilefw.tile.dialect.combine_op import CombineOp, ReduceOp, ScanOp
from tilefw.tile.dialect.copy_ops import CopyOp
from tilefw.tile.dialect.dot_op import DotOp
from tilefw.tile.dialect.elementwise_op import ElementwiseOp
from tilefw.tile.dialect.gather_op import GatherOp
from tilefw.tile.dialect.inline_asm_op import InlineAsmOp
from tilefw.tile.dialect.shape_ops import JoinOp, SplitOp

_FREE = (ops.ConstantOp, ops.SplatOp)  # are made anew wherever they are wanted, and tie nothing
# All operands and results alike.
_ALIKE = (ElementwiseOp, ops.AddPtrOp, ops.LoadOp, ops.StoreOp, CopyOp, AtomicOp, ScanOp, InlineAsmOp)


class Classes:
    """`root(value)` names the class of a tile; `ops(root)` are those that touch it, in the order of the program.

    All members of a class have one shape. Constants and splats belong to none: they are classes of their own.
    """

    def __init__(self, function: FuncOp) -> None:
        self._parent: dict[SSAValue, SSAValue] = {}
        self._ops: dict[SSAValue, list[Operation]] = {}
        ordered = list(_walk(function.body.block))
        for op in ordered:
            for group in _tied(op):
                self._union(group)
        for op in ordered:
            for root in dict.fromkeys(self.root(v) for v in (*op.operands, *op.results) if types.is_tile(v.type)):
                self._ops.setdefault(root, []).append(op)

    def root(self, value: SSAValue) -> SSAValue:
        """The value that stands for the class."""
        parent = self._parent
        root = value
        while root in parent:
            root = parent[root]
        while value is not root:
            parent[value], value = root, parent[value]
        return root

    def ops(self, root: SSAValue) -> Sequence[Operation]:
        """The ops with an operand or result in the class, in the order of the program."""
        return self._ops.get(root, ())

    def _union(self, values: Sequence[SSAValue]) -> None:
        tiles = [v for v in values if types.is_tile(v.type) and not isinstance(v.owner, _FREE)]
        for other in tiles[1:]:
            first, second = self.root(tiles[0]), self.root(other)
            if first is not second:
                self._parent[second] = first


def _walk(block: Block) -> Iterator[Operation]:
    """All ops of a function but those of combine functions, whose values are scalars."""
    for op in block.ops:
        yield op
        if not isinstance(op, CombineOp):
            for region in op.regions:
                for inner in region.blocks:
                    yield from _walk(inner)


def _tied(op: Operation) -> Iterator[Sequence[SSAValue]]:
    """The groups of values that an op ties."""
    if isinstance(op, _ALIKE) or keeps_layout(op):
        yield (*op.operands, *op.results)
    elif isinstance(op, DotOp):
        yield (op.acc, op.results[0])
    elif isinstance(op, ReduceOp):
        yield tuple(op.operands)
        yield tuple(op.results)
    elif isinstance(op, JoinOp):
        yield tuple(op.operands)
    elif isinstance(op, GatherOp):
        yield (op.index, op.results[0])
    elif isinstance(op, SplitOp):
        yield tuple(op.results)
    elif isinstance(op, ops.LoadBlockOp) and op.other is not None:
        yield (op.results[0], op.other)
    else:
        yield from ((*variable.given, *variable.bound) for variable in carried(op))


@dataclass(frozen=True, slots=True)
class CarriedValues:
    """One variable of structured control flow: what it is `given` (start, yields), and the `bound` arguments and results."""

    given: tuple[SSAValue, ...]
    bound: tuple[SSAValue, ...]


def carried(op: Operation) -> Iterator[CarriedValues]:
    """The variables of a loop or branch."""
    if isinstance(op, ForOp):
        yields = last_op(op.body.block)
        for i, result in enumerate(op.results):
            yield CarriedValues((op.iter_args[i], yields.operands[i]), (op.body.block.args[i + 1], result))
    elif isinstance(op, IfOp):
        ends = [last_op(r.block) for r in (op.true_region, op.false_region) if r.blocks]
        for i, result in enumerate(op.results):
            yield CarriedValues(tuple(end.operands[i] for end in ends), (result,))
    elif isinstance(op, WhileOp):
        condition, back = last_op(op.before_region.block), last_op(op.after_region.block)
        assert isinstance(condition, ConditionOp) and isinstance(back, YieldOp)
        for i, start in enumerate(op.arguments):
            yield CarriedValues((start, back.operands[i]), (op.before_region.block.args[i],))
        for i, result in enumerate(op.results):
            yield CarriedValues((condition.args[i],), (op.after_region.block.args[i], result))


def last_op(block: Block) -> Operation:
    """The terminator."""
    last = block.last_op
    assert last is not None
    return last
