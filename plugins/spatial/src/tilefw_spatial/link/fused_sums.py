"""Sums of one launch that take a product unrounded: `x · y + z` as one value of the graph.

Vector instructions are contracted region by region, and a linked program and its twin, which stores more, may have other regions.
Both are to round alike, and a product that an earlier launch stored is rounded: so it is decided here, launch by launch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tilefw_spatial.graph import Elementwise, Graph, Store, Value, operands_of

_SUMS = ("addf", "subf")


def fuse_sums(stores: Sequence[Store]) -> None:
    """Turn sums of fp32 of which one operand is a product that nothing else reads into one step each."""
    values = Graph(list(stores)).values()
    uses = Counter(part for value in values for part in operands_of(value.op))
    uses.update(store.value for store in stores)
    for value in values:
        if isinstance(value.op, Elementwise) and value.op.row in _SUMS and value.dtype == "fp32":
            value.op = _fused(value, value.op, uses)


def _fused(value: Value, total: Elementwise, uses: Counter[Value]) -> Elementwise:
    for number, product in enumerate(total.operands):
        op = product.op
        whole = set(product.axes) == set(value.axes)
        if not isinstance(op, Elementwise) or op.row != "mulf" or uses[product] > 1 or not whole:
            continue
        x, y = op.operands
        z = total.operands[1 - number]
        if total.row == "subf":
            x, z = (x, _negated(z)) if number == 0 else (_negated(x), z)
        return Elementwise("fma", (x, y, z), fusion=False)
    return total


def _negated(value: Value) -> Value:
    return Value(Elementwise("negf", (value,), fusion=False), value.axes, value.dtype, value.place)
