"""Loops whose turns are known when the model is read, written out: the nodes of the body once for each turn.

What a body computes of its turn's number is constant, and so must the condition be by which it may end: a loop whose end follows
from data is refused. Shapes are those of each turn: what a loop carries may grow.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tilefw.api.errors import CodeError, UnsupportedError
from tilefw_onnx.model_file import array_of, first_line

MOST_TURNS = 4096
_MOST_KNOWN = 4096  # elements of a constant that shapes may follow from


class NodeReading(Protocol):
    """A model that is being read, as loops need it."""

    known: dict[str, np.ndarray]
    tensors: dict[str, Any]
    types: dict[str, tuple[str, tuple[int, ...]]]
    opsets: Mapping[str, int]
    file: str
    refused: list[str]

    def read_node(self, proto: onnx.NodeProto, label: str) -> None:
        """Read one node."""
        ...

    def describe(self, info: onnx.ValueInfoProto) -> None:
        """Keep a type and a shape."""
        ...

    def type_of(self, name: str) -> tuple[str, tuple[int, ...]]:
        """ONNX's element type and the shape."""
        ...


@dataclass(frozen=True, slots=True)
class ReadValue:
    """What is known of one name: its elements, or the tensor that has them at run time, with ONNX's type and the shape."""

    known: np.ndarray | None = None
    tensor: Any = None
    type: tuple[str, tuple[int, ...]] | None = None


def write_out(reading: NodeReading, proto: onnx.NodeProto, label: str) -> None:
    """Read the body for each turn. Raises UnsupportedError TFW0992 where the number of turns follows from data."""
    body = next(one.g for one in proto.attribute if one.name == "body")
    most, goes_on = (_number(reading, name) for name in (*proto.input, "", "")[:2])
    if most is None and goes_on is None:
        raise UnsupportedError("a loop without an end", code="TFW0992")
    carried = [value_of(reading, name) for name in proto.input[2:]]
    stacked: list[list[ReadValue]] = [[] for _ in body.output[1 + len(carried) :]]
    turn, goes_on = 0, True if goes_on is None else bool(goes_on)
    while goes_on and (most is None or turn < most):
        if turn == MOST_TURNS:
            raise UnsupportedError(f"a loop of more than {MOST_TURNS:,} turns", code="TFW0992")
        values = [ReadValue(np.array(turn, np.int64)), ReadValue(np.array(True)), *carried]
        refused = len(reading.refused)
        found = turn_outputs(reading, body, values, f"{label}, turn {turn}")
        if len(reading.refused) > refused:
            return  # what reads the loop's results is not read either
        if found[0].known is None:
            raise UnsupportedError("a loop whose end depends on data", code="TFW0992")
        goes_on, carried = bool(found[0].known.any()), found[1 : 1 + len(carried)]
        for held, more in zip(stacked, found[1 + len(carried) :], strict=True):
            held.append(more)
        turn += 1
    for name, value in zip(proto.output, carried, strict=False):
        name_value(reading, name, value)
    for name, parts in zip(proto.output[len(carried) :], stacked, strict=True):
        if name:
            stack(reading, name, parts, label)


def _number(reading: NodeReading, name: str) -> int | None:
    """The number or the truth value of an input; None where it is left out."""
    if not name:
        return None
    if name not in reading.known:
        raise UnsupportedError(f"a loop whose turns depend on '{name}', which only a run knows", code="TFW0992")
    if reading.known[name].size != 1:
        raise CodeError(f"'{name}' of {reading.file}, which says how often a loop turns, has not one element", code="TFW0994")
    return int(reading.known[name].reshape(-1)[0])


def value_of(reading: NodeReading, name: str) -> ReadValue:
    """What is known of a name by now."""
    return ReadValue(reading.known.get(name), reading.tensors.get(name), reading.types.get(name))


def name_value(reading: NodeReading, name: str, value: ReadValue) -> None:
    """Let a name mean a value."""
    for table in (reading.known, reading.tensors, reading.types):
        table.pop(name, None)
    if name and value.known is not None:
        reading.known[name] = value.known
    if name and value.tensor is not None:
        reading.tensors[name] = value.tensor
    if name and value.type is not None:
        reading.types[name] = value.type


