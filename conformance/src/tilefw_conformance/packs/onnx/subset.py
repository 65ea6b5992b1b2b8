"""Which of ONNX's node tests the pack has: the strict subset, by a rule over operators and element types.

Of the 1,884 node tests of onnx 1.23, 480 are expansions of others into several nodes; of the 1,404 single nodes the rule takes
739, of 115 operators. A case's operator must be one of the table. Its tensors must have element types that kernels of machine
learning compute with: 32- and 16-bit floats, 8- and 4-bit storage formats, int32 and narrower integers of 8 and 4 bits, bool.
64-bit integers may only be a side input of rank 0 or 1 (axes, a shape, indices): never the first input, never an output.

Tests of the same operators on any other element types that tilefw has (fp64, 16-bit and 64-bit integers, …) are there too, at the
level `extended`.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import onnx
from onnx.backend.test.loader import load_model_tests

from tilefw_conformance.packs.onnx.node_test import NodeTest, node_test
from tilefw_onnx.lowerings.node import ELEMENT_TYPES
from tilefw_onnx.lowerings.operators import OPERATORS

TYPES = frozenset({
    "FLOAT", "FLOAT16", "BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E5M2", "FLOAT8E4M3FNUZ", "FLOAT8E5M2FNUZ", "FLOAT8E8M0", "FLOAT4E2M1",
    "INT4", "UINT4", "INT8", "UINT8", "INT32", "BOOL",
})
SIDE_TYPE, SIDE_RANK = "INT64", 1


@cache
def nodes() -> dict[str, NodeTest]:
    """The pack's tests by their names without `test_`, in ONNX's order. Making the data takes some seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tests make infinities and NaN on purpose, and NumPy says so
        tests: list[Any] = [test for test in load_model_tests(kind="node") if "_expanded" not in test.name]
    return {node.name: node for node in (_node(test) for test in tests if _taken(test.model.graph))}


def _node(test: Any) -> NodeTest:
    ((inputs, outputs),) = test.data_sets
    return node_test(test.name.removeprefix("test_"), test.model, inputs, outputs, _strict(test.model.graph))


def _taken(graph: onnx.GraphProto) -> bool:
    if len(graph.node) != 1 or graph.node[0].op_type not in OPERATORS:
        return False
    return all(_type(one) in ELEMENT_TYPES for one in (*graph.input, *graph.output))


def _strict(graph: onnx.GraphProto) -> bool:
    inputs = all(_main(one) or (place > 0 and _side(one)) for place, one in enumerate(graph.input))
    return inputs and all(_main(one) for one in graph.output)


def _main(info: onnx.ValueInfoProto) -> bool:
    return _type(info) in TYPES


def _side(info: onnx.ValueInfoProto) -> bool:
    return _type(info) == SIDE_TYPE and len(info.type.tensor_type.shape.dim) <= SIDE_RANK


def _type(info: onnx.ValueInfoProto) -> str:
    """Empty for sequences and optional values, which no kernel takes."""
    if info.type.WhichOneof("value") != "tensor_type":
        return ""
    return onnx.TensorProto.DataType.Name(info.type.tensor_type.elem_type)
