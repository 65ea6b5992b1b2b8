"""A loop while it is being pipelined: the insertion points, and the values that it will carry in addition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from xdsl.dialects.scf import ForOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from tilefw.passes.rewriting import erase, rebuild_loop
from tilefw.simt.software_pipeline.address_slice import Load
from tilefw.simt.software_pipeline.emitter import Emitter
from tilefw.simt.software_pipeline.epilogue import Epilogue, Taken
from tilefw.tile import types


def carrying(loop: ForOp, starts: Mapping[str, SSAValue]) -> tuple[ForOp, tuple[BlockArgument, ...]]:
    """The loop with more carried values, of these names and with what they start as; nobody yields what comes after yet."""
    body = loop.body.block
    arguments = tuple(body.insert_arg(start.type, len(body.args)) for start in starts.values())
    for argument, name in zip(arguments, starts, strict=True):
        argument.name_hint = name
    new = rebuild_loop(loop, [*loop.iter_args, *starts.values()])
    for old, result in zip(loop.results, new.results, strict=False):
        result.name_hint = old.name_hint
        old.replace_all_uses_with(result)
    erase(loop)
    return new, arguments


class LoopFrame:
    """`outside` is the place before the loop, `top` and `end` are those of its body; the op is replaced by `close`.

    `epilogues`: the copies of the body that become the last iterations, where those are peeled, in order. `slot`: the slot of an
    iteration's loads, where the loop carries it already.
    """

    def __init__(self, loop: ForOp, epilogues: Sequence[Epilogue] = (), slot: SSAValue | None = None) -> None:
        self.loop = loop
        self.epilogues = epilogues
        self.slot = slot
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
        if emitter is not self.outside and 0 < count <= len(self.epilogues):
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
        """The bound of a loop without its last iterations; no difference wraps around, as it is cut short before."""
        emitter, loop = self.outside, self.loop
        span = emitter.row("subi", emitter.row("maxs", loop.ub, loop.lb), loop.lb)
        for _ in self.epilogues:
            span = emitter.row("subi", span, emitter.row("minu", span, loop.step))
        return emitter.row("addi", loop.lb, span)

    def _last(self, following: int) -> SSAValue:
        """The induction variable in the iteration with `following` more behind it, if there is one."""
        emitter, loop = self.outside, self.loop
        reach = emitter.row("subi", emitter.row("subi", loop.ub, loop.lb), emitter.constant(1, loop.lb.type))
        last = emitter.row("addi", loop.lb, emitter.row("subi", reach, emitter.row("remu", reach, loop.step)))
        return emitter.before(last, loop.step, following)

    def close(self, dropped: frozenset[str], taken: Mapping[Load, Taken], *after: Operation) -> None:
        """Put the loop that carries all of it in the place of the old one, without the `dropped` attributes, and ops after it.

        They stand before the last iteration, where that is peeled: what it gives may be put where copies land.

        taken: what the loads that were issued early give in the last iterations, where those are peeled.
        """
        loop, original_yield = self.loop, self.original_yield
        original_yield.operands = [*original_yield.operands, *self._following]
        upper = self._before_last() if self.epilogues else loop.ub
        new = ForOp(loop.lb, upper, loop.step, [*loop.iter_args, *self._initial], loop.detach_region(loop.body))
        new.attributes = {name: value for name, value in loop.attributes.items() if name not in dropped}
        self.outside.insert(new, loop.location)
        self._results = new.results
        own = list(new.results[: len(loop.results)])
        for old, result in zip(loop.results, own, strict=True):
            result.name_hint = old.name_hint
        for old, result in zip(loop.results, self._behind_epilogues(own, taken, after), strict=True):
            old.replace_all_uses_with(result)
        loop.detach()
        loop.erase()

    def _behind_epilogues(
        self, carried: Sequence[SSAValue], taken: Mapping[Load, Taken], after: Sequence[Operation]
    ) -> Sequence[SSAValue]:
        """What the loop carries behind the iterations that were peeled off it, which are put here, as are the ops after it."""
        wanted = [index for index, result in enumerate(self.loop.results) if result.first_use is not None]
        for epilogue in reversed(self.epilogues):
            wanted = epilogue.prepare(self.outside, wanted, taken)
        if not self.epilogues:
            self._insert(after)
        for epilogue in self.epilogues:
            following = epilogue.following
            if not following:
                self._insert(after)
            carried = epilogue.insert(self.outside, self.first(following)[1], partial(self._last, following), carried)
        return carried

    def _insert(self, ops: Sequence[Operation]) -> None:
        for op in ops:
            self.outside.insert(op, self.loop.location)

    def after(self, carried: SSAValue) -> SSAValue:
        """What a carried value is behind the loop."""
        return self._results[carried.index - 1] if isinstance(carried, BlockArgument) else carried
