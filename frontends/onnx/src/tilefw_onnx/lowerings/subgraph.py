"""A graph attribute as an expression of a kernel: nodes on the tile become formulas, those on constants are computed here.

What graphs compute of positions (ranges, reshaped and subtracted) is an affine function of a tile's coordinates, and is written
as one; it is never a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from tilefw.api.errors import UnsupportedError
from tilefw_onnx.lowerings.elementwise import FORMULAS, Formula, constants
from tilefw_onnx.lowerings.node import Node, NodeTensor, attributes_of

_COORDINATES = ("batch", "head", "query", "key")
_OPSET = 26


@dataclass(frozen=True, slots=True)
class Tile:
    """A value that only the kernel knows, as the text of its expression."""

    text: str


Known = np.ndarray | Tile


def written(graph: onnx.GraphProto, tile: str, shape: tuple[int, ...]) -> str:
    """The graph's one output, given `tile`, whose elements have the coordinates batch, head, query and key of `shape`."""
    known: dict[str, Known] = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
    known[graph.input[0].name] = Tile(tile)
    for node in graph.node:
        known[node.output[0]] = _value(node, [known[name] for name in node.input], shape)
    return _text(known[graph.output[0].name], shape)


def _value(node: onnx.NodeProto, operands: list[Known], shape: tuple[int, ...]) -> Known:
    if node.op_type == "Shape":
        return np.array(shape, np.int64)
    arrays = [operand for operand in operands if isinstance(operand, np.ndarray)]
    if len(arrays) == len(operands):
        (found,) = ReferenceEvaluator(node).run(None, dict(zip(node.input, arrays, strict=True)))
        if _affine(np.asarray(found), shape) is not None or np.asarray(found).ndim < len(shape):
            return np.asarray(found)
    formula = FORMULAS.get(node.op_type)
    if formula is None:
        note = "its nodes may be those of the table of elementwise operators, and any on constants"
        raise UnsupportedError(f"a graph attribute with a node {node.op_type}", code="TFW0992", note=note)
    described = _described(node, operands)
    chosen = formula if isinstance(formula, Formula) else formula(described)
    texts = [_text(operand, shape) for operand in operands]
    return Tile(f"({chosen.text.format(*texts, bits=32, **constants(described))})")


def _described(node: onnx.NodeProto, operands: list[Known]) -> Node:
    """The node as the table's formulas look at it: they ask for attributes and element types."""
    inputs = tuple(
        NodeTensor(name, "FLOAT" if isinstance(value, Tile) or value.dtype.kind == "f" else "INT64", (0,))
        for name, value in zip(node.input, operands, strict=True)
    )
    return Node(node.name, node.op_type, attributes_of(node, _OPSET), inputs, ())


def _text(value: Known, shape: tuple[int, ...]) -> str:
    if isinstance(value, Tile):
        return value.text
    affine = _affine(value, shape)
    if affine is None:
        note = "a kernel has constants that are an affine function of the coordinates"
        raise UnsupportedError("a graph attribute with a table of constants", code="TFW0992", note=note)
    start, steps = affine
    number = "{}" if value.dtype.kind in "iu" else "{}.to(tl.float32)"
    terms = [f"{number.format(name)} * {step!r}" for name, step in steps.items()]
    first = repr(start) if abs(start) < float("inf") else f"float({str(start)!r})"
    return f"({' + '.join([*terms, first])})"


def _affine(value: np.ndarray, shape: tuple[int, ...]) -> tuple[float, Mapping[str, float]] | None:
    """The first element and the step along each coordinate, if these give all elements."""
    if value.dtype.kind not in "iuf" or value.ndim > len(shape):
        return None
    whole = value.reshape((1,) * (len(shape) - value.ndim) + value.shape)
    start = whole.reshape(-1)[0]
    made = np.full(whole.shape, start)
    steps: dict[str, float] = {}
    for axis, extent in enumerate(whole.shape):
        if extent > 1:
            step = np.moveaxis(whole, axis, 0)[1].reshape(-1)[0] - start
            line = (np.arange(extent) * step).astype(whole.dtype)
            made = made + line.reshape([-1 if a == axis else 1 for a in range(whole.ndim)])
            steps[_COORDINATES[axis]] = step.item()
    return (start.item(), steps) if np.array_equal(made, whole) else None
