"""The graph dialect as xDSL knows it, and its modules from text."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Dialect

from tilefw.graph.dialect import combining_ops, grouping_ops, moving_ops, pointwise_ops, rank_ops
from tilefw.graph.dialect.elements import StoredElements
from tilefw.tile.text.module import parse

Graph = Dialect(
    "graph",
    [
        pointwise_ops.GraphConstantOp, pointwise_ops.MapOp, pointwise_ops.IndexOp, pointwise_ops.YieldOp,
        combining_ops.GraphReduceOp, combining_ops.GraphScanOp, combining_ops.ContractOp,
        moving_ops.ViewOp, moving_ops.GraphReshapeOp, moving_ops.GraphConcatOp, moving_ops.GraphGatherOp, moving_ops.ScatterOp,
        moving_ops.GraphSortOp, grouping_ops.FusedOp, grouping_ops.OpaqueKernelOp, rank_ops.PartOp, rank_ops.CollectiveOp,
    ],
    [StoredElements],
)


def parse_graph(text: str, name: str = "<text>") -> ModuleOp:
    """A verified module of graph ops. Raises IRError (TFW0401, TFW0402) with the place in the text."""
    return parse(text, name, [Graph])
