"""When is a value known? Before a program starts, at each trip of its loops, or only from data that it loads.

Constants, scalar arguments and program ids are known at launch. A loop's counter, and what follows from it, is known trip by trip
as long as the loop's bounds are. What was loaded is neither, nor is anything that depends on it.
"""

from __future__ import annotations

from enum import IntEnum

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from tilefw.passes.side_effects import is_side_effect_free
from tilefw.tile.dialect.combine_op import CombineOp

_ROUNDS = 3  # of a loop's fixed point: levels only fall, and there are three


class KnownLevel(IntEnum):
    """From the latest to the earliest: the level of a result is the least of its operands'."""

    LOADED = 0
    COUNTED = 1
    LAUNCHED = 2


class LaunchKnown:
    """The level of every value of a module: `known[value]`."""

    def __init__(self, module: ModuleOp) -> None:
        self._levels: dict[SSAValue, KnownLevel] = {}
        for function in module.walk():
            if isinstance(function, func.FuncOp):
                self._set(function.body.block.args, KnownLevel.LAUNCHED)
                self._block(function.body.block)

    def __getitem__(self, value: SSAValue) -> KnownLevel:
        return self._levels.get(value, KnownLevel.LOADED)

    def of_trips(self, loop: scf.ForOp | scf.WhileOp) -> KnownLevel:
        """When it is known how often a loop runs."""
        if isinstance(loop, scf.ForOp):
            return self._least((loop.lb, loop.ub, loop.step))
        condition = loop.before_region.block.last_op
        assert isinstance(condition, scf.ConditionOp)
        return self[condition.condition]

    def _least(self, values: tuple[SSAValue, ...]) -> KnownLevel:
        return min((self[value] for value in values), default=KnownLevel.LAUNCHED)

    def _set(self, values: tuple[SSAValue, ...], level: KnownLevel) -> None:
        self._levels.update(dict.fromkeys(values, level))

    def _block(self, block: Block) -> None:
        for op in block.ops:
            if isinstance(op, scf.ForOp):
                self._for(op)
            elif isinstance(op, scf.WhileOp):
                self._while(op)
            elif isinstance(op, scf.IfOp):
                self._if(op)
            elif op.results:
                self._set(op.results, self._of_op(op))

    def _of_op(self, op: Operation) -> KnownLevel:
        pure = is_side_effect_free(op) and (not op.regions or isinstance(op, CombineOp))
        return self._least(tuple(op.operands)) if pure else KnownLevel.LOADED

    def _for(self, loop: scf.ForOp) -> None:
        block = loop.body.block
        trips = min(self.of_trips(loop), KnownLevel.COUNTED)
        carried = [min(self[value], trips) for value in loop.iter_args]
        for _ in range(_ROUNDS):
            self._set(block.args[:1], trips)
            self._levels.update(zip(block.args[1:], carried, strict=True))
            self._block(block)
            carried = self._met(carried, block)
        self._levels.update(zip(loop.results, carried, strict=True))

    def _while(self, loop: scf.WhileOp) -> None:
        before, after = loop.before_region.block, loop.after_region.block
        condition = before.last_op
        assert isinstance(condition, scf.ConditionOp)
        carried = [min(self[value], KnownLevel.COUNTED) for value in loop.arguments]
        for _ in range(_ROUNDS):
            self._levels.update(zip(before.args, carried, strict=True))
            self._block(before)
            trips = min(self[condition.condition], KnownLevel.COUNTED)
            passed = [min(self[value], trips) for value in condition.args]
            self._levels.update(zip(after.args, passed, strict=True))
            self._block(after)
            carried = [min(level, trips) for level in self._met(carried, after)]
        trips = min(self[condition.condition], KnownLevel.COUNTED)
        self._levels.update(zip(loop.results, (min(self[value], trips) for value in condition.args), strict=True))

    def _met(self, carried: list[KnownLevel], block: Block) -> list[KnownLevel]:
        last = block.last_op
        assert last is not None
        return [min(level, self[value]) for level, value in zip(carried, last.operands, strict=True)]

    def _if(self, branch: scf.IfOp) -> None:
        ends = [self._end(region) for region in branch.regions if region.blocks]
        for index, result in enumerate(branch.results):
            self._levels[result] = min(self[branch.cond], *(self[end[index]] for end in ends))

    def _end(self, region: Region) -> tuple[SSAValue, ...]:
        self._block(region.block)
        last = region.block.last_op
        return () if last is None else tuple(last.operands)
