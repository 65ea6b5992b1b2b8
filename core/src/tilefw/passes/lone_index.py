"""Reductions in which one index of the axis takes part: `sum(where(i == c, x, 0))` is the element of `x` at c.

Kernels pick a column of a tile this way, and put one back by `x = where(i == c, column, x)`; both are most often unrolled. Seen
through what was put back, a column is a value that is there already, and only columns of loads are left to be picked. Those are
lowered by the registers that can hold index c alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Attribute, Operation, SSAValue

from tilefw.passes.fold import constant_of
from tilefw.passes.rewriting import insert, replace
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.elementwise_op import ElementwiseOp, build
from tilefw.tile.elementwise import ROWS


@dataclass(frozen=True, slots=True)
class LoneIndex:
    """A mask holds at `index` of an axis and at no other; where it is not `exact`, it need not hold there either."""

    index: int
    exact: bool


def lone_index(mask: SSAValue, axis: int) -> LoneIndex | None:
    """The one index along `axis` at which a mask can hold, where that can be seen; None for any other mask."""
    op = mask.owner
    if isinstance(op, ops.BroadcastOp | ops.ExpandDimsOp):
        inner = _inner_axis(op, axis)
        return None if inner is None else lone_index(op.source, inner)
    if not isinstance(op, ElementwiseOp):
        return None
    if op.row.name == "andi":
        sides = (lone_index(operand, axis) for operand in op._operands)
        found = next((side for side in sides if side is not None), None)
        return None if found is None else LoneIndex(found.index, exact=False)
    if op.row.name != "eqi":
        return None
    start, literal = _first_index(op._operands[0], axis), constant_of(op._operands[1])
    if start is None or literal is None:
        return None
    index = int(literal) - start
    return LoneIndex(index, exact=True) if 0 <= index < types.shape_of(mask.type)[axis] else None


def _inner_axis(op: ops.BroadcastOp | ops.ExpandDimsOp, axis: int) -> int | None:
    """The operand's dim that is `axis` of the result; None where the operand has the same at every index of it."""
    if isinstance(op, ops.ExpandDimsOp):
        return None if op.axis == axis else axis - (op.axis < axis)
    return None if types.shape_of(op.source.type)[axis] == 1 else axis


def _first_index(value: SSAValue, axis: int) -> int | None:
    """What a tile of the numbers start, start + 1, … along `axis` begins with."""
    op = value.owner
    if isinstance(op, ops.IotaOp):
        return op.start
    if isinstance(op, ops.BroadcastOp | ops.ExpandDimsOp):
        inner = _inner_axis(op, axis)
        return None if inner is None else _first_index(op.source, inner)
    return _first_index(op._operands[0], axis) if isinstance(op, ElementwiseOp) and op.row.name == "exts" else None


@dataclass(frozen=True, slots=True)
class LoneReduction:
    """A reduction of `select(mask, x, neutral)` whose mask holds at one index at most."""

    op: ops.ReduceOp
    row: str
    at: LoneIndex
    mask: SSAValue
    x: SSAValue
    neutral: SSAValue


def lone_reduction(op: ops.ReduceOp) -> LoneReduction | None:
    """The reduction, where one index alone takes part in it: all others have what leaves a result as it is, however often."""
    row = op.row
    select = op._operands[0].owner
    if row is None or not isinstance(select, ElementwiseOp) or select.row.name != "select":
        return None
    mask, x, neutral = select._operands
    literal = constant_of(neutral)
    rule = ROWS[row]
    if literal is None or not (rule.same_operands == "x" or (rule.commutative and literal == rule.identity)):
        return None
    at = lone_index(mask, op.axis)
    return None if at is None else LoneReduction(op, row, at, mask, x, neutral)


def pick_element(op: ops.ReduceOp) -> bool:
    """Rule of canonical form: such a reduction looks through selects to what is at its index."""
    found = None if op.attributes else lone_reduction(op)
    if found is None:
        return False
    updates, x = _seen_through(found)
    inner = _element(x, found) if found.at.exact else None
    if x is found.x and inner is None:
        return False
    value = _combined(inner, found) if inner is not None else _reduced(x, found)
    for condition, updated in reversed(updates):
        value = insert(build("select", condition, _combined(updated, found), value), op)
    replace(op, value)
    return True


