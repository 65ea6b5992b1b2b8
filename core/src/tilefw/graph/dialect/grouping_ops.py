"""Ops that stand for one launch: a group of graph ops that are computed together, and a kernel that is not looked into.

    %y = graph.fused "rows" (%x) : (tensor<4x8xf32>) -> (tensor<4x8xf32>) {
    ^bb0(%0 : tensor<4x8xf32>):
      …
      graph.yield %9 : tensor<4x8xf32>
    }
    %k = graph.kernel "topk" (%x) : (tensor<4x8xf32>) -> (tensor<4x2xf32>)
"""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, region_def, traits_def, var_operand_def, var_result_def
from xdsl.traits import IsolatedFromAbove, Pure
from xdsl.utils.exceptions import VerifyException

from tilefw.graph.dialect.pointwise_ops import YieldOp


@irdl_op_definition
class FusedOp(IRDLOperation):
    """Graph ops that one kernel computes; `kind` names who writes it."""

    name = "graph.fused"
    kind = prop_def(StringAttr)
    inputs = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)
    body = region_def("single_block")
    traits = traits_def(Pure(), IsolatedFromAbove())
    assembly_format = "$kind `(` $inputs `)` attr-dict `:` `(` type($inputs) `)` `->` `(` type($outputs) `)` $body"

    def verify_(self) -> None:
        block = self.body.block
        if list(block.arg_types) != list(self.operand_types):
            raise VerifyException("graph.fused: its body takes the operands")
        if not isinstance(block.last_op, YieldOp) or list(block.last_op.operand_types) != list(self.result_types):
            raise VerifyException("graph.fused: its body ends in a graph.yield of the results")


@irdl_op_definition
class OpaqueKernelOp(IRDLOperation):
    """A launch of the kernel that the model has under this name: it reads the operands and writes the results."""

    name = "graph.kernel"
    kernel = prop_def(StringAttr)
    inputs = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "$kernel `(` $inputs `)` attr-dict `:` `(` type($inputs) `)` `->` `(` type($outputs) `)`"
