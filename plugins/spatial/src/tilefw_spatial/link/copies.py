"""What a chain stores in two places, as a product and a later launch's copy of it: both are one sum, bit by bit.

A value that is wanted along different lanes is made twice. Two sums of the same elements in two orders may differ by rounding:
what is computed of them may show it, but no copy.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from tilefw_spatial.arrange.item import Item, reachable
from tilefw_spatial.arrange.matrix import parts_of
from tilefw_spatial.arrange.normal import Reindex, Relayout
from tilefw_spatial.graph import Dot, Reduce, ReductionKind, Value
from tilefw_spatial.machine import Machine

_ROUNDED = (ReductionKind.ADDF, ReductionKind.MULF)


def copies_differ(stored: Sequence[Item], machine: Machine) -> bool:
    """Whether some value and a copy of it, both of them stored, may be added up in two orders."""
    firsts: dict[Value, Item] = {}
    for item in stored:
        while isinstance(item.value.op, Reindex | Relayout):
            (item,) = item.operands
        first = firsts.setdefault(item.value, item)
        if first is not item and _orders(first, machine) != _orders(item, machine):
            return True
    return False


def _orders(item: Item, machine: Machine) -> set[Hashable]:
    """What tells the order of all sums that an item is made of: a product's of several parts of K depends on its tiles."""
    found: set[Hashable] = set()
    for one in reachable([item]):
        op = one.value.op
        if isinstance(op, Dot) and one.value.dtype.startswith("fp") and parts_of(one, machine) > 1:
            found.add(one)
        if isinstance(op, Reduce) and op.kind in _ROUNDED:
            found.add((one.value, one.across_lanes))
    return found
