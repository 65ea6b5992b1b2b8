"""A node test as a kernel of the suite: generated source, a launch over fresh arrays, and ONNX's word on the outputs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tilefw.kernels import formats
from tilefw.kernels.index import KernelInfo
from tilefw.kernels.inputs import empty
from tilefw.kernels.spec import Buffer, KernelSpec, Launch, Parameters
from tilefw_onnx.lowerings.node import Node, NodeTensor
from tilefw_onnx.lowerings.operators import OPERATORS
from tilefw_onnx.lowerings.text import KernelText
from tilefw_onnx.storage import storage


def spec_of(node: Node) -> KernelSpec:
    """The kernel of one node. It has no parameters: shapes and values are those of ONNX's test."""
    text = OPERATORS[node.operator](node)
    name = f"onnx:{node.name}"

    def prepare(_: Parameters, __: np.random.Generator) -> Launch:
        return _launch(text)

    def expected(_: Parameters, __: Launch) -> Mapping[str, np.ndarray]:
        return {name: _values(text.tensors[name]) for name in text.outputs()}

    return KernelSpec(name, text.kernel(), prepare, expected, own=KernelInfo(name, f"ONNX {node.operator}", ()))


def _launch(text: KernelText) -> Launch:
    written = set(text.outputs())
    arguments = {name: _empty(one) if name in written else _filled(one) for name, one in text.tensors.items()}
    return Launch(arguments, {}, text.grid, text.outputs(), {"num_warps": text.warps})


def _filled(tensor: NodeTensor) -> Buffer:
    """A copy of the test's data: a kernel may not change what other runs of the case start from."""
    return Buffer(storage(tensor.values, tensor.dtype).copy(), tensor.dtype)


def _empty(tensor: NodeTensor) -> Buffer:
    return empty(tensor.shape, tensor.dtype)


def _values(tensor: NodeTensor) -> np.ndarray:
    """ONNX's expected output: exact integers, or floats as float64."""
    return formats.decode(storage(tensor.values, tensor.dtype), tensor.dtype)
