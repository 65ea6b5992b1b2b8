"""Canonical form: folds and identities of the table, splats moved outward, casts combined, masks and branches decided.

One forward walk, which goes back to what stands where an op was changed: no pattern driver, whose cost an op is several times the
folding. Rules look at an op and at what its operands are made of, all of which stands before it and is settled by then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from tilefw.api.errors import InternalError
from tilefw.passes import shape_rules
from tilefw.passes.dce import erase_dead
from tilefw.passes.fold import constant_of, fold
from tilefw.passes.rewriting import erase, exchange, insert, replace
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.atomic_ops import ATOMIC_OPS, AtomicOp
from tilefw.tile.dialect.elementwise_op import ElementwiseOp, build
from tilefw.tile.dialect.memory_ops import LoadOp, StoreOp
from tilefw.tile.dialect.structural_op import StructuralOp
from tilefw.tile.nested_ops import nested_ops
from tilefw.tile.text.source_location import place_of_location

# Changes that a walk may make for each op that it begins with. Kernels take less than one (those of our tests 0.3 at most), rules
# that undo each other, or an op whose `merged` gives its equal, any number.
_CHANGES = 16


class CanonicalizePass(ModulePass):
    """Folds constants, simplifies ops, and drops what became dead."""

    name = "canonicalize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        erase_dead(op)  # which would be a use of what it reads, and rules ask whether there are others
        _Canonicalization(_CHANGES * len(nested_ops(op))).below(op)
        erase_dead(op)


class _Canonicalization:
    """The walk over a module, which makes at most `left` changes. Raises InternalError for rules that would not end."""

    def __init__(self, left: int) -> None:
        self.left = left

    def below(self, root: Operation) -> None:
        for region in root.regions:
            for block in region.blocks:
                self._block(block)

    def _block(self, block: Block) -> None:
        op = block.first_op
        while op is not None:
            before = op.prev_op
            if op.regions:
                self.below(op)
            if not _simplify(op):
                op = op.next_op
                continue
            self._count(op)
            op = block.first_op if before is None else before.next_op

    def _count(self, op: Operation) -> None:
        """Take note that `op` was changed."""
        self.left -= 1
        if self.left < 0:
            place = place_of_location(op.location, with_text=False)
            where = "" if place is None else f" at {place.file}:{place.line}"
            raise InternalError(f"canonicalisation does not end: {op.name}{where} is changed again and again")


def _simplify(op: Operation) -> bool:
    if len(op.results) == 1 and not op.regions:
        found = fold(op)
        if found is not None:
            replace(op, found if isinstance(found, SSAValue) else _constant_before(op, found))
            return True
    if isinstance(op, ElementwiseOp):
        return _row_rule(op)
    if isinstance(op, StructuralOp):
        return shape_rules.structural(op)
    rule = _RULES.get(op.__class__)
    return rule is not None and rule(op)


def _constant_before(op: Operation, literal: int | float) -> SSAValue:
    return insert(ops.ConstantOp(literal, op.results[0].type), op)


# Rules that make ops ---------------------------------------------------------------------------------------------------


def _row_rule(op: ElementwiseOp) -> bool:
    return _scalar_of_splats(op) or _combine_casts(op) or _constant_to_the_right(op) or shape_rules.add_into_dot(op)


def _scalar_of_splats(op: ElementwiseOp) -> bool:
    """An op on splats is a splat of the op: uniform work is done once, and shows as uniform."""
    if not types.is_tile(op.results[0].type) or op.attributes:
        return False
    if not all(isinstance(operand.owner, ops.SplatOp | ops.ConstantOp) for operand in op._operands):
        return False  # before a constant is made that nobody would read
    scalars = [_scalar_before(op, operand) for operand in op._operands]
    result = types.element_of(op.results[0].type)
    made = op.__class__(*scalars, result=result if op.row.is_cast else None, rounding=op.rounding)
    replace(op, insert(ops.SplatOp(insert(made, op), op.results[0].type), op))
    return True


def _scalar_before(op: Operation, operand: SSAValue) -> SSAValue:
    """The element that is everywhere in a splat or a constant."""
    owner = operand.owner
    if isinstance(owner, ops.SplatOp):
        return owner.source
    assert isinstance(owner, ops.ConstantOp)
    return insert(ops.ConstantOp(owner.value, types.element_of(operand.type)), op)


def _constant_to_the_right(op: ElementwiseOp) -> bool:
    if not op.row.commutative or constant_of(op._operands[0]) is None or constant_of(op._operands[1]) is not None:
        return False
    op.operands = op._operands[::-1]
    return True


# What two casts in a row are: (inner, outer) to the one cast that does both.
_CAST_PAIRS = {("exts", "exts"): "exts", ("extu", "extu"): "extu", ("extu", "exts"): "extu", ("trunci", "trunci"): "trunci"}


def _combine_casts(op: ElementwiseOp) -> bool:
    if not op.row.is_cast:
        return False
    inner = op._operands[0].owner
    if not isinstance(inner, ElementwiseOp):
        return False
    source, result = inner._operands[0], op.results[0]
    undone = (inner.row.name, op.row.name) in (("exts", "trunci"), ("extu", "trunci"), ("bitcast", "bitcast"))
    if undone and source.type == result.type:
        replace(op, source)
        return True
    combined = _CAST_PAIRS.get((inner.row.name, op.row.name))
    if combined is None or op.attributes:
        return False
    replace(op, insert(build(combined, source, result=result.type), op))
    return True


def _decided_load(op: LoadOp) -> bool:
    if op.mask is None or (known := constant_of(op.mask)) is None:
        return False
    if known:
        exchange(op, LoadOp(op.pointer, op.offsets, **op.hints))
        return True
    if op.other is not None and not op.volatile:
        replace(op, op.other)
        return True
    return False


def _decided_store(op: StoreOp) -> bool:
    if op.mask is None or (known := constant_of(op.mask)) is None:
        return False
    if known:
        exchange(op, StoreOp(op.pointer, op.value, op.offsets, **op.hints))
    else:
        erase(op)
    return True


def _decided_atomic(op: AtomicOp) -> bool:
    """A mask that is true everywhere goes; where it is false everywhere nothing is accessed, and what is read is undefined."""
    if op.mask is None or (known := constant_of(op.mask)) is None:
        return False
    if known:
        exchange(op, op.rebuilt(op.pointer, op.offsets, None))
        return True
    if op.result_is_used:
        return False
    erase(op)
    return True


def _decided_if(op: scf.IfOp) -> bool:
    known = constant_of(op.cond)
    if known is None:
        return False
    region = op.true_region if known else op.false_region
    _inline(op, region.blocks.first)
    return True


def _inline(op: Operation, block: Block | None) -> None:
    """Put a block in place of the op whose results its terminator gives."""
    values: list[SSAValue] = []
    if block is not None:
        last = block.last_op
        assert last is not None and op.parent is not None
        values = list(last.operands)
        erase(last)
        for inner in list(block.ops):
            inner.detach()
            op.parent.insert_op_before(inner, op)
    replace(op, *values)


def _decided_for(op: scf.ForOp) -> bool:
    lower, upper, step = (constant_of(v) for v in (op.lb, op.ub, op.step))
    if lower is None or upper is None or step is None or int(step) <= 0:
        return _invariant_carried(op)
    trips = max(0, -((int(lower) - int(upper)) // int(step)))
    if trips > 1:
        return _invariant_carried(op)
    if trips == 0:
        replace(op, *op.iter_args)
        return True
    block = op.body.block
    for argument, value in zip(block.args, (op.lb, *op.iter_args), strict=True):
        argument.replace_all_uses_with(value)
    _inline(op, block)
    return True


def _invariant_carried(op: scf.ForOp) -> bool:
    """A carried value that every round passes on unchanged is its initial value."""
    block = op.body.block
    last = block.last_op
    assert last is not None
    changed = False
    for index, (argument, initial) in enumerate(zip(block.args[1:], op.iter_args, strict=True)):
        if last.operands[index] is argument or last.operands[index] is initial:
            result: OpResult = op.results[index]
            changed |= argument.first_use is not None and any(use.operation is not last for use in argument.uses)
            changed |= result.first_use is not None
            for use in [u for u in argument.uses if not (u.operation is last and u.index == index)]:
                use.operation.operands[use.index] = initial
            result.replace_all_uses_with(initial)
    return changed


_RULES: dict[type[Operation], Callable[[Any], bool]] = {
    **shape_rules.RULES,
    LoadOp: _decided_load,
    StoreOp: _decided_store,
    **dict.fromkeys(ATOMIC_OPS, _decided_atomic),
    scf.IfOp: _decided_if,
    scf.ForOp: _decided_for,
}
