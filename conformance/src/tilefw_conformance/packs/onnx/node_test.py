"""One node test of ONNX: a node with the test's inputs and expected outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from tilefw_onnx.lowerings.node import Node, NodeTensor, attributes_of, type_name


@dataclass(frozen=True, slots=True)
class NodeTest(Node):
    """A node whose tensors have the test's data. `strict`: its element types are those of the strict subset."""

    strict: bool = True


def node_test(name: str, model: onnx.ModelProto, inputs: list[Any], outputs: list[Any], strict: bool) -> NodeTest:
    """The single node of `model`; `inputs` and `outputs` are the test's data, in the graph's order."""
    graph = model.graph
    proto = graph.node[0]
    opset = next((o.version for o in model.opset_import if o.domain == proto.domain), 1)
    tensors = {
        info.name: _tensor(info, value)
        for info, value in [*zip(graph.input, inputs, strict=True), *zip(graph.output, outputs, strict=True)]
    }
    return NodeTest(
        name, proto.op_type, attributes_of(proto, opset),
        tuple(tensors[n] if n else None for n in proto.input), tuple(tensors[n] if n else None for n in proto.output),
        strict,
    )


def _tensor(info: onnx.ValueInfoProto, value: Any) -> NodeTensor:
    array = np.asarray(numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value)
    return NodeTensor(info.name, type_name(info.type.tensor_type.elem_type), array.shape, array)
