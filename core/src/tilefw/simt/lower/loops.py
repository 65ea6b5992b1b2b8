"""Lowering of loops and branches: carried tiles become one lane value for each layout that they stand in."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.func import ReturnOp
from xdsl.dialects.scf import ConditionOp, ForOp, IfOp, WhileOp, YieldOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilefw.simt.layout import LinearLayout
from tilefw.simt.lower import bulk_store
from tilefw.simt.lower.atomics import atomic
from tilefw.simt.lower.context import LoweringContext
from tilefw.simt.lower.linear import carry_linear
from tilefw.simt.lower.loop_carried import Moved, move_offsets, start_with_invariants
from tilefw.simt.lower.spin import AwaitedAccess, spins

Body = Callable[[Block], None]
Op = Callable[[Operation], None]
_Placed = tuple[SSAValue, LinearLayout | None]


class LoopLowering:
    """Lowers control flow; `body` lowers the ops of a block, `op` one."""

    def __init__(self, context: LoweringContext, body: Body, op: Op) -> None:
        self.context = context
        self.body = body
        self.op = op

    def lower(self, op: Operation) -> bool:
        """Whether the op is control flow; if so, it is lowered."""
        handler = _CONTROL.get(type(op))
        if handler is not None:
            handler(self, op)
        return handler is not None

    def _in_layouts(self, values: Sequence[SSAValue]) -> list[_Placed]:
        """Each value in each of its layouts."""
        return [(v, layout) for v in values for layout in self.context.layouts(v)]

    def _given(self, values: Sequence[SSAValue], like: Sequence[SSAValue]) -> list[SSAValue]:
        """The lane values of `values` in the layouts of `like`; a carried value nobody wants has none."""
        return [self.context.get(v, l) for v, a in zip(values, like, strict=True) for l in self.context.layouts(a)]

    def _region(self, block: Block, heads: Sequence[SSAValue], first: list[Attribute], loop: bool) -> Region:
        """A region whose block takes `first` and then `heads`, in their layouts, as arguments."""
        context = self.context
        placed = self._in_layouts(heads)
        new = Block(arg_types=[*first, *(context.lane_type(v, l) for v, l in placed)])
        outer = context.builder.enter(new, loop)
        for argument, (value, layout) in zip(new.args[len(first) :], placed, strict=True):
            context.put(value, layout, argument)
        if first:
            context.scalars[block.args[0]] = new.args[0]
        for value in heads:
            context.convert(value)
        self.body(block)
        context.builder.leave(outer)
        return Region(new)

    def _for(self, op: ForOp) -> None:
        carried = list(op.body.block.args[1:])
        inits = self._given(list(op.iter_args), carried)
        bounds = [self.context.scalars[v] for v in (op.lb, op.ub, op.step)]
        body = self._region(op.body.block, carried, [op.body.block.args[0].type], True)
        wanted = [bool(list(r.uses)) for r, a in zip(op.results, carried, strict=True) for _ in self.context.layouts(a)]
        offsets, moved = self.context.offsets, Moved()
        starts = start_with_invariants(self.context.builder, body.block, inits, wanted, offsets.centered if offsets else None)
        if offsets is not None and offsets.small:
            moved = move_offsets(self.context.builder, body.block, starts, wanted, offsets.centered)
        if offsets is not None:
            carry_linear(self.context.builder, body.block, bounds[0], bounds[2], moved)
        starts = [start for index, start in enumerate(starts) if index not in moved.dropped]
        self._results(op, carried, [*bounds, *starts, *moved.starts], [body], moved)

    def _if(self, op: IfOp) -> None:
        condition = self.context.scalars[op.cond]
        regions = [self._region(r.block, [], [], False) if r.blocks else Region() for r in (op.true_region, op.false_region)]
        self._results(op, list(op.results), [condition], regions)

    def _while(self, op: WhileOp) -> None:
        before, after = op.before_region.block, op.after_region.block
        waiting = spins(op)
        if waiting is not None:
            self._spin(before, waiting)
            return
        inits = self._given(list(op.arguments), list(before.args))
        regions = [self._region(before, list(before.args), [], True), self._region(after, list(after.args), [], True)]
        self._results(op, list(after.args), inits, regions)

    def _spin(self, before: Block, waiting: AwaitedAccess) -> None:
        """One access that is made until it finds what it waits for: by the thread that makes it, while others wait at a barrier."""
        for inner in before.ops:
            if inner is waiting.access:
                atomic(self.context, waiting.access, (waiting.row, self.context.scalars[waiting.awaited]))
            elif inner is not waiting.comparison and not isinstance(inner, ConditionOp):
                self.op(inner)

    def _results(
        self, op: Operation, like: Sequence[SSAValue], operands: list[SSAValue], regions: list[Region], moved: Moved | None = None
    ) -> None:
        """The rebuilt op, whose results have the layouts of `like`; but for what is `moved`, which nobody asks for."""
        context = self.context
        outs = [(r, l) for r, a in zip(op.results, like, strict=True) for l in context.layouts(a)]
        if moved is not None:
            outs = [out for index, out in enumerate(outs) if index not in moved.dropped]
        more = [] if moved is None else [start.type for start in moved.starts]
        context.builder.location = op.location
        new = type(op).create(
            operands=operands, result_types=[*(context.lane_type(v, l) for v, l in outs), *more],
            properties=dict(op.properties), regions=regions,
        )
        context.builder.insert(new)
        for (value, layout), result in zip(outs, new.results, strict=False):
            context.put(value, layout, result)

    def _yield(self, op: YieldOp) -> None:
        parent = op.parent_op()
        assert parent is not None
        like: Sequence[SSAValue] = parent.results
        if isinstance(parent, ForOp):
            like = parent.body.block.args[1:]
        elif isinstance(parent, WhileOp):
            like = parent.before_region.block.args
        self.context.builder.insert(YieldOp(*self._given(list(op.operands), like)))

    def _condition(self, op: ConditionOp) -> None:
        parent = op.parent_op()
        assert isinstance(parent, WhileOp)
        values = self._given(list(op.args), list(parent.after_region.block.args))
        self.context.builder.insert(ConditionOp(self.context.scalars[op.condition], *values))

    def _return(self, op: ReturnOp) -> None:
        bulk_store.finish(self.context)
        self.context.builder.insert(ReturnOp())


_CONTROL: dict[type[Operation], Callable[[LoopLowering, Operation], None]] = {
    ForOp: LoopLowering._for, IfOp: LoopLowering._if, WhileOp: LoopLowering._while,  # type: ignore[dict-item]
    YieldOp: LoopLowering._yield, ConditionOp: LoopLowering._condition,  # type: ignore[dict-item]
    ReturnOp: LoopLowering._return,  # type: ignore[dict-item]
}
