"""Ops that combine many elements into one: reductions, scans, and sums of products over an index space.

    %m = graph.reduce (%x) axes [1] : (tensor<4x8xf32>) -> (tensor<4xf32>) { … }       the body as that of `tile.reduce`
    %s = graph.scan (%x) axes [1] : (tensor<4x8xf32>) -> (tensor<4x8xf32>) { … }
    %c = graph.contract %a [affine_map<(d0, d1, d2) -> (d0, d2)>], %b [affine_map<(d0, d1, d2) -> (d2, d1)>] sizes [4, 6, 8]
        : tensor<4x8xf16>, tensor<8x6xf16> -> tensor<4x6xf32>

A contraction sums, over the last of the dims whose extents are `sizes`, the products of an element of the left tensor and one of
the right; the first dims are those of the result. Each map gives an operand's indices; they are linear, and an index outside the
tensor reads 0, which is how a convolution pads: its left map is `(n, f, y, x, c, r, s) -> (n, c, 2y + r - 1, 2x + s - 1)`.
Products are exact, summed in at least the result's precision, rounded once.
"""

from __future__ import annotations

from xdsl.dialects.builtin import AffineMapAttr, DenseArrayBase, IntegerType, TensorType, UnitAttr, i64
from xdsl.ir.affine import AffineMap
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsolatedFromAbove, Pure
from xdsl.utils.exceptions import VerifyException

from tilefw.graph.dialect.pointwise_ops import check_body
from tilefw.graph.index_maps import linear_terms
from tilefw.tile import types

Integers = DenseArrayBase.constr(i64)


def numbers_of(given: DenseArrayBase[IntegerType]) -> tuple[int, ...]:
    """The integers of a dense array."""
    return tuple(int(value) for value in given.get_values())


def _check_combining(op: GraphReduceOp | GraphScanOp, kept: tuple[int, ...]) -> None:
    """Raise VerifyException for operands of several shapes, results of another than `kept`, or another body."""
    shape = types.shape_of(op.operand_types[0])
    if any(types.shape_of(type) != shape for type in op.operand_types):
        raise VerifyException(f"{op.name} combines tensors of one shape")
    elements = [types.element_of(type) for type in op.operand_types]
    if [types.element_of(type) for type in op.result_types] != elements:
        raise VerifyException(f"{op.name} gives a tensor of each operand's element type")
    if any(types.shape_of(type) != kept for type in op.result_types):
        raise VerifyException(f"{op.name}: the results have shape {list(kept)}, got {op.result_types[0]}")
    check_body(op, op.body.block, elements * 2, elements, indices=False)


def _check_axes(op: GraphReduceOp | GraphScanOp) -> tuple[int, ...]:
    axes, rank = numbers_of(op.axes), types.rank_of(op.operand_types[0]) if op.operands else 0
    if not op.operands or not axes or sorted(set(axes)) != list(axes) or not all(0 <= axis < rank for axis in axes):
        raise VerifyException(f"{op.name}: axes {list(axes)} are no ascending dims of its operands")
    if any(types.shape_of(op.operand_types[0])[axis] == 0 for axis in axes):
        raise VerifyException(f"{op.name} combines at least one element")
    return axes


@irdl_op_definition
class GraphReduceOp(IRDLOperation):
    """Elements along the axes are combined by an associative and commutative body, in any order; the axes fall away."""

    name = "graph.reduce"
    inputs = var_operand_def(TensorType)
    axes = prop_def(Integers)
    outputs = var_result_def(TensorType)
    body = region_def("single_block")
    traits = traits_def(Pure(), IsolatedFromAbove())
    assembly_format = "`(` $inputs `)` `axes` $axes attr-dict `:` `(` type($inputs) `)` `->` `(` type($outputs) `)` $body"

    def verify_(self) -> None:
        axes = _check_axes(self)
        shape = types.shape_of(self.operand_types[0])
        _check_combining(self, tuple(extent for dim, extent in enumerate(shape) if dim not in axes))


@irdl_op_definition
class GraphScanOp(IRDLOperation):
    """Each element is combined with all before it along one axis, or with `reverse` all behind it."""

    name = "graph.scan"
    inputs = var_operand_def(TensorType)
    axes = prop_def(Integers)
    reverse = opt_prop_def(UnitAttr)
    outputs = var_result_def(TensorType)
    body = region_def("single_block")
    traits = traits_def(Pure(), IsolatedFromAbove())
    assembly_format = (
        "`(` $inputs `)` `axes` $axes (`reverse` $reverse^)? attr-dict `:` `(` type($inputs) `)` `->` `(` type($outputs) `)` $body"
    )

    def verify_(self) -> None:
        if len(_check_axes(self)) != 1:
            raise VerifyException("graph.scan goes along one axis")
        _check_combining(self, types.shape_of(self.operand_types[0]))


@irdl_op_definition
class ContractOp(IRDLOperation):
    """Sums of products over an index space; products of matrices and convolutions are contractions."""

    name = "graph.contract"
    left = operand_def(TensorType)
    right = operand_def(TensorType)
    left_map = prop_def(AffineMapAttr)
    right_map = prop_def(AffineMapAttr)
    sizes = prop_def(Integers)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = (
        "$left `[` $left_map `]` `,` $right `[` $right_map `]` `sizes` $sizes attr-dict"
        " `:` type($left) `,` type($right) `->` type($result)"
    )

    @property
    def extents(self) -> tuple[int, ...]:
        """The extent of every dim of the index space: those of the result, then those that are summed over."""
        return numbers_of(self.sizes)

    @property
    def summed(self) -> tuple[int, ...]:
        """The extents of the dims that are summed over."""
        return self.extents[types.rank_of(self.result.type) :]

    def verify_(self) -> None:
        kept = types.shape_of(self.result.type)
        if self.extents[: len(kept)] != kept:
            raise VerifyException(f"graph.contract: {self.result.type} has not the first of the sizes {list(self.extents)}")
        for value, map in ((self.left, self.left_map.data), (self.right, self.right_map.data)):
            check_map(self, map, len(self.extents), types.rank_of(value.type))
        operands = [types.element_of(value.type) for value in self.operands]
        if operands[0] != operands[1] or types.is_float(operands[0]) != types.is_float(self.result.type):
            raise VerifyException("graph.contract multiplies elements of one type, and sums floats as floats, integers as integers")


def check_map(op: IRDLOperation, map: AffineMap, dims: int, results: int) -> None:
    """Raise VerifyException for an index map that is not linear, or not from `dims` indices to `results`."""
    if map.num_dims != dims or map.num_symbols or len(map.results) != results:
        raise VerifyException(f"{op.name}: a map goes from {dims} indices to {results}, got {map}")
    if any(linear_terms(expression, dims) is None for expression in map.results):
        raise VerifyException(f"{op.name}: the map {map} is not linear")
