"""The operators that are written out as other nodes, and those nodes read in the place of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import onnx

from tilefw_onnx.expansions import affine_grids, defined, neighbours, quantised, recurrent, sampled_grids
from tilefw_onnx.expansions.node_writer import NodeWriter
from tilefw_onnx.loops import NodeReading, ReadValue, describe_nodes, name_value

EXPANSIONS: Mapping[str, Callable[[NodeWriter], None]] = {
    **recurrent.EXPANSIONS, **sampled_grids.EXPANSIONS, **affine_grids.EXPANSIONS, **quantised.EXPANSIONS,
    **neighbours.EXPANSIONS,
}


def is_expanded(proto: onnx.NodeProto) -> bool:
    """Whether a node that no kernel computes is written out."""
    return proto.op_type in EXPANSIONS or defined.is_defined(proto)


def expand(reading: NodeReading, writer: NodeWriter) -> None:
    """Read the nodes that stand for a node. Raises UnsupportedError TFW0992 for a case that is not served."""
    EXPANSIONS.get(writer.proto.op_type, defined.written_out)(writer)
    own = {name for node in writer.nodes for name in node.output} - set(writer.proto.output)
    for name in own:  # a turn of a loop around this one may have named its own so
        name_value(reading, name, ReadValue())
    reading.known.update(writer.constants)
    describe_nodes(reading, writer.nodes, writer.label)
    for node in writer.nodes:
        reading.read_node(node, f"{writer.label}, {node.name}")
    for name in (*own, *writer.constants):
        name_value(reading, name, ReadValue())
