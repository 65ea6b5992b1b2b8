"""Operators that ONNX itself defines by nodes, written out so where nothing else serves them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx

from tilefw_onnx.expansions.node_writer import NodeWriter


def is_defined(proto: onnx.NodeProto) -> bool:
    """Whether ONNX has such a definition of a node's operator."""
    if not onnx.defs.has(proto.op_type, proto.domain):
        return False
    schema: Any = onnx.defs.get_schema(proto.op_type, proto.domain)
    return schema.has_function or schema.has_context_dependent_function


def written_out(w: NodeWriter) -> None:
    """The nodes of the definition, with the names and attributes of the node. Raises UnsupportedError TFW0992 where none fits."""
    function = _definition(w)
    names = dict(zip(function.input, [*w.proto.input, *[""] * len(function.input)], strict=False))
    names |= {name: given for name, given in zip(function.output, w.proto.output, strict=False) if given}
    attributes = {one.name: one for one in w.proto.attribute}
    schema = onnx.defs.get_schema(w.proto.op_type, w.opset, w.proto.domain)
    for name, one in schema.attributes.items():
        if one.default_value.type != onnx.AttributeProto.UNDEFINED:
            attributes.setdefault(name, one.default_value)
    w.nodes += [_named(node, names, attributes, w.label) for node in function.node]


def _definition(w: NodeWriter) -> onnx.FunctionProto:
    schema: Any = onnx.defs.get_schema(w.proto.op_type, w.opset, w.proto.domain)
    found = onnx.FunctionProto()
    if schema.has_function:
        found.CopyFrom(schema.function_body)
        return found
    types = [
        onnx.helper.make_tensor_type_proto(onnx.TensorProto.DataType.Value(one.onnx_type), one.shape).SerializeToString()
        if one is not None else b"" for one in w.node.inputs
    ]
    version = max(v for v in schema.context_dependent_function_opset_versions if v <= w.opset)
    found.ParseFromString(schema.get_context_dependent_function_with_opset_version(version, w.proto.SerializeToString(), types))
    return found


def _named(
    node: onnx.NodeProto, names: dict[str, str], attributes: Mapping[str, onnx.AttributeProto], label: str
) -> onnx.NodeProto:
    """A node of the definition with names of its own, and with the attributes that it takes over."""
    made = onnx.NodeProto()
    made.CopyFrom(node)
    made.name = f"{node.op_type} of {', '.join(node.output)}"
    made.input[:] = [names.get(name, name) for name in node.input]
    for name in node.output:
        names.setdefault(name, f"{label}: {name}" if name else "")
    made.output[:] = [names[name] for name in node.output]
    del made.attribute[:]
    for one in node.attribute:
        made.attribute.extend(_attribute(one, names, attributes, label))
    return made


def _attribute(
    one: onnx.AttributeProto, names: dict[str, str], attributes: Mapping[str, onnx.AttributeProto], label: str
) -> list[onnx.AttributeProto]:
    """One attribute; none where it is one of the node, and the node leaves it out."""
    made = onnx.AttributeProto()
    made.CopyFrom(attributes.get(one.ref_attr_name, one))
    made.name = one.name
    if one.ref_attr_name and one.ref_attr_name not in attributes:
        return []
    if one.type == onnx.AttributeProto.GRAPH:
        inner = dict(names)
        nodes = [_named(node, inner, attributes, f"{label}, {one.name}") for node in one.g.node]
        del made.g.node[:]
        made.g.node.extend(nodes)
        for info in made.g.output:
            info.name = inner[info.name]
    return [made]
