"""Constants, and the op that computes each element from those at its place by rows of the elementwise table.

    %z = graph.map (%x, %y) : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>) {
    ^bb0(%a : f32, %b : f32):
      %c = tile.addf %a, %b : f32
      graph.yield %c : f32
    }

The body takes one scalar of each operand and may use elementwise ops, `tile.constant` and `graph.index`, which gives the place
along a dim.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, TensorType
from xdsl.ir import Attribute, Block, Operation
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from tilefw.graph.dialect.elements import StoredElements
from tilefw.tile import types
from tilefw.tile.dialect.constant_op import ConstantOp
from tilefw.tile.dialect.elementwise_op import ElementwiseOp

TensorAttr = TensorType[Attribute]


@irdl_op_definition
class GraphConstantOp(IRDLOperation):
    """Elements that are known when the model is read."""

    name = "graph.constant"
    value = prop_def(StoredElements)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "$value attr-dict `:` type($result)"

    def verify_(self) -> None:
        type = self.result.type
        wanted = types.dtype_of(type).storage_bits // 8
        for extent in types.shape_of(type):
            wanted *= extent
        if self.value.data.nbytes != wanted:
            raise VerifyException(f"graph.constant: {type} has {wanted} bytes, got {self.value.data.nbytes}")


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends the body of a graph op with its results."""

    name = "graph.yield"
    values = var_operand_def(AnyAttr())
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "$values attr-dict `:` type($values)"


@irdl_op_definition
class IndexOp(IRDLOperation):
    """The place along dim `dim` of the element that a `graph.map` computes."""

    name = "graph.index"
    dim = prop_def(IntegerAttr)
    result = result_def(types.i32)
    traits = traits_def(Pure())
    assembly_format = "$dim attr-dict"

    def verify_(self) -> None:
        parent = self.parent_op()
        if not isinstance(parent, MapOp):
            raise VerifyException("graph.index stands in the body of a graph.map only")
        if not 0 <= self.dim.value.data < len(parent.shape):
            raise VerifyException(f"graph.index: {parent.results[0].type} has no dim {self.dim.value.data}")


def check_body(op: IRDLOperation, block: Block, arguments: list[Attribute], results: list[Attribute], indices: bool) -> None:
    """Raise VerifyException where a body of scalar ops has other arguments or results, or an op that is not one."""
    if list(block.arg_types) != arguments:
        raise VerifyException(f"{op.name}: its body takes {_listed(arguments)}, got {_listed(list(block.arg_types))}")
    last = block.last_op
    if not isinstance(last, YieldOp):
        raise VerifyException(f"{op.name}: its body ends in graph.yield")
    if list(last.operand_types) != results:
        raise VerifyException(f"{op.name}: its body gives {_listed(results)}, got {_listed(list(last.operand_types))}")
    for inner in block.ops:
        if inner is not last and not _is_scalar_op(inner, indices):
            raise VerifyException(f"{op.name}: {inner.name} is no scalar op of a body")


def _is_scalar_op(op: Operation, indices: bool) -> bool:
    if isinstance(op, IndexOp):
        return indices
    return isinstance(op, ElementwiseOp | ConstantOp) and not any(types.shape_of(result.type) for result in op.results)


def _listed(found: list[Attribute]) -> str:
    return ", ".join(map(str, found)) or "nothing"


@irdl_op_definition
class MapOp(IRDLOperation):
    """Each element of the results is what the body gives for the operands' elements at its place."""

    name = "graph.map"
    inputs = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)
    body = region_def("single_block")
    traits = traits_def(Pure(), IsolatedFromAbove())
    assembly_format = "`(` $inputs `)` attr-dict `:` `(` type($inputs) `)` `->` `(` type($outputs) `)` $body"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of every operand and result."""
        return types.shape_of(self.results[0].type)

    def verify_(self) -> None:
        if not self.results:
            raise VerifyException("graph.map gives at least one tensor")
        for value in (*self.operands, *self.results):
            if types.shape_of(value.type) != self.shape:
                raise VerifyException(f"graph.map has tensors of one shape, got {value.type} and {self.results[0].type}")
        elements = [types.element_of(type) for type in self.operand_types]
        check_body(self, self.body.block, elements, [types.element_of(type) for type in self.result_types], indices=True)
