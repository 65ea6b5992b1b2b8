"""The last iteration of a loop that loads one iteration early, behind the loop: there is nothing left to load in it.

What stays in the loop then loads for an iteration that surely comes. Nothing is masked off for want of one, no load is in vain, and
what follows the loop can overlap with its last products.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.scf import ForOp, IfOp, YieldOp
from xdsl.ir import Block, Operation, Region, SSAValue

from tilefw.passes.dce import is_dead
from tilefw.passes.rewriting import erase
from tilefw.simt.pipeline.emit import Emitter, always
from tilefw.simt.pipeline.plan import Plan, Way
from tilefw.simt.pipeline.slice import Load

Taken = Callable[[Load, Emitter], SSAValue]  # what a load of the original body gives in the last iteration, made where it stood


def stands_behind(plan: Plan) -> bool:
    """Whether a loop's last iteration is worth its code: where loads of the next one hold registers until they are stored.

    Asynchronous copies are issued and forgotten, as many iterations early as there are slots: few of many are in vain.
    """
    ways = {chain.way for chain in plan}
    return Way.STORES in ways and Way.COPIES not in ways and all(chain.distance == 1 for chain in plan)


class LastIteration:
    """A copy of a loop's body, made before the loop is changed."""

    def __init__(self, loop: ForOp) -> None:
        self.loop = loop
        self._values: dict[SSAValue, SSAValue] = {}
        copied = Region()
        loop.body.clone_into(copied, 0, self._values)
        self._block = copied.block

    def place(
        self, outside: Emitter, exists: SSAValue, induction: Callable[[], SSAValue], carried: Sequence[SSAValue],
        loads: Mapping[Load, Taken],
    ) -> None:
        """Put the copy behind the changed loop, whose results are `carried`, if there `exists` an iteration; what read the results
        of the original loop reads the copy's. `induction` makes the induction variable's last value."""
        for load, taken in loads.items():
            copied = self._values[load.result]
            assert isinstance(copied.owner, Operation)
            copied.replace_all_uses_with(taken(load, Emitter(copied.owner, outside)))
        last = self._block.last_op
        assert isinstance(last, YieldOp)
        wanted = [index for index, result in enumerate(self.loop.results) if result.first_use is not None]
        last.operands = [last.operands[index] for index in wanted]
        for op in reversed(list(self._block.ops)):
            if is_dead(op):
                erase(op)
        first, *arguments = self._block.args
        if first.first_use is not None:
            first.replace_all_uses_with(induction())
        for argument, value in zip(arguments, carried, strict=True):
            argument.replace_all_uses_with(value)
        for index, result in zip(wanted, self._joined(outside, exists, last, [carried[i] for i in wanted]), strict=True):
            result.name_hint = self.loop.results[index].name_hint
            self.loop.results[index].replace_all_uses_with(result)

    def _joined(self, outside: Emitter, exists: SSAValue, last: YieldOp, others: Sequence[SSAValue]) -> list[SSAValue]:
        """The copied ops in their new place, and their results, or `others` where the loop has no iteration."""
        moved = list(self._block.ops)
        for op in moved:
            op.detach()
        if always(exists):
            for op in moved[:-1]:
                outside.insert(op, op.location)  # type: ignore[arg-type]
            return list(last.operands)
        branch = IfOp(exists, [value.type for value in others], [Block(moved)], [Block([YieldOp(*others)])])
        return list(outside.insert(branch).results)
