"""The nodes that stand for one node, being written: `w("Add", a, b)` gives the name of the sum, arrays are constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper

from tilefw_onnx.lowerings.node import Node


@dataclass(slots=True)
class NodeWriter:
    """What is known of a node that is written out, and the nodes that stand for it so far. `node` has types, shapes and constants,
    `proto` the names of the model."""

    node: Node
    proto: onnx.NodeProto
    label: str
    opset: int
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)

    def __call__(self, operator: str, *inputs: str | np.ndarray, gives: str = "", **attributes: Any) -> str:
        """The name of what a node gives that reads names or constants; `gives` is the name where it matters."""
        return self._node(operator, inputs, [gives or self._fresh()], attributes)[0]

    def split(self, source: str, axis: int, sizes: Sequence[int]) -> list[str]:
        """Parts of these sizes one behind the other."""
        names = [f"{self._fresh()}.{place}" for place in range(len(sizes))]
        return self._node("Split", [source, np.array(sizes, np.int64)], names, {"axis": axis})

    def _node(
        self, operator: str, inputs: Sequence[str | np.ndarray], names: list[str], attributes: Mapping[str, Any]
    ) -> list[str]:
        read = [one if isinstance(one, str) else self.constant(one) for one in inputs]
        self.nodes.append(helper.make_node(operator, read, names, name=f"{operator} {len(self.nodes)}", **attributes))
        return names

    def constant(self, array: np.ndarray) -> str:
        """The name of a constant."""
        name = f"{self.label}: constant {len(self.constants)}"
        self.constants[name] = array
        return name

    def number(self, value: float, place: int = 0) -> np.ndarray:
        """A number of the element type that an input has."""
        kind = onnx.TensorProto.DataType.Value(self.node.input(place).onnx_type)
        return np.array(value, helper.tensor_dtype_to_np_dtype(kind))

    def input(self, place: int) -> str:
        """The name of an input; empty where it is left out."""
        return self.proto.input[place] if place < len(self.proto.input) else ""

    def output(self, place: int) -> str:
        """The name of an output; empty where it is left out."""
        return self.proto.output[place] if place < len(self.proto.output) else ""

    def integers(self, *values: int) -> str:
        """The name of a vector of int64."""
        return self.constant(np.array(values, np.int64))

    def part(self, source: str, axis: int, begin: int, end: int) -> str:
        """The elements of a dim from one place to another."""
        return self("Slice", source, self.integers(begin), self.integers(end), self.integers(axis))

    def _fresh(self) -> str:
        return f"{self.label}: result {len(self.nodes)}"
