"""An ONNX model as a graph of few kernels: nodes with a rule are fused as ops of the graph dialect, the others stay kernels.

    from tilefw_onnx.fused_reader import read_model
    graph = read_model("model.onnx")            # as `tilefw_onnx.reader.read`, with fewer calls
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import onnx

from tilefw.graph.builder import GraphValue, ModuleBuilder
from tilefw.graph.emit.model import LaunchWriter, kernel_graph
from tilefw.graph.fuse.choice import FEWEST_LAUNCHES, FusionChoice
from tilefw.graph.kernel_graph import GraphBuilder, KernelGraph, ModelTensor
from tilefw_onnx.decompositions import is_served, rule_of
from tilefw_onnx.lowerings.node import Node, NodeTensor, attributes_of
from tilefw_onnx.lowerings.places import axis_of
from tilefw_onnx.lowerings.text import KernelText
from tilefw_onnx.memory_scatters import scatter_rule
from tilefw_onnx.model_file import opened, opened_model
from tilefw_onnx.ordered import first_in_order, is_ordered
from tilefw_onnx.reader import ModelReading, opened_graph, require_counted


def read_model(
    path: str | os.PathLike[str], *, fuse: bool = True, choice: FusionChoice = FEWEST_LAUNCHES,
    sizes: Mapping[str, int] | None = None, shapes: Mapping[str, Sequence[int]] | None = None,
) -> KernelGraph:
    """The graph of a model in a file, what `tilefw run` uses; without `fuse` each node has a launch of its own, else `choice` is
    between ways to fuse. `sizes` are those that the model leaves open, by name, and `shapes` those of arrays for its inputs, which
    say all other sizes. Raises what `tilefw_onnx.reader.read` does."""
    reading = partial(FusedReading, made=ModuleWriter(choice=choice)) if fuse else ModelReading
    return opened_graph(opened(path), reading, sizes, shapes)


def fused_graph_of(model: onnx.ModelProto, name: str) -> KernelGraph:
    """The graph of a model; `name` is the file's in messages."""
    return opened_graph(opened_model(model, name), FusedReading)


@dataclass(frozen=True, slots=True)
class ModuleTensor:
    """A value of the graph dialect with the element type that ONNX gives it: values have signless integers."""

    value: GraphValue
    dtype: str
    shape: tuple[int, ...]
    written: ModuleWriter

    def reshaped(self, shape: Sequence[int]) -> ModuleTensor:
        """The same elements in another shape."""
        return replace(self, value=self.written.module.reshape(self.value, shape), shape=tuple(shape))


@dataclass(slots=True)
class ModuleWriter:
    """What a reading writes its ends to, as to a GraphBuilder."""

    module: ModuleBuilder = field(default_factory=ModuleBuilder)
    choice: FusionChoice = FEWEST_LAUNCHES
    kernels: dict[str, LaunchWriter] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)

    def input(self, name: str, dtype: str, shape: Sequence[int]) -> ModuleTensor:
        """A tensor that a run is given."""
        return ModuleTensor(self.module.input(name, dtype, shape), dtype, tuple(shape), self)

    def constant(self, name: str, array: np.ndarray[Any, Any], dtype: str) -> ModuleTensor:
        """A tensor whose elements are known; of one element, a number that kernels have in their text."""
        if array.size != 1:
            return ModuleTensor(self.module.constant(array, dtype, name), dtype, array.shape, self)
        number = self.module.constant(array.reshape(()), dtype)
        return ModuleTensor(self.module.broadcast(number, array.shape), dtype, array.shape, self)

    def output(self, name: str, tensor: ModuleTensor) -> None:
        """What a run gives under `name`."""
        self.module.output(name, tensor.value)
        self.types[name] = tensor.dtype

    def graph(self) -> KernelGraph:
        """The module, fused, as launches."""
        found = kernel_graph(self.module.module(), self.kernels, self.choice)
        outputs = {name: replace(tensor, dtype=self.types[name]) for name, tensor in found.outputs.items()}
        return replace(found, outputs=outputs)


