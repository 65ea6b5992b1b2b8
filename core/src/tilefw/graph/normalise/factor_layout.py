"""Constant factors of contractions lie as they are read: of the dims that are summed over, the longest is the last in memory.

Exporters keep the filters of a convolution as [out, in, rows, columns], so that the channels of one tap are apart.
"""

from __future__ import annotations

from math import prod

import numpy as np
from xdsl.dialects.builtin import AffineMapAttr, ModuleOp
from xdsl.ir.affine import AffineMap

from tilefw.graph.dialect.combining_ops import ContractOp
from tilefw.graph.dialect.elements import StoredElements, tensor
from tilefw.graph.dialect.pointwise_ops import GraphConstantOp
from tilefw.graph.index_maps import rows_of
from tilefw.graph.meaning import model_function
from tilefw.kernels.formats import array_dtype
from tilefw.tile import types


def lay_factors_out(module: ModuleOp) -> None:
    """Turn the constants that a contraction alone reads, in place."""
    for op in list(model_function(module).body.block.ops):
        if isinstance(op, ContractOp):
            op.left_map = _turned(op, 0, op.left_map)
            op.right_map = _turned(op, 1, op.right_map)


def _turned(op: ContractOp, place: int, map: AffineMapAttr) -> AffineMapAttr:
    """The map of an operand, which is turned where that helps."""
    value = op.operands[place]
    constant, axis = value.owner, _longest_summed(op, map.data)
    last = types.rank_of(value.type) - 1
    if axis is None or not isinstance(constant, GraphConstantOp) or value.uses.get_length() > 1:
        return map
    if prod(types.shape_of(value.type)[axis + 1 :]) == 1:  # it is the last already
        return map
    order = [*(other for other in range(last + 1) if other != axis), axis]
    made = _transposed(constant, order)
    assert constant.parent is not None
    constant.parent.insert_op_before(made, constant)
    op.operands[place] = made.result
    constant.detach()
    constant.erase()
    return AffineMapAttr(AffineMap(map.data.num_dims, 0, tuple(map.data.results[other] for other in order)))


def _longest_summed(op: ContractOp, map: AffineMap) -> int | None:
    """The axis of an operand along the longest dim of the sum; None where its last axis is walked by dims of the result too, which
    neighbours in memory serve as well."""
    kept = types.rank_of(op.result.type)
    walked = [[dim for dim, factor in enumerate(factors) if factor] for factors, _ in rows_of(map)]
    if not walked or any(dim < kept for dim in walked[-1]):
        return None
    lengths = {axis: op.extents[dims[0]] for axis, dims in enumerate(walked) if len(dims) == 1 and dims[0] >= kept}
    return max(lengths, key=lambda axis: (lengths[axis], axis), default=None)


def _transposed(constant: GraphConstantOp, order: list[int]) -> GraphConstantOp:
    """The constant with its axes in another order."""
    kind, shape = types.dtype_of(constant.result.type), types.shape_of(constant.result.type)
    array = np.frombuffer(constant.value.data, array_dtype(kind.name)).reshape(shape).transpose(order)
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    data.flags.writeable = False
    return GraphConstantOp.create(
        properties={"value": StoredElements(data.data)}, attributes=dict(constant.attributes),
        result_types=[tensor(array.shape, types.element_of(constant.result.type))],
    )
