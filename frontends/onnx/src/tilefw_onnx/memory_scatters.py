"""Scatters of many updates, which memory combines: each update goes to its element, in any order.

Of few updates each element looks for its own in a kernel (`lowerings/scatters.py`), which a chip without atomics can do too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from tilefw.api.dtypes import dtype
from tilefw.graph.builder import GraphValue, ModuleBuilder, shape_of
from tilefw.graph.index_maps import linear_map
from tilefw.graph.scattering import scattered
from tilefw_onnx.decompositions import Rule, Values, is_served
from tilefw_onnx.lowerings.node import Node
from tilefw_onnx.lowerings.places import axis_of
from tilefw_onnx.lowerings.scatters import require_targets

_FEW = 1024  # updates at which each element looks
_ROWS: Mapping[str, tuple[str | None, str | None]] = {  # of floats, of integers
    "none": (None, None), "add": ("addf", "addi"), "max": ("maxf", "maxs"), "min": ("minf", "mins"),
}


def scatter_rule(node: Node) -> Rule | None:
    """The rule of a scatter of many updates; None of any other node."""
    rule = _RULES.get(node.operator)
    if rule is None or not is_served(node) or node.attributes.get("reduction", "none") not in _ROWS:
        return None
    shape = node.input(1).shape
    seen = prod(shape[:-1]) if node.operator == "ScatterND" else shape[axis_of(node.attributes["axis"], len(shape))]
    return rule if seen > _FEW else None


def _elements(b: ModuleBuilder, node: Node, values: Values) -> GraphValue:
    """Along one axis the indices say where updates go."""
    rank = len(node.input(0).shape)
    axis = axis_of(node.attributes["axis"], rank)
    rows = [[int(k == d and k != axis) for d in range(rank)] for k in range(rank)]
    return _combined(b, node, values, [axis], [values[1]], rows)


def _tuples(b: ModuleBuilder, node: Node, values: Values) -> GraphValue:
    """Tuples of indices name parts; an update has the elements of one."""
    own, (*many, length), shape = shape_of(values[0]), shape_of(values[1]), shape_of(values[2])
    indices = []
    for number in range(length):
        one = b.slice(values[1], [*[0] * len(many), number], [*many, 1])
        indices.append(b.broadcast(b.reshape(one, [*many, *[1] * (len(own) - length)]), shape))
    rows = [[int(k >= length and d == len(many) + k - length) for d in range(len(shape))] for k in range(len(own))]
    return _combined(b, node, values, range(length), indices, rows)


def _combined(
    b: ModuleBuilder, node: Node, values: Values, axes: Sequence[int], indices: Sequence[GraphValue], rows: list[list[int]]
) -> GraphValue:
    """The updates at the places that index tensors give along the axes; negative ones count from the end."""
    require_targets(node)
    source, updates, kind = values[0], values[2], node.input(0).dtype
    own = shape_of(source)
    found = [
        b.cast(b.map("select", b.map("lts", one, 0), b.map("addi", one, own[dim]), one), "int32")
        for dim, one in zip(axes, indices, strict=True)
    ]
    row = _ROWS[node.attributes.get("reduction", "none")][not dtype(kind).is_float]
    map = linear_map(rows, [0] * len(own), len(shape_of(updates)))
    return scattered(b, source, updates, found, list(axes), map, kind, row, trusted=True)


_RULES: Mapping[str, Callable[[ModuleBuilder, Node, Values], GraphValue]] = {
    "ScatterElements": _elements, "Scatter": _elements, "ScatterND": _tuples,
}
