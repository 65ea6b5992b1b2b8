"""The epilogue: the last iteration of a loop that loads one iteration early, peeled off, as it has nothing to load.

Every iteration that stays in the loop then loads for one that exists: no mask is needed for that, no load is wasted, and code after
the loop can overlap with the last products.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.scf import ForOp, IfOp, YieldOp
from xdsl.ir import Block, Operation, Region, SSAValue

from tilefw.passes.dce import is_dead
from tilefw.passes.rewriting import erase
from tilefw.simt.software_pipeline.address_slice import Load
from tilefw.simt.software_pipeline.emitter import Emitter, always
from tilefw.simt.software_pipeline.plan import Plan, PrefetchStorage

Taken = Callable[[Load, Emitter], SSAValue]  # the value of a load of the original body in the last iteration, made in its place


def peels_last_iteration(plan: Plan) -> bool:
    """Whether peeling a loop's last iteration is worth the code: where loads of the next one hold registers until they are stored.

    Asynchronous copies hold no registers and are issued as many iterations early as there are slots: few of them are wasted.
    """
    storages = {chain.storage for chain in plan}
    return PrefetchStorage.STORES in storages and PrefetchStorage.COPIES not in storages and all(
        chain.distance == 1 for chain in plan
    )


class Epilogue:
    """A copy of a loop's body, made before the loop is changed."""

    def __init__(self, loop: ForOp) -> None:
        self.loop = loop
        self._values: dict[SSAValue, SSAValue] = {}
        copied = Region()
        loop.body.clone_into(copied, 0, self._values)
        self._block = copied.block

    def insert(
        self, outside: Emitter, exists: SSAValue, induction: Callable[[], SSAValue], carried: Sequence[SSAValue],
        loads: Mapping[Load, Taken],
    ) -> None:
        """Put the copy after the changed loop, whose results are `carried`, under `exists` (there is an iteration); what read the
        results of the original loop reads the copy's. `induction` makes the induction variable's last value."""
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
