"""Loops that do nothing but make one atomic access until it finds what they wait for, as locks and flags have them."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.scf import ConditionOp, WhileOp
from xdsl.ir import SSAValue

from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.atomic_ops import AtomicOp
from tilefw.tile.dialect.elementwise_op import ElementwiseOp

_EXCHANGED = {"lts": "gts", "gts": "lts", "les": "ges", "ges": "les", "ltu": "gtu", "gtu": "ltu", "leu": "geu", "geu": "leu"}
_COMPARISONS = frozenset({"eqi", "nei", *_EXCHANGED})


@dataclass(frozen=True, slots=True)
class AwaitedAccess:
    """The access, made again as long as the comparison `row` of what it found with `awaited` holds."""

    access: AtomicOp
    row: str
    awaited: SSAValue
    comparison: ElementwiseOp


def spins(op: WhileOp) -> AwaitedAccess | None:
    """What a loop waits for, where it carries nothing and does nothing else."""
    before, after = op.before_region.block, op.after_region.block
    condition = before.last_op
    assert isinstance(condition, ConditionOp)
    if op.results or before.args or after.first_op is not after.last_op:
        return None
    comparison = condition.condition.owner
    found = [inner for inner in before.ops if isinstance(inner, AtomicOp)]
    pure = (ElementwiseOp, ops.ConstantOp, ops.AddPtrOp, ConditionOp)
    if len(found) != 1 or any(not isinstance(inner, pure) for inner in before.ops if inner is not found[0]):
        return None
    if not isinstance(comparison, ElementwiseOp):
        return None
    access, row = found[0], comparison.row.name
    if row not in _COMPARISONS or types.is_tile(access.value.type) or access.mask is not None:
        return None
    if any(len(list(value.uses)) != 1 for value in (access.results[0], condition.condition)):
        return None
    first, second = comparison.operands
    old = access.results[0]
    if old is second:
        first, second, row = second, first, _EXCHANGED.get(row, row)
    return None if first is not old or second is old else AwaitedAccess(access, row, second, comparison)
