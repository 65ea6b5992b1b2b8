"""A loop while it is being pipelined: the places where ops are added, and what it will carry in addition."""

from __future__ import annotations

from xdsl.dialects.scf import ForOp
from xdsl.ir import Operation, SSAValue

from tilefw.simt.pipeline.emit import Emitter


class LoopFrame:
    """`outside` is the place before the loop, `top` and `end` are those of its body; the op is replaced by `close`."""

    def __init__(self, loop: ForOp) -> None:
        self.loop = loop
        self.body = loop.body.block
        assert self.body.first_op is not None and self.body.last_op is not None
        self.last: Operation = self.body.last_op
        self.outside = Emitter(loop)
        self.top = Emitter(self.body.first_op, self.outside)
        self.end = Emitter(self.last, self.outside)
        self._initial: list[SSAValue] = []
        self._following: list[SSAValue] = []
        self._known: dict[tuple[Emitter, str, int], SSAValue] = {}

    def carry(self, initial: SSAValue, name: str | None) -> SSAValue:
        """One more value that the loop carries; `hand_on` says in the same order what the next iteration gets."""
        argument = self.body.insert_arg(initial.type, len(self.body.args))
        argument.name_hint = name
        self._initial.append(initial)
        return argument

    def hand_on(self, *values: SSAValue) -> None:
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

    def close(self, dropped: frozenset[str], *after: Operation) -> None:
        """Put the loop that carries all of it in the place of the old one, without the `dropped` attributes, and ops after it."""
        loop, last = self.loop, self.last
        last.operands = [*last.operands, *self._following]
        new = ForOp(loop.lb, loop.ub, loop.step, [*loop.iter_args, *self._initial], loop.detach_region(loop.body))
        new.attributes = {name: value for name, value in loop.attributes.items() if name not in dropped}
        for op in (new, *after):
            self.outside.insert(op, loop.location)
        for old, result in zip(loop.results, new.results, strict=False):
            result.name_hint = old.name_hint
            old.replace_all_uses_with(result)
        loop.detach()
        loop.erase()
