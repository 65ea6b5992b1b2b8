"""The epilogue: the last iterations of a loop, peeled off, as they have nothing to load early.

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

_FEW = 2  # iterations that a loop with copies may leave to its epilogue: each is the whole body again


def peeled_iterations(plan: Plan, consecutive: bool) -> int:
    """How many of a loop's last iterations are worth the code: where loads of the next one hold registers until they are stored,
    and where copies that nobody wants are made all the same, as those are that land in one piece (`consecutive`).

    Other asynchronous copies hold no registers, and a condition keeps them from being issued: few of them are wasted.
    """
    storages = {chain.storage for chain in plan}
    if storages == {PrefetchStorage.COPIES}:
        (chain,) = plan
        return chain.distance if consecutive and chain.distance <= _FEW and len(chain.levels) == 1 else 0
    stores = PrefetchStorage.STORES in storages and PrefetchStorage.COPIES not in storages
    return 1 if stores and all(chain.distance == 1 for chain in plan) else 0


class Epilogue:
    """A copy of a loop's body, made before the loop is changed: the iteration with `following` more behind it."""

    def __init__(self, loop: ForOp, following: int = 0) -> None:
        self.loop = loop
        self.following = following
        self.wanted: Sequence[int] = ()
        self._values: dict[SSAValue, SSAValue] = {}
        copied = Region()
        loop.body.clone_into(copied, 0, self._values)
        self._block = copied.block

    def value(self, original: SSAValue) -> SSAValue:
        """What a value of the loop's body is in the copy."""
        return self._values[original]

    def begin_with(self, op: Operation) -> None:
        """Put an op before all others."""
        first = self._block.first_op
        assert first is not None
        self._block.insert_op_before(op, first)

    def prepare(self, outside: Emitter, wanted: Sequence[int], loads: Mapping[Load, Taken]) -> list[int]:
        """Have the copy give the carried values `wanted`, by index, and drop what it then needs not. Those that it takes or hands
        on."""
        for load, taken in loads.items():
            copied = self.value(load.result)
            assert isinstance(copied.owner, Operation)
            copied.replace_all_uses_with(taken(load, Emitter(copied.owner, outside), self))
        last = self._block.last_op
        assert isinstance(last, YieldOp)
        self.wanted = wanted
        last.operands = [last.operands[index] for index in wanted]
        for op in reversed(list(self._block.ops)):
            if is_dead(op):
                erase(op)
        return [i for i, value in enumerate(self._block.args[1:]) if i in wanted or value.first_use is not None]

    def insert(
        self, outside: Emitter, exists: SSAValue, induction: Callable[[], SSAValue], carried: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """Put the copy where `outside` is, under `exists` (there is the iteration), with these `carried` values; what they are
        behind it. `induction` makes the induction variable's value."""
        first, *arguments = self._block.args
        if first.first_use is not None:
            first.replace_all_uses_with(induction())
        for argument, value in zip(arguments, carried, strict=True):
            argument.replace_all_uses_with(value)
        last = self._block.last_op
        assert isinstance(last, YieldOp)
        behind = list(carried)
        for index, result in zip(self.wanted, self._joined(outside, exists, last, [carried[i] for i in self.wanted]), strict=True):
            result.name_hint = self.loop.results[index].name_hint
            behind[index] = result
        return behind

    def _joined(self, outside: Emitter, exists: SSAValue, last: YieldOp, others: Sequence[SSAValue]) -> list[SSAValue]:
        """The copied ops in their new place, and their results, or `others` where there is no such iteration."""
        moved = list(self._block.ops)
        for op in moved:
            op.detach()
        if always(exists):
            for op in moved[:-1]:
                outside.insert(op, op.location)  # type: ignore[arg-type]
            return list(last.operands)
        branch = IfOp(exists, [value.type for value in others], [Block(moved)], [Block([YieldOp(*others)])])
        return list(outside.insert(branch).results)


Taken = Callable[[Load, Emitter, Epilogue], SSAValue]  # the value of a load of the original body in a peeled iteration
