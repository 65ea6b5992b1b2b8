"""Rules of canonical form for structural ops, reductions and dots: what undoes each other goes, what can be one op becomes one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.ir import Operation, OpResult, SSAValue

from tilefw.passes.fold import constant_of
from tilefw.passes.lone_index import pick_element
from tilefw.passes.rewriting import insert, replace
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.elementwise_op import ElementwiseOp
from tilefw.tile.dialect.structural_op import StructuralOp
from tilefw.tile.elementwise import ROWS


def structural(op: StructuralOp) -> bool:
    """What the op's traits say is there already, or is one op with the one before; moved splats and constants are made anew."""
    same = op.same_values()
    if same is not None:
        replace(op, *same)
        return True
    merged = None if op.attributes else op.merged()
    if merged is not None:
        replace(op, insert(merged, op))
        return True
    return _of_equal_elements(op)


def _of_equal_elements(op: StructuralOp) -> bool:
    """Whatever is moved of equal elements is a splat, or a constant, of the results' types."""
    first = op._operands[0]
    splat = first.owner
    result = op.results[0].type
    if isinstance(splat, ops.SplatOp):
        if not all(isinstance(o.owner, ops.SplatOp) and o.owner.source is splat.source for o in op._operands):
            return False
        if result == first.type:
            replace(op, *[first] * len(op.results))
            return True
        if not types.is_tile(result):
            replace(op, *[splat.source] * len(op.results))
            return True
        if op.attributes:
            return False
        made = insert(ops.SplatOp(splat.source, result), op)
    elif len(op.results) > 1 and not op.attributes and (literal := constant_of(first)) is not None and len(op._operands) == 1:
        made = insert(ops.ConstantOp(literal, result), op)  # of one result the folder makes it
    else:
        return False
    replace(op, *[made] * len(op.results))
    return True


# Rows that give x for x and x: in a reduction of equal elements any number of them does.
_IDEMPOTENT = frozenset(name for name, row in ROWS.items() if row.same_operands == "x")


def _scan(op: ops.ScanOp) -> bool:
    """The first element is its own result, and so are equal elements under an idempotent row."""
    alike = op.row in _IDEMPOTENT and (isinstance(op._operands[0].owner, ops.SplatOp) or constant_of(op._operands[0]) is not None)
    if op.attributes or not (op.extent == 1 or alike):
        return False
    replace(op, *op._operands)
    return True


def _reduce(op: ops.ReduceOp) -> bool:
    """An axis of one element holds its own result; of equal elements an idempotent row leaves one; one index alone is a pick."""
    if op.attributes:
        return False
    if op.extent == 1:
        replace(op, *[insert(ops.ReshapeOp(v, r.type), op) for v, r in zip(op._operands, op.results, strict=True)])
        return True
    return _reduce_equal(op) or pick_element(op)


def _reduce_equal(op: ops.ReduceOp) -> bool:
    if op.row not in _IDEMPOTENT:
        return False
    type = op.results[0].type
    if (literal := constant_of(op._operands[0])) is not None:
        replace(op, insert(ops.ConstantOp(literal, type), op))
        return True
    inner = op._operands[0].owner
    if not isinstance(inner, ops.SplatOp):
        return False
    replace(op, insert(ops.SplatOp(inner.source, type), op) if types.is_tile(type) else inner.source)
    return True


def add_into_dot(op: ElementwiseOp) -> bool:
    """x + (a · b + 0) is a · b + x, as matrix units add for nothing: `acc += dot(a, b)` accumulates in place.

    Not where the unit may keep its sums short: what is added outside of it is added in full.
    """
    if op.row.name not in ("addf", "addi") or op.attributes:
        return False
    for product, other in (op._operands, op._operands[::-1]):
        if _is_lone_product(product, op):
            dot: Any = product.owner
            replace(op, insert(dot.onto(other), op))
            return True
    return False


def _is_lone_product(value: SSAValue, user: Operation) -> bool:
    """Whether the value is a dot onto zeros, in the same block, that nothing else uses."""
    if not isinstance(value, OpResult) or not isinstance(value.op, ops.DotOp):
        return False
    uses = iter(value.uses)
    next(uses)
    alone = next(uses, None) is None
    plain = not value.op.attributes and not value.op.imprecise
    return alone and plain and value.op.parent is user.parent and constant_of(value.op.acc) == 0


RULES: dict[type[Operation], Callable[[Any], bool]] = {
    ops.ReduceOp: _reduce,
    ops.ScanOp: _scan,
}
