"""Products of one tensor whose results meet element by element, as a gate and what it lets through: one kernel computes both.

Each has a sum of its own there, and what is computed of the two is in the kernel: neither is in memory. Otherwise they would be
merged to one product (`siblings`), whose result is in memory.
"""

from __future__ import annotations

from xdsl.ir import Operation

from tilefw.graph.dialect.combining_ops import ContractOp
from tilefw.graph.dialect.pointwise_ops import MapOp


def partner_of(op: ContractOp) -> ContractOp | None:
    """The one later product that reads what a product reads on the left, as it does, and meets it; None where there is none, or
    more."""
    others = {use.operation for use in op.left.uses if use.operation is not op}
    found = [one for one in others if isinstance(one, ContractOp) and _alike(op, one) and are_paired(op, one)]
    return found[0] if len(found) == 1 and op.is_before_in_block(found[0]) else None


def _alike(op: ContractOp, other: ContractOp) -> bool:
    facts = [(one.left, one.left_map, one.right_map, one.sizes, one.right.type, one.result.type) for one in (op, other)]
    return facts[0] == facts[1]


def are_paired(op: ContractOp, other: ContractOp) -> bool:
    """Whether all that is computed of either result is computed of each element, and meets the other's before it goes elsewhere."""
    regions = [_maps_behind(one) for one in (op, other)]
    both = regions[0] & regions[1]
    apart = maps_behind_pair(op, other) - both
    first: list[Operation] = [op, other, *apart]
    readers = {use.operation for one in first for result in one.results for use in result.uses}
    return bool(both) and all(reader in apart or reader in both for reader in readers)


def maps_behind_pair(op: ContractOp, other: ContractOp) -> set[Operation]:
    """All that is computed of each element of two products."""
    return _maps_behind(op) | _maps_behind(other)


def _maps_behind(op: ContractOp) -> set[Operation]:
    found: set[Operation] = set()
    work: list[Operation] = [op]
    while work:
        for use in (use for result in work.pop().results for use in result.uses):
            if isinstance(use.operation, MapOp) and use.operation not in found:
                found.add(use.operation)
                work.append(use.operation)
    return found