def turn_outputs(reading: NodeReading, body: onnx.GraphProto, values: Sequence[ReadValue], label: str) -> list[ReadValue]:
    """The outputs of a body whose inputs have these values. Its own names end with it."""
    own = {one.name for one in (*body.input, *body.initializer)} | {name for node in body.node for name in node.output}
    outer = {name: value_of(reading, name) for name in own}
    for name in own:
        name_value(reading, name, ReadValue())
    for info, value in zip(body.input, values, strict=True):
        name_value(reading, info.name, value)
    reading.known.update({one.name: array_of(one, reading.file) for one in body.initializer})
    describe_nodes(reading, body.node, label)
    read_nodes(reading, body.node, f"{label}, ")
    found = [value_of(reading, info.name) for info in body.output]
    for name, value in outer.items():
        name_value(reading, name, value)
    return found


def read_nodes(reading: NodeReading, nodes: Sequence[onnx.NodeProto], label: str) -> None:
    """Read nodes in order; the shapes of those behind a loop are known once it is written out."""
    for number, node in enumerate(nodes):
        reading.read_node(node, f"{label}{node.name or f'{node.op_type} number {number}'}")
        if node.op_type in ("Loop", "Scan") and number + 1 < len(nodes) and not reading.refused:
            describe_nodes(reading, nodes[number + 1 :], label)


def describe_nodes(reading: NodeReading, nodes: Sequence[onnx.NodeProto], label: str) -> None:
    """Types and shapes of what nodes give, as onnx infers them from those of what they read; where it infers a shape in part, one
    that is known stays."""
    made = {name: None for node in nodes for name in node.output if name}
    read = dict.fromkeys(name for node in nodes for name in _names(node) if name and name not in made)
    inputs, constants = [], []
    for name in read:
        known = reading.known.get(name)
        if known is not None and known.size <= _MOST_KNOWN:
            constants.append(numpy_helper.from_array(known, name))
        elif known is not None or name in reading.types:
            kind, shape = reading.type_of(name)
            inputs.append(helper.make_tensor_value_info(name, onnx.TensorProto.DataType.Value(kind), shape))
    graph = helper.make_graph(nodes, "part", inputs, [onnx.ValueInfoProto(name=name) for name in made], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(*one) for one in reading.opsets.items()])
    try:
        inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    except Exception as error:
        told = f"the shapes of {reading.file}, {label or 'behind a loop'}, do not fit each other: {first_line(error)}"
        raise CodeError(told, code="TFW0994") from None
    for info in (*inferred.graph.value_info, *inferred.graph.output):
        before = reading.types.get(info.name)
        reading.describe(info)
        if before is not None and min(before[1], default=0) >= 0 > min(reading.types[info.name][1], default=0):
            reading.types[info.name] = before


def _names(node: onnx.NodeProto) -> list[str]:
    """What a node reads, and what the graphs in it read."""
    found = list(node.input)
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            inner = {one.name for one in graph.initializer} | {name for one in graph.node for name in one.output}
            inner |= {one.name for one in graph.input}
            found += [name for one in graph.node for name in _names(one) if name not in inner]
    return found


def stack(reading: NodeReading, name: str, parts: Sequence[ReadValue], label: str) -> None:
    """The values of all turns, one behind the other along a dim of their own."""
    if not parts:
        kind, shape = reading.type_of(name)
        reading.known[name] = np.zeros((0, *shape[1:]), helper.tensor_dtype_to_np_dtype(onnx.TensorProto.DataType.Value(kind)))
        return
    if all(part.known is not None for part in parts):
        reading.known[name] = np.stack([part.known for part in parts if part.known is not None])
        return
    axes, joined, spread = f"{name}: axes", [], {}
    reading.known[axes] = np.array([0], np.int64)
    for turn, part in enumerate(parts):
        one, wide = f"{name}: turn {turn}", f"{name}: row {turn}"
        name_value(reading, one, part)
        kind, shape = reading.type_of(one)
        spread[wide] = kind, (1, *shape)
        name_value(reading, wide, ReadValue(type=spread[wide]))  # a turn of a loop around this one may have named its own so
        reading.read_node(helper.make_node("Unsqueeze", [one, axes], [wide]), f"{label}, {wide}")
        joined.append(wide)
    shapes = {shape for _, shape in spread.values()}
    if len(shapes) > 1:
        raise UnsupportedError("a loop whose turns give elements of several shapes", code="TFW0992")
    ((_, *rest),) = shapes
    reading.types[name] = next(iter(spread.values()))[0], (len(parts), *rest)
    reading.read_node(helper.make_node("Concat", joined, [name], axis=0), f"{label}, {name}")


def refused_within(body: onnx.GraphProto, served: Collection[str]) -> list[str]:
    """The operators of a body that is not written out which no kernel computes."""
    return sorted({node.op_type for node in body.node if node.op_type not in served})
