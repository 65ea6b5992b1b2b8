"""Which nodes of the model in the file an op computes: an attribute that passes hand on, and the names of launches.

    graph.map(%x) attributes {"graph.nodes" = ["relu1"]}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Block, Operation

from tilefw.graph.dialect.moving_ops import GraphReshapeOp
from tilefw.graph.dialect.pointwise_ops import GraphConstantOp

_NODES = "graph.nodes"
_UNCOUNTED = (GraphConstantOp, GraphReshapeOp)  # which no launch computes


def nodes_of(op: Operation) -> tuple[str, ...]:
    """The nodes that an op is part of; none of an op that a pass put between them."""
    found = op.attributes.get(_NODES)
    return tuple(one.data for one in found if isinstance(one, StringAttr)) if isinstance(found, ArrayAttr) else ()


def serve(op: Operation, nodes: Iterable[str]) -> None:
    """Say which nodes an op is part of."""
    named = [StringAttr(one) for one in dict.fromkeys(nodes)]
    if named:
        op.attributes[_NODES] = ArrayAttr(named)


def serves_none(op: Operation) -> None:
    """Let an op be part of no node: of one that is a copy to be tried."""
    op.attributes.pop(_NODES, None)


def hand_on(made: Operation, *replaced: Operation) -> None:
    """Let an op serve the nodes of those whose place it takes."""
    serve(made, [node for op in (made, *replaced) for node in nodes_of(op)])


def node_order(block: Block) -> dict[str, int]:
    """The nodes in the order of the model, numbered."""
    found: dict[str, int] = {}
    for op in block.ops:
        for node in nodes_of(op):
            found.setdefault(node, len(found))
    return found


def launch_label(body: Block, order: Mapping[str, int]) -> str:
    """What the launch of a group's body is called."""
    return launch_name(body.ops, order)


def launch_name(ops: Iterable[Operation], order: Mapping[str, int]) -> str:
    """What a launch is called: its node, or the first and the last with their number; empty where it serves none."""
    served = {node for op in ops if not isinstance(op, _UNCOUNTED) for node in nodes_of(op)}
    named = sorted(served, key=lambda node: order.get(node, len(order)))
    return named[0] if len(named) == 1 else f"{named[0]} … {named[-1]} ({len(named)} nodes)" if named else ""
