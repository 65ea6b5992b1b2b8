"""Products that read windows of what an earlier launch of a chain made, as a convolution of more than one pixel does.

There an element's place along one axis depends on a row of the product and on its index along K. Rows of a product lie in time and
K along lanes, so that no lanes have it: such values would be made element by element.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilefw_spatial.arrange.normal import NormalTarget, Reindex, operands
from tilefw_spatial.graph import Axis, Dot, Elementwise, Value
from tilefw_spatial.postorder import postorder


def multiplies_windows(targets: Sequence[NormalTarget]) -> bool:
    """Whether some product of stores in normal form does."""
    values = postorder((target.value for target in targets), lambda value: operands(value.op))
    return any(
        _is_window(reindex, frozenset(value.op.contracted))
        for value in values if isinstance(value.op, Dot) for part in (value.op.a, value.op.b) for reindex in _reindexings(part)
    )


def _reindexings(value: Value) -> Iterator[Reindex]:
    """Those between a product's operand and what is made before it; those of inputs are accesses of theirs."""
    seen, pending = set[Value](), [value]
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        if isinstance(current.op, Reindex):
            yield current.op
        if isinstance(current.op, Reindex | Elementwise):
            pending += operands(current.op)


def _is_window(op: Reindex, contracted: frozenset[Axis]) -> bool:
    return any(0 < len(contracted.intersection(index.axes)) < len(set(index.axes)) for index in op.reindexing.values())