@dataclass
class FusedReading(ModelReading):
    """A model that is being read into a module."""

    made: Any = field(default_factory=ModuleWriter)
    tensors: dict[str, Any] = field(default_factory=dict)

    def _lower(self, proto: onnx.NodeProto, label: str, lowering: Callable[[Node], KernelText]) -> None:
        inputs, outputs = self._placed("input", proto.input), self._placed("output", proto.output)
        node = Node(proto.op_type.lower(), proto.op_type, attributes_of(proto, self.opsets.get(proto.domain, 1)), inputs, outputs)
        require_counted(node)
        if node.operator == "Split" and is_served(node):
            self._split(proto, label, node)
            return
        if is_ordered(node):
            self._order(proto, label, node)
            return
        rule = rule_of(node) or scatter_rule(node)
        if rule is None:
            self._kernel(proto, label, lowering, node)
            return
        values = [self._module_tensor(name).value for name in proto.input if name]
        out = node.output(0)
        with self.made.module.node(label):
            found = self.made.module.broadcast(rule(self.made.module, node, values), out.shape)
        self.tensors[proto.output[0]] = ModuleTensor(found, out.dtype, out.shape, self.made)

    def _order(self, proto: onnx.NodeProto, label: str, node: Node) -> None:
        """The first elements of rows in order, and their places."""
        source = self._module_tensor(proto.input[0]).value
        with self.made.module.node(label):
            found = first_in_order(self.made.module, node, source)
        for name, value, out in zip(proto.output, found, node.outputs, strict=False):
            assert out is not None, "is_served asks for a name of each output"
            self.tensors[name] = ModuleTensor(value, out.dtype, out.shape, self.made)

    def _split(self, proto: onnx.NodeProto, label: str, node: Node) -> None:
        """Slices one behind the other, which nobody copies."""
        axis, begin = axis_of(node.attributes["axis"], len(node.input(0).shape)), 0
        source = self._module_tensor(proto.input[0]).value
        for name, out in zip(proto.output, node.outputs, strict=True):
            assert out is not None, "every part of a split has a name"
            starts = [begin if dim == axis else 0 for dim in range(len(out.shape))]
            with self.made.module.node(label):
                found = self.made.module.slice(source, starts, out.shape)
            self.tensors[name] = ModuleTensor(found, out.dtype, out.shape, self.made)
            begin += out.shape[axis]

    def _module_tensor(self, name: str) -> ModuleTensor:
        found: Any = self._tensor(name)
        return found

    def _computed(self, label: str, table: NodeTensor) -> ModuleTensor:
        found: Any = self._table(label, table)
        return found

    def _kernel(self, proto: onnx.NodeProto, label: str, lowering: Callable[[Node], KernelText], node: Node) -> None:
        """A launch of the node's own kernel."""
        text = self._text(node, lowering)
        inputs, outputs = zip(node.inputs, proto.input, strict=True), zip(node.outputs, proto.output, strict=True)
        names = {id(one): name for one, name in (*inputs, *outputs)}
        read: dict[str, ModuleTensor] = {}
        if text is not None:
            written = {id(one) for one in node.outputs if one is not None}
            read = {
                parameter: self._module_tensor(names[id(one)]) if id(one) in names else self._computed(label, one)
                for parameter, one in text.tensors.items() if id(one) not in written
            }
        key = label
        while key in self.made.kernels:  # nodes may share a name
            key += "'"
        results = [(one, name) for one, name in zip(node.outputs, proto.output, strict=True) if one is not None]
        made = self.made.module.kernel(key, [one.value for one in read.values()], [(one.dtype, one.shape) for one, _ in results])
        for value, (one, name) in zip(made, results, strict=True):
            self.tensors[name] = ModuleTensor(value, one.dtype, one.shape, self.made)
        self.made.kernels[key] = self._launch(label, text, read, [one for one, _ in results])

    def _launch(
        self, label: str, text: KernelText | None, read: Mapping[str, ModuleTensor], results: Sequence[NodeTensor]
    ) -> LaunchWriter:
        def write(made: GraphBuilder, inputs: Sequence[ModelTensor], outputs: Sequence[ModelTensor]) -> None:
            if text is None:
                return  # no output has an element
            kernel = self._compiled(text)
            typed = {
                parameter: replace(tensor, dtype=one.dtype)
                for (parameter, one), tensor in zip(read.items(), inputs, strict=True)
            }
            stored = {id(one): replace(tensor, dtype=one.dtype) for one, tensor in zip(results, outputs, strict=True)}
            arguments = {
                parameter: typed[parameter] if parameter in typed else stored[id(one)] for parameter, one in text.tensors.items()
            }
            made.call(label, kernel, arguments, text.grid, keywords=text.keywords)

        return write
