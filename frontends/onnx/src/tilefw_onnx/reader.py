"""An ONNX model as a graph of kernels: constants folded, each node lowered, nodes that only rename or reshape made views.

Shapes must be static: those of the inputs are numbers, and what follows from them onnx infers. What has constant inputs alone is
computed now by onnx's own reference evaluator.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import inliner
from onnx.reference import ReferenceEvaluator

from tilefw.api.errors import CodeError, KernelError, UnsupportedError
from tilefw.graph.kernel_graph import GraphBuilder, KernelGraph, ModelTensor
from tilefw.runtime.jit import JITFunction
from tilefw_onnx import loops, scans
from tilefw_onnx.expansions.expand import EXPANSIONS, expand, is_expanded
from tilefw_onnx.expansions.node_writer import NodeWriter
from tilefw_onnx.loops import describe_nodes, read_nodes, refused_within
from tilefw_onnx.lowerings.node import ELEMENT_TYPES, Node, NodeTensor, attributes_of, type_name
from tilefw_onnx.lowerings.operators import MODEL_OPERATORS
from tilefw_onnx.lowerings.pads import BY_SCALE
from tilefw_onnx.lowerings.text import KernelText
from tilefw_onnx.model_file import OpenedModel, array_of, first_line, opened, opened_model
from tilefw_onnx.sizes import fix_sizes, sizes_of
from tilefw_onnx.storage import storage

# Whose output has the elements of the first input in their order. (Dropout drops nothing in inference.)
VIEWS = frozenset({"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Dropout"})
OLDEST_OPSET = 13  # from which on axes of Squeeze and its like are inputs
_CENTRED_OPSET = 11  # from which on Resize says where pixels are: without a word at the middle of each

# What follows from the type and the shape of the first input alone.
OF_SHAPE: Mapping[str, Callable[[Mapping[str, Any], str, tuple[int, ...]], np.ndarray]] = {
    "Shape": lambda asked, _, shape: np.array(shape[asked.get("start", 0) : asked.get("end")], np.int64),
    "Size": lambda asked, _, shape: np.array(prod(shape), np.int64),
    "EyeLike": lambda asked, kind, shape: np.eye(*shape, k=asked["k"], dtype=_array_type(asked.get("dtype"), kind)),
}
_LOOPS = {"Loop": loops.write_out, "Scan": scans.write_out}
_CONTROL = ("If", "Constant", *_LOOPS)
RANDOM = frozenset({"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial"})
OF_DATA = frozenset({"NonZero", "Unique", "Compress", "NonMaxSuppression", "Range", "ConstantOfShape"})  # not a constant's
OWN_DOMAINS = ("", "ai.onnx")
_MISFITS = (ArithmeticError, AssertionError, IndexError, KeyError, TypeError, ValueError, onnx.defs.SchemaError)
MOST_ELEMENTS = (1 << 31) - (1 << 16)  # of one tensor: kernels count elements, and those of the last tile, in 32 bits


def read(path: str | os.PathLike[str]) -> KernelGraph:
    """The graph of a model in a file. Raises CodeError TFW0994 for a file that is no whole model or has shapes that are not static,
    UnsupportedError TFW0992 that lists all nodes which are not lowered."""
    return opened_graph(opened(path))


def graph_of(model: onnx.ModelProto, name: str) -> KernelGraph:
    """The graph of a model; `name` is the file's in messages."""
    return opened_graph(opened_model(model, name))


