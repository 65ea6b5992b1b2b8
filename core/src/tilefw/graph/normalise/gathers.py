"""Gathers of one place along each of their axes are views: exporters write `x[0]` as a gather whose index is a constant."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import AffineMapAttr, ModuleOp
from xdsl.ir import SSAValue

from tilefw.graph.dialect.combining_ops import numbers_of
from tilefw.graph.dialect.moving_ops import GraphGatherOp, GraphReshapeOp, ViewOp
from tilefw.graph.dialect.pointwise_ops import GraphConstantOp
from tilefw.graph.dialect.served_nodes import hand_on
from tilefw.graph.index_maps import linear_map, rows_of
from tilefw.graph.meaning import model_function, results_of
from tilefw.tile import types


def view_fixed_places(module: ModuleOp) -> None:
    """Make a view of each gather whose indices are one number each, in place."""
    block = model_function(module).body.block
    for op in list(block.ops):
        if not isinstance(op, GraphGatherOp):
            continue
        axes = numbers_of(op.axes)
        asked = [place for place in map(_uniform, op.indices) if place is not None]
        dims, source = types.rank_of(op.result.type), types.shape_of(op.source.type)
        if len(asked) < len(axes):
            continue
        near = [min(max(place, 0), source[axis] - 1) for axis, place in zip(axes, asked, strict=True)]
        if op.trusted is not None and near != asked:  # a fault, which the kernel shows
            continue
        rows = rows_of(op.map.data)
        for axis, place in zip(axes, near, strict=True):
            rows[axis] = (0,) * dims, place
        made = ViewOp.build(
            operands=[op.source, None], result_types=[op.result.type],
            properties={"map": AffineMapAttr(linear_map([row for row, _ in rows], [offset for _, offset in rows], dims))},
        )
        hand_on(made, op)
        block.insert_op_before(made, op)
        op.result.replace_all_uses_with(made.result)
        op.detach()
        op.erase()


def _uniform(index: SSAValue) -> int | None:
    """The number that all elements of an index tensor are, as far as it is a constant."""
    while isinstance(index.owner, ViewOp | GraphReshapeOp):
        if isinstance(index.owner, ViewOp) and index.owner.pad is not None:
            return None
        index = index.owner.source
    if not isinstance(index.owner, GraphConstantOp):
        return None
    found = np.unique(results_of(index.owner, [])[0])
    return int(found[0]) if found.size == 1 else None
