"""A loop while it is being pipelined: the insertion points, and the values that it will carry in addition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.scf import ForOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from tilefw.simt.software_pipeline.address_slice import Load
from tilefw.simt.software_pipeline.emitter import Emitter
from tilefw.simt.software_pipeline.epilogue import Epilogue, Taken
from tilefw.tile import types


class LoopFrame:
    """`outside` is the place before the loop, `top` and `end` are those of its body; the op is replaced by `close`.

    `epilogue`: the copy of the body that becomes the last iteration, where that is peeled.
    """

    def __init__(self, loop: ForOp, original_yield: Epilogue | None = None) -> None:
        self.loop = loop
        self.epilogue = original_yield
        self.body = loop.body.block
        assert self.body.first_op is not None and self.body.last_op is not None
        self.original_yield: Operation = self.body.last_op
        self.outside = Emitter(loop)
        self.top = Emitter(self.body.first_op, self.outside)
        self.end = Emitter(self.original_yield, self.outside)
        self._initial: list[SSAValue] = []
        self._following: list[SSAValue] = []
        self._known: dict[tuple[Emitter, str, int], SSAValue] = {}
        self._results: Sequence[SSAValue] = ()

    def carry(self, initial: SSAValue, name: str | None) -> SSAValue:
        """One more loop-carried value; `yield_next` gives in the same order what the next iteration gets."""
        argument = self.body.insert_arg(initial.type, len(self.body.args))
        argument.name_hint = name
        self._initial.append(initial)
        return argument

    def yield_next(self, *values: SSAValue) -> None:
        """The next iteration's values of what `carry` added, in that order."""
        self._following += values

    def first(self, count: int) -> tuple[SSAValue, SSAValue]:
        """Before the loop: the induction variable of iteration `count`, and whether there is that iteration."""
        return self._ahead(self.outside, self.loop.lb, count)

    def ahead(self, emitter: Emitter, count: int) -> tuple[SSAValue, SSAValue]:
        """In the body: the induction variable `count` iterations ahead, and whether there is that iteration."""
        return self._ahead(emitter, self.body.args[0], count)

    def _ahead(self, emitter: Emitter, induction: SSAValue, count: int) -> tuple[SSAValue, SSAValue]:
        later = emitter.ahead(induction, self.loop.step, count)
        if self.epilogue is not None and emitter is not self.outside and count == 1:
            return later, emitter.constant(1, types.i1)
        key = (emitter, "exists", count)
        if key not in self._known:
            self._known[key] = emitter.row("lts", induction, self._limit(count))
        return later, self._known[key]

    def _limit(self, count: int) -> SSAValue:
        """What the induction variable is below when `count` more iterations follow: the sum on its side could wrap around."""
        key = (self.outside, "limit", count)
        if key not in self._known:
            self._known[key] = self.outside.before(self.loop.ub, self.loop.step, count)
        return self._known[key]

    def _before_last(self) -> SSAValue:
        """The bound of a loop without its last iteration; no difference wraps around, as it is cut short before."""
        emitter, loop = self.outside, self.loop
        span = emitter.row("subi", emitter.row("maxs", loop.ub, loop.lb), loop.lb)
        less = emitter.row("subi", span, emitter.row("minu", span, loop.step))
        return emitter.row("addi", loop.lb, less)

    def _last(self) -> SSAValue:
        """The induction variable in the last iteration, if there is one."""
        emitter, loop = self.outside, self.loop
        reach = emitter.row("subi", emitter.row("subi", loop.ub, loop.lb), emitter.constant(1, loop.lb.type))
        return emitter.row("addi", loop.lb, emitter.row("subi", reach, emitter.row("remu", reach, loop.step)))

    def close(self, dropped: frozenset[str], taken: Mapping[Load, Taken], *after: Operation) -> None:
        """Put the loop that carries all of it in the place of the old one, without the `dropped` attributes, and ops after it.

        taken: what the loads that were issued early give in the last iteration, where that is peeled.
        """
        loop, original_yield = self.loop, self.original_yield
        original_yield.operands = [*original_yield.operands, *self._following]
        upper = loop.ub if self.epilogue is None else self._before_last()
        new = ForOp(loop.lb, upper, loop.step, [*loop.iter_args, *self._initial], loop.detach_region(loop.body))
        new.attributes = {name: value for name, value in loop.attributes.items() if name not in dropped}
        for op in (new, *after):
            self.outside.insert(op, loop.location)
        self._results = new.results
        own = list(new.results[: len(loop.results)])
        for old, result in zip(loop.results, own, strict=True):
            result.name_hint = old.name_hint
        if self.epilogue is None:
            for old, result in zip(loop.results, own, strict=True):
                old.replace_all_uses_with(result)
        else:
            self.epilogue.insert(self.outside, self.first(0)[1], self._last, own, taken)
        loop.detach()
        loop.erase()

    def after(self, carried: SSAValue) -> SSAValue:
        """What a carried value is behind the loop."""
        return self._results[carried.index - 1] if isinstance(carried, BlockArgument) else carried