def _seen_through(found: LoneReduction) -> tuple[list[tuple[SSAValue, SSAValue]], SSAValue]:
    """`x` without the selects that are decided at the index, or give there a value that is at hand: those conditions and values."""
    updates: list[tuple[SSAValue, SSAValue]] = []
    x = found.x
    while isinstance(x.owner, ElementwiseOp) and x.owner.row.name == "select":
        mask, new, old = x.owner._operands
        at = lone_index(mask, found.op.axis)
        if at is None:
            break
        if at.index != found.at.index:
            x = old
        elif at.exact:
            x = new
        elif found.at.exact and _at_hand(mask, found.op.axis) and _at_hand(new, found.op.axis):
            condition, updated = _element(mask, found), _element(new, found)
            assert condition is not None and updated is not None
            updates.append((condition, updated))
            x = old
        else:
            break
    return updates, x


def _combined(value: SSAValue, found: LoneReduction) -> SSAValue:
    """The element beside all others: -0 and zeros are +0."""
    literal = constant_of(found.neutral)
    assert literal is not None
    neutral = insert(ops.ConstantOp(literal, value.type), found.op)
    return insert(build(found.row, value, neutral), found.op)


def _reduced(x: SSAValue, found: LoneReduction) -> SSAValue:
    op = found.op
    masked = insert(build("select", found.mask, x, found.neutral), op)
    made = op.__class__([masked], op.axis, op.detach_region(op.regions[0]))
    return insert(made, op)


def _at_hand(value: SSAValue, axis: int) -> bool:
    """Whether a tile's element at any index of the axis needs no other lane: it is the same at all, or a matter of the index."""
    op = value.owner
    if isinstance(op, ops.SplatOp | ops.ConstantOp):
        return True
    if isinstance(op, ops.BroadcastOp | ops.ExpandDimsOp):
        inner = _inner_axis(op, axis)
        return inner is None or _at_hand(op.source, inner)
    if not isinstance(op, ElementwiseOp):
        return False
    if op.row.name == "andi":
        return all(_at_hand(operand, axis) for operand in op._operands)
    return op.row.name == "eqi" and lone_index(value, axis) is not None


def _element(value: SSAValue, found: LoneReduction) -> SSAValue | None:
    """The tile without the axis at the index; None where it is not at hand."""
    return _at(value, found.op.axis, found) if _at_hand(value, found.op.axis) else None


def _at(value: SSAValue, axis: int, found: LoneReduction) -> SSAValue:
    op = value.owner
    shape = types.shape_of(value.type)
    type = types.tile((*shape[:axis], *shape[axis + 1 :]), types.element_of(value.type))
    before = found.op
    if isinstance(op, ops.ConstantOp):
        return insert(ops.ConstantOp(op.value, type), before)
    if isinstance(op, ops.SplatOp):
        return insert(ops.SplatOp(op.source, type), before) if types.is_tile(type) else op.source
    if isinstance(op, ops.BroadcastOp | ops.ExpandDimsOp):
        return _moved_at(op, axis, type, found)
    assert isinstance(op, ElementwiseOp)
    if op.row.name == "andi":
        return insert(build("andi", *(_at(operand, axis, found) for operand in op._operands)), before)
    at = lone_index(value, axis)
    return insert(ops.ConstantOp(int(at == found.at), type), before)


def _moved_at(op: ops.BroadcastOp | ops.ExpandDimsOp, axis: int, type: Attribute, found: LoneReduction) -> SSAValue:
    inner = _inner_axis(op, axis)
    if isinstance(op, ops.ExpandDimsOp):
        if inner is None:
            return op.source
        return _as(_at(op.source, inner, found), ops.ReshapeOp, type, found.op)
    if inner is not None:
        return _as(_at(op.source, inner, found), ops.BroadcastOp, type, found.op)
    shape = types.shape_of(op.source.type)
    dropped = types.tile((*shape[:axis], *shape[axis + 1 :]), types.element_of(op.source.type))
    return _as(_as(op.source, ops.ReshapeOp, dropped, found.op), ops.BroadcastOp, type, found.op)


def _as(value: SSAValue, kind: type[ops.ReshapeOp] | type[ops.BroadcastOp], type: Attribute, before: Operation) -> SSAValue:
    return value if value.type == type else insert(kind(value, type), before)
