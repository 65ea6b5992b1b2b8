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

from tilefw.passes.affine import AffineAnalysis, insert_before
from tilefw.passes.structured_access import decompose
from tilefw.tile import ops, types
from tilefw.tile.elementwise import ElementwiseOp, build
from tilefw.tile.fold import constant_of


class ScalarizeCarriedPass(ModulePass):
    """Every `scf.for`, outer loops first, so that an inner loop sees scalars come in."""

    name = "scalarize-carried"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [o for o in op.walk() if isinstance(o, scf.ForOp)]:
            _Rewrite(loop).run()


@dataclass(frozen=True, slots=True)
class Plan:
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

    def _plan(self, index: int) -> Plan | None:
        argument = self.block.args[1 + index]
        if not types.is_tile(argument.type) or not (types.is_pointer(argument.type) or types.is_int(argument.type)):
            return None
        if types.is_bool(argument.type):
            return None
        steps = self._steps(self.last.operands[index], argument)
        if not steps:
            return None
        initial = self.loop.iter_args[index]
        scalars = [self._uniform(step) for step in steps]
        if all(scalar is not None for scalar in scalars):
            return self._scalar_plan(index, initial, scalars)  # type: ignore[arg-type]
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
        return None if literal is None else insert_before(ops.ConstantOp(literal, types.element_of(step.type)), self.loop)

    def _scalar_plan(self, index: int, initial: SSAValue, steps: list[SSAValue]) -> Plan | None:
        element = types.element_of(initial.type)
        if types.is_int(initial.type):
            return Plan(index, insert_before(ops.ConstantOp(0, element), self.loop), tuple(steps), initial, None)
        address = decompose(initial, AffineAnalysis())
        if address is None:
            return None
        total = _sum_of(address.offsets, self.loop)
        return Plan(index, address.base, tuple(steps), total, address.base)

    def _offset_plan(self, index: int, initial: SSAValue, steps: list[SSAValue]) -> Plan | None:
        address = decompose(initial, AffineAnalysis())
        if address is None or any(self._varies(step) for step in steps):
            return None
        shape = types.shape_of(initial.type)
        widest = _widest([*address.offsets, *steps])
        total = _sum_of(address.offsets, self.loop) or insert_before(ops.ConstantOp(0, types.tile(shape, widest)), self.loop)
        return Plan(index, _widened(total, widest, self.loop), tuple(steps), None, address.base)

    def _varies(self, step: SSAValue) -> bool:
        """Whether the step itself is made from the carried pointer: no offset tile says that."""
        return types.is_pointer(step.type)

    def _apply(self, plans: dict[int, Plan]) -> None:
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

    def _value(self, plan: Plan, carried: SSAValue, type: Attribute, before: Operation) -> SSAValue:
        """The tile that the loop carried, from what it carries now."""
        shape = types.shape_of(type)
        if plan.fixed is None and plan.base is not None and types.is_tile(plan.initial.type):
            return insert_before(ops.AddPtrOp(insert_before(ops.SplatOp(plan.base, shape), before), carried), before)
        splat = insert_before(ops.SplatOp(carried, shape), before)
        if types.is_pointer(type):
            return splat if plan.fixed is None else insert_before(ops.AddPtrOp(splat, plan.fixed), before)
        assert plan.fixed is not None
        return insert_before(build("addi", plan.fixed, splat), before)

    def _next(self, plan: Plan, carried: SSAValue) -> SSAValue:
        value = carried
        for step in plan.steps:
            if types.is_pointer(value.type):
                value = insert_before(ops.AddPtrOp(value, step), self.last)
            else:
                wide = _widened(step, types.element_of(value.type), self.last)
                value = insert_before(build("addi", value, wide), self.last)
        return value

    def _replace_loop(self, carried: list[SSAValue], plans: dict[int, Plan]) -> None:
        loop = self.loop
        body = loop.detach_region(loop.body)
        new = scf.ForOp(loop.lb, loop.ub, loop.step, carried, body)
        new.attributes, new.location = dict(loop.attributes), loop.location
        assert loop.parent is not None
        loop.parent.insert_op_before(new, loop)
        for index, (old, result) in enumerate(zip(loop.results, new.results, strict=True)):
            result.name_hint = old.name_hint
            if index in plans and old.first_use is not None:
                old.replace_all_uses_with(self._value(plans[index], result, old.type, loop))
            elif index not in plans:
                old.replace_all_uses_with(result)
        loop.detach()
        loop.erase()


def _widest(tiles: list[SSAValue]) -> Attribute:
    return max((types.element_of(t.type) for t in tiles), key=lambda t: types.dtype_of(t).bits)


def _widened(value: SSAValue, element: Attribute, before: Operation) -> SSAValue:
    return value if types.element_of(value.type) == element else insert_before(build("exts", value, result=element), before)


def _sum_of(tiles: tuple[SSAValue, ...], before: Operation) -> SSAValue | None:
    if not tiles:
        return None
    widest = _widest(list(tiles))
    total: SSAValue | None = None
    for tile in tiles:
        wide = _widened(tile, widest, before)
        total = wide if total is None else insert_before(build("addi", total, wide), before)
    return total