def opened_graph(
    file: OpenedModel, reading: Callable[..., ModelReading] | None = None, sizes: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> KernelGraph:
    """The graph of a model whose file has been opened, read by a ModelReading or what `reading` makes in its place; `sizes` are
    those that the model leaves open, and arrays for its inputs, of these `shapes`, have those that nobody says."""
    model, name = file.model, file.name
    fix_sizes(model.graph, {**sizes_of(model.graph, shapes or {}), **(sizes or {})}, name)
    opsets = {one.domain: one.version for one in model.opset_import}
    if opsets.get("", OLDEST_OPSET) < OLDEST_OPSET:
        try:
            model = onnx.version_converter.convert_version(model, OLDEST_OPSET)
        except Exception as error:
            raise CodeError(f"{name} has opset {opsets['']}: {first_line(error)}", code="TFW0994") from None
        if opsets[""] < _CENTRED_OPSET:
            _resize_from_corners(model.graph)
        opsets[""] = OLDEST_OPSET
    if model.functions:
        model = _inlined(model, name)
    if model.graph.sparse_initializer:
        raise CodeError(
            f"{name} has a sparse constant, '{model.graph.sparse_initializer[0].values.name}'", code="TFW0994",
            help="export the model with dense constants",
        )
    try:
        inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except Exception as error:
        raise CodeError(f"the types and shapes of {name} do not fit each other: {first_line(error)}", code="TFW0994") from None
    return (reading or ModelReading)(inferred.graph, opsets, name, known=file.weights).graph()


def _resize_from_corners(graph: onnx.GraphProto) -> None:
    """Resize and Upsample had no attribute for the place that a pixel is made of: it was its own divided by the scale, the nearest
    below or, of what gets smaller, above, as ONNX Runtime has it (upsamplebase.h, ResizeNearestMode::SIMPLE). The converter,
    which leaves the attributes out, has taken the later default."""
    for node in graph.node:
        if node.op_type == "Resize" and not node.domain:
            node.attribute.append(onnx.helper.make_attribute("coordinate_transformation_mode", "asymmetric"))
            node.attribute.append(onnx.helper.make_attribute("nearest_mode", BY_SCALE))
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                _resize_from_corners(attribute.g)


def _inlined(model: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """The model with the nodes of its functions in place of their calls."""
    try:
        return inliner.inline_local_functions(model)
    except Exception as error:  # the inliner's own
        raise CodeError(f"the functions of {name} cannot be written out: {first_line(error)}", code="TFW0994") from None


@dataclass
class ModelReading:
    """A model that is being read: what is known of each name by now."""

    source: onnx.GraphProto
    opsets: Mapping[str, int]
    file: str
    made: GraphBuilder = field(default_factory=GraphBuilder)
    types: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    known: dict[str, np.ndarray] = field(default_factory=dict)
    tensors: dict[str, ModelTensor] = field(default_factory=dict)
    kernels: dict[str, JITFunction] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)

    def graph(self) -> KernelGraph:
        self.known.update({one.name: array_of(one, self.file) for one in self.source.initializer})
        for info in (*self.source.input, *self.source.value_info, *self.source.output):
            self.describe(info)
        for info in self.source.input:
            if info.name not in self.known:
                kind, shape = self.type_of(info.name)
                self.tensors[info.name] = self.made.input(info.name, ELEMENT_TYPES[kind], shape)
        read_nodes(self, self.source.node, "")
        self._tell_refused()
        for info in self.source.output:
            self.made.output(info.name, self._tensor(info.name))
        return self.made.graph()

    def describe(self, info: onnx.ValueInfoProto) -> None:
        kind = info.type.tensor_type
        if info.type.WhichOneof("value") != "tensor_type" or not kind.HasField("shape"):
            return
        shape = tuple(d.dim_value if d.WhichOneof("value") == "dim_value" else -1 for d in kind.shape.dim)
        self.types[info.name] = type_name(kind.elem_type), shape

    def type_of(self, name: str) -> tuple[str, tuple[int, ...]]:
        """ONNX's element type and the shape. Raises CodeError TFW0994 where it is not static."""
        if name in self.known:
            array = self.known[name]
            return type_name(onnx.helper.np_dtype_to_tensor_dtype(array.dtype)), array.shape
        kind, shape = self.types.get(name, ("", ()))
        if kind not in ELEMENT_TYPES or min(shape, default=0) < 0:
            said = f"shape {[n if n >= 0 else '?' for n in shape]}" if kind in ELEMENT_TYPES else f"type {kind or 'unknown'}"
            raise CodeError(
                f"'{name}' of {self.file} has {said}", code="TFW0994",
                note="every tensor has a static shape, and elements that kernels know",
                help="export the model with fixed sizes, or fix them with onnx.tools.update_model_dims",
            )
        return kind, shape

    def read_node(self, proto: onnx.NodeProto, label: str) -> None:
        if any(name and name not in self.known and name not in self.tensors for name in proto.input):
            return  # of a node that was refused
        own = proto.domain in OWN_DOMAINS
        if own and self._random(proto):
            self.refused.append(f"{label}: {proto.op_type} gives random numbers")
            return
        if own and proto.op_type == "If" and proto.input[0] in self.known:
            self._take_branch(proto)
            return
        if own and proto.op_type in _LOOPS:
            self._write_out(proto, label)
            return
        if own and proto.op_type in OF_SHAPE:
            asked = attributes_of(proto, self.opsets.get(proto.domain, 1))
            self.known[proto.output[0]] = OF_SHAPE[proto.op_type](asked, *self.type_of(proto.input[0]))
            return
        written_out = own and proto.op_type in EXPANSIONS  # of which onnx's evaluator computes some cases wrongly
        if all(name in self.known for name in proto.input if name) and not _has_graph(proto) and not written_out:
            self._fold(proto, label)
            return
        self._describe_again(proto, label)
        if own and proto.op_type in VIEWS and not any(proto.output[1:]) and proto.input[0] in self.tensors:
            self._view(proto, label)
            return
        lowering = MODEL_OPERATORS.get(proto.op_type) if own else None
        if lowering is None and not (own and proto.op_type not in OF_DATA and is_expanded(proto)):
            self.refused.append(f"{label}: {_unknown(proto, own)}")
            return
        try:
            if lowering is None:
                self._expand(proto, label)
            else:
                self._lower(proto, label, lowering)
        except UnsupportedError as error:
            self.refused.append(f"{label}: {error.message}" + (f" ({error.note})" if error.note else ""))
        except _MISFITS as error:  # no checker looks at all
            raise self._misfit(proto, label, error) from error

    def _misfit(self, proto: onnx.NodeProto, label: str, error: Exception) -> CodeError:
        told = f"{self.file}: {label}: inputs and attributes do not fit the operator {proto.op_type}"
        return CodeError(told, code="TFW0994", note=f"{type(error).__name__}: {first_line(error)}")

    def _write_out(self, proto: onnx.NodeProto, label: str) -> None:
        """A loop's turns; of one that is refused, what no kernel computes of its body is told too."""
        try:
            _LOOPS[proto.op_type](self, proto, label)
        except UnsupportedError as error:
            body = next(one.g for one in proto.attribute if one.name == "body")
            lacking = refused_within(body, {*MODEL_OPERATORS, *EXPANSIONS, *VIEWS, *OF_SHAPE, *_CONTROL})
            more = f"; of its body no kernel computes {', '.join(lacking)}" if lacking else ""
            self.refused.append(f"{label}: {error.message}{more}")
        except _MISFITS as error:
            raise self._misfit(proto, label, error) from error

    def _describe_again(self, proto: onnx.NodeProto, label: str) -> None:
        """Shapes that follow from constants which were computed since the model's own were inferred."""
        lacking = [name for name in proto.output if name and min(self.types.get(name, ("", (-1,)))[1], default=0) < 0]
        if lacking and all(name in self.known or name in self.types for name in proto.input if name):
            describe_nodes(self, [proto], label)

    def _expand(self, proto: onnx.NodeProto, label: str) -> None:
        """The nodes that stand for one."""
        inputs, outputs = self._placed("input", proto.input), self._placed("output", proto.output)
        opset = self.opsets.get(proto.domain, 1)
        node = Node(proto.op_type.lower(), proto.op_type, attributes_of(proto, opset), inputs, outputs)
        expand(self, NodeWriter(node, proto, label, opset))

    def _view(self, proto: onnx.NodeProto, label: str) -> None:
        source, (_, shape) = self.tensors[proto.input[0]], self.type_of(proto.output[0])
        if prod(shape) != prod(source.shape):  # a shape that only a run knows may be said wrongly of the output
            told = f"{label} gives shape {list(shape)}, which has not the elements of {list(source.shape)}"
            raise CodeError(f"{self.file}: {told}", code="TFW0994")
        self.tensors[proto.output[0]] = source.reshaped(shape)

    def _take_branch(self, proto: onnx.NodeProto) -> None:
        """The nodes of the branch that a constant chooses. Its own names end with it: another branch may have the same."""
        chosen = "then_branch" if self.known[proto.input[0]].any() else "else_branch"
        branch = next(one.g for one in proto.attribute if one.name == chosen)
        own = {one.name for one in branch.initializer} | {name for node in branch.node for name in node.output}
        tables: list[Any] = [self.known, self.tensors, self.types]
        outer = [{name: table.pop(name) for name in own if name in table} for table in tables]
        self.known.update({one.name: array_of(one, self.file) for one in branch.initializer})
        for info in (*branch.value_info, *branch.output):
            self.describe(info)
        if any(name and name not in self.types for node in branch.node for name in node.output):
            describe_nodes(self, branch.node, proto.name)  # in a loop's turn, whose shapes nobody could know before
        read_nodes(self, branch.node, f"{proto.name} ")
        given = [{inner.name: table[inner.name] for inner in branch.output if inner.name in table} for table in tables]
        for table, before, found in zip(tables, outer, given, strict=True):
            for name in own:
                table.pop(name, None)
            table.update(before)
            made = zip(proto.output, branch.output, strict=True)
            table.update({name: found[one.name] for name, one in made if one.name in found})

    def _random(self, proto: onnx.NodeProto) -> bool:
        """Whether a node gives other values each time; Dropout does where it is told to train, or may be told so by a run."""
        if proto.op_type == "Dropout" and len(proto.input) > 2 and proto.input[2]:
            training = self.known.get(proto.input[2])
            return training is None or bool(training.any())
        return proto.op_type in RANDOM

    def _fold(self, proto: onnx.NodeProto, label: str) -> None:
        given = {name: self.known[name] for name in proto.input if name}
        try:
            if proto.op_type == "GatherElements" and proto.domain in OWN_DOMAINS:  # onnx 1.23's evaluator reshapes some indices
                asked = attributes_of(proto, self.opsets.get(proto.domain, 1))
                data, indices = (given[name] for name in proto.input)
                found = [_gathered(data, indices, asked["axis"])]
            else:
                found = ReferenceEvaluator(_alone(proto, self.opsets, given)).run(None, given)
        except KernelError:
            raise
        except Exception as error:  # whatever the evaluator meets
            raise CodeError(f"{self.file}: {label} cannot be computed: {first_line(error)}", code="TFW0994") from None
        self.known.update(zip([name for name in proto.output if name], map(np.asarray, found), strict=True))

    def _lower(self, proto: onnx.NodeProto, label: str, lowering: Callable[[Node], KernelText]) -> None:
        """Tensors are called by their places, so that nodes which differ in names alone have one kernel."""
        inputs = self._placed("input", proto.input)
        outputs = self._placed("output", proto.output)
        node = Node(proto.op_type.lower(), proto.op_type, attributes_of(proto, self.opsets.get(proto.domain, 1)), inputs, outputs)
        text = self._text(node, lowering)
        names = {id(one): name for one, name in (*zip(inputs, proto.input, strict=True), *zip(outputs, proto.output, strict=True))}
        for one, name in zip(outputs, proto.output, strict=True):
            if one is not None:
                self.tensors[name] = self.made.temporary(name, one.dtype, one.shape)
        if text is None:
            return  # no output has an element
        kernel = self._compiled(text)
        arguments = {
            parameter: self._tensor(names[id(one)]) if id(one) in names else self._table(label, one)
            for parameter, one in text.tensors.items()
        }
        self.made.call(label, kernel, arguments, text.grid, keywords=text.keywords)

    def _text(self, node: Node, lowering: Callable[[Node], KernelText]) -> KernelText | None:
        """The node's kernel; None where no output has an element."""
        require_counted(node)
        return lowering(node) if any(one is not None and one.size for one in node.outputs) else None

    def _compiled(self, text: KernelText) -> JITFunction:
        """The kernel of a text; equal texts have one."""
        source = text.source
        return self.kernels[source] if source in self.kernels else self.kernels.setdefault(source, text.kernel())

    def _table(self, label: str, table: NodeTensor) -> ModelTensor:
        """Values that the node's lowering has computed."""
        return self.made.constant(f"{label}: {table.name}", storage(table.values, table.dtype), table.dtype)

    def _placed(self, word: str, names: Sequence[str]) -> tuple[NodeTensor | None, ...]:
        return tuple(
            NodeTensor(f"{word}{place}", *self.type_of(name), self.known.get(name)) if name else None
            for place, name in enumerate(names)
        )

    def _tensor(self, name: str) -> ModelTensor:
        """The tensor called so; a constant gets its buffer when it is first used."""
        if name not in self.tensors:
            if name not in self.known:
                raise CodeError(f"no node of {self.file} makes '{name}'", code="TFW0994")
            kind, _ = self.type_of(name)
            if kind not in ELEMENT_TYPES:
                raise CodeError(f"constant '{name}' of {self.file} has type {kind}", code="TFW0994")
            element = ELEMENT_TYPES[kind]
            self.tensors[name] = self.made.constant(name, storage(self.known[name], element), element)
        return self.tensors[name]

    def _tell_refused(self) -> None:
        if self.refused:
            count = f"{len(self.refused)} node{'s' if len(self.refused) > 1 else ''}"
            message = f"{self.file} has {count} that tilefw does not lower"
            raise UnsupportedError(message, code="TFW0992", note="\n".join(self.refused))


def require_counted(node: Node) -> None:
    """Raise UnsupportedError TFW0992 for a tensor whose elements kernels do not count."""
    if any(one is not None and one.size > MOST_ELEMENTS for one in (*node.inputs, *node.outputs)):
        raise UnsupportedError(f"a tensor of more than {MOST_ELEMENTS:,} elements", code="TFW0992")


def _unknown(proto: onnx.NodeProto, own: bool) -> str:
    """Why an operator is not lowered: what its shape follows from, or that there is none, with the nearest that there is."""
    if own and proto.op_type in OF_DATA:
        return f"the shape of what {proto.op_type} gives follows from data, which only a run knows"
    if own and proto.op_type == "If":
        return f"which branch is taken follows from '{proto.input[0]}', which only a run knows"
    near = get_close_matches(proto.op_type, MODEL_OPERATORS, n=1) if own else []
    named = "::".join(filter(None, (proto.domain, proto.op_type)))
    return f"no operator {named}; the nearest is {near[0]}" if near else f"no operator {named}"


def _array_type(number: int | None, kind: str) -> np.dtype:
    """NumPy's type of ONNX's, which a node says or its input has."""
    return onnx.helper.tensor_dtype_to_np_dtype(number or onnx.TensorProto.DataType.Value(kind))


def _gathered(data: np.ndarray, indices: np.ndarray, axis: int) -> np.ndarray:
    """Along one axis the elements that the indices name; along the others as many of the first as there are indices."""
    near = tuple(slice(None) if dim == axis % data.ndim else slice(extent) for dim, extent in enumerate(indices.shape))
    return np.take_along_axis(data[near], indices, axis)


def _has_graph(proto: onnx.NodeProto) -> bool:
    """Whether a node has a graph of its own, which may read names of the outer one."""
    return any(one.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS) for one in proto.attribute)


def _alone(proto: onnx.NodeProto, opsets: Mapping[str, int], given: Mapping[str, np.ndarray]) -> onnx.ModelProto:
    """A model of one node."""
    inputs = [
        onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in given.items()
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in proto.output if name]
    graph = onnx.helper.make_graph([proto], "one", inputs, outputs)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid(d, v) for d, v in opsets.items()])
