"""Pointer and offset tiles that loops carry become scalars: each round moves all elements alike, so one number says it.

`p = init; for …: …; p += step` with a uniform step becomes a scalar that is carried, and `init` moved by it in the body. A
pointer tile whose steps differ by element carries its offset tile from a scalar base instead.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from tilefw.passes.affine import AffineAnalysis
from tilefw.passes.fold import constant_of
from tilefw.passes.offset_sums import sum_of, widened, widest
from tilefw.passes.rewriting import erase, insert, rebuild_loop
from tilefw.passes.structured_access import decompose
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.elementwise_op import ElementwiseOp, build
from tilefw.tile.nested_ops import nested_of


class ScalarizeCarriedPass(ModulePass):
    """Makes loops carry one scalar where they carried a tile of offsets or pointers.

    Every `scf.for`, outer loops first, so that an inner loop sees scalars come in.
    """

    name = "scalarize-carried"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in nested_of(op, scf.ForOp):
            _Rewrite(loop).run()


@dataclass(frozen=True, slots=True)
class ScalarizationPlan:
    """One carried tile: what is carried instead (`initial`), and `steps`, what each round adds to it.

    `fixed` is the tile that the carried scalar moves (None where `base` is moved by a carried offset tile).
    """

    index: int
    initial: SSAValue
    steps: tuple[SSAValue, ...]
    fixed: SSAValue | None
    base: SSAValue | None


class _Rewrite:
    def __init__(self, loop: scf.ForOp) -> None:
        self.loop = loop
        self.block: Block = loop.body.block
        last = self.block.last_op
        assert last is not None
        self.last: Operation = last

    def run(self) -> None:
        plans = [plan for index in range(len(self.loop.iter_args)) if (plan := self._plan(index)) is not None]
        if plans:
            self._apply({plan.index: plan for plan in plans})

    def _plan(self, index: int) -> ScalarizationPlan | None:
        argument = self.block.args[1 + index]
        if not types.is_tile(argument.type) or not (types.is_pointer(argument.type) or types.is_int(argument.type)):
            return None
        if types.is_bool(argument.type):
            return None
        steps = self._steps(self.last.operands[index], argument)
        if not steps:
            return None
        initial = self.loop.iter_args[index]
        scalars = [scalar for step in steps if (scalar := self._uniform(step)) is not None]
        if len(scalars) == len(steps):
            return self._scalar_plan(index, initial, scalars)
        return self._offset_plan(index, initial, steps) if types.is_pointer(argument.type) else None

    def _steps(self, value: SSAValue, argument: SSAValue) -> list[SSAValue]:
        """What is added to the argument on the way to the yield; empty where anything else happens to it."""
        steps: list[SSAValue] = []
        while value is not argument:
            op = value.op if isinstance(value, OpResult) else None
            if isinstance(op, ops.AddPtrOp):
                value, step = op.pointer, op.offset
            elif isinstance(op, ElementwiseOp) and op.row.name == "addi":
                left, right = op.operands
                value, step = (left, right) if self._leads_to(left, argument) else (right, left)
            else:
                return []
            steps.append(step)
        return steps[::-1]

    @staticmethod
    def _leads_to(value: SSAValue, argument: SSAValue) -> bool:
        while value is not argument:
            op = value.op if isinstance(value, OpResult) else None
            if not (isinstance(op, ElementwiseOp) and op.row.name == "addi"):
                return False
            value = op.operands[0]
        return True

    def _uniform(self, step: SSAValue) -> SSAValue | None:
        """The step as a scalar: what it is a splat of, or a constant (made before the loop)."""
        if isinstance(step, OpResult) and isinstance(step.op, ops.SplatOp):
            return step.op.source
        literal = constant_of(step)
        return None if literal is None else insert(ops.ConstantOp(literal, types.element_of(step.type)), self.loop)

    def _scalar_plan(self, index: int, initial: SSAValue, steps: list[SSAValue]) -> ScalarizationPlan | None:
        element = types.element_of(initial.type)
        if types.is_int(initial.type):
            return ScalarizationPlan(index, insert(ops.ConstantOp(0, element), self.loop), tuple(steps), initial, None)
        address = decompose(initial, AffineAnalysis())
        if address is None:
            return None
        total = sum_of(address.offsets, self.loop)
        return ScalarizationPlan(index, address.base, tuple(steps), total, address.base)

    def _offset_plan(self, index: int, initial: SSAValue, steps: list[SSAValue]) -> ScalarizationPlan | None:
        address = decompose(initial, AffineAnalysis())
        if address is None:
            return None
        shape = types.shape_of(initial.type)
        element = widest([*address.offsets, *steps])
        total = sum_of(address.offsets, self.loop) or insert(ops.ConstantOp(0, types.tile(shape, element)), self.loop)
        return ScalarizationPlan(index, widened(total, element, self.loop), tuple(steps), None, address.base)

    def _apply(self, plans: dict[int, ScalarizationPlan]) -> None:
        carried = list(self.loop.iter_args)
        for index, plan in plans.items():
            argument = self.block.args[1 + index]
            new = self.block.insert_arg(plan.initial.type, 1 + index + 1)
            new.name_hint = argument.name_hint
            first = self.block.first_op
            assert first is not None
            argument.replace_all_uses_with(self._value(plan, new, argument.type, first))
            self.block.erase_arg(argument)
            self.last.operands[index] = self._next(plan, new)
            carried[index] = plan.initial
        self._replace_loop(carried, plans)

    def _value(self, plan: ScalarizationPlan, carried: SSAValue, type: Attribute, before: Operation) -> SSAValue:
        """The tile that the loop carried, from what it carries now."""
        shape = types.shape_of(type)
        if plan.fixed is None and plan.base is not None and types.is_tile(plan.initial.type):
            return insert(ops.AddPtrOp(insert(ops.SplatOp(plan.base, shape), before), carried), before)
        splat = insert(ops.SplatOp(carried, shape), before)
        if types.is_pointer(type):
            return splat if plan.fixed is None else insert(ops.AddPtrOp(splat, plan.fixed), before)
        assert plan.fixed is not None
        return insert(build("addi", plan.fixed, splat), before)

    def _next(self, plan: ScalarizationPlan, carried: SSAValue) -> SSAValue:
        value = carried
        for step in plan.steps:
            if types.is_pointer(value.type):
                value = insert(ops.AddPtrOp(value, step), self.last)
            else:
                wide = widened(step, types.element_of(value.type), self.last)
                value = insert(build("addi", value, wide), self.last)
        return value

    def _replace_loop(self, carried: list[SSAValue], plans: dict[int, ScalarizationPlan]) -> None:
        loop = self.loop
        new = rebuild_loop(loop, carried)
        for index, (old, result) in enumerate(zip(loop.results, new.results, strict=True)):
            result.name_hint = old.name_hint
            if index in plans and old.first_use is not None:
                old.replace_all_uses_with(self._value(plans[index], result, old.type, loop))
            elif index not in plans:
                old.replace_all_uses_with(result)
        erase(loop)
