"""TopK of many elements, or of rows that no tile holds: elements in order, of which the first are taken.

A few of a short row are found one after the other by a kernel of their own (`lowerings/selection.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from tilefw.graph.builder import GraphValue, ModuleBuilder
from tilefw.graph.ordering import order_key, places_in_order, taken_along
from tilefw_onnx.decompositions import is_served
from tilefw_onnx.lowerings.node import Node
from tilefw_onnx.lowerings.places import axis_of

_FEW = 16  # elements of a row, each of which takes a walk through it
_SHORT = 4096  # elements that such a walk has in one tile


def is_ordered(node: Node) -> bool:
    """Whether a node is a TopK that takes its elements from rows in order."""
    if node.operator != "TopK" or not is_served(node) or node.input(1).array is None:
        return False
    (count,) = node.input(1).integers()
    shape = node.input(0).shape
    return count > _FEW or shape[axis_of(node.attributes["axis"], len(shape))] > _SHORT


def first_in_order(b: ModuleBuilder, node: Node, source: GraphValue) -> Sequence[GraphValue]:
    """The first elements and their places. NaN is above all numbers, and equal elements stay in their order."""
    kind, (count,) = node.input(0).dtype, node.input(1).integers()
    axis = axis_of(node.attributes["axis"], len(node.input(0).shape))
    key = order_key(b, source, kind, falling=bool(node.attributes["largest"]))
    places = places_in_order(b, [key], axis, count)
    return taken_along(b, source, places, axis), b.cast(places, "int64")
