"""Ops of a model that several ranks run, each with the same module: a rank's part of a tensor, and what all ranks do together.

    %w = graph.part %whole axis 0 of 4 : tensor<64x16xf32> to tensor<16x16xf32>
    %s = graph.collective "all_reduce" %y of 4 : tensor<8x16xf32> to tensor<8x16xf32>

All ranks have the same inputs and constants. A `graph.part` of one is the rank's share along an axis, so that no rank keeps the
others'. A collective is one of `tilefw.graph.collective_kinds`.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, StringAttr, TensorType, i64
from xdsl.ir import Block
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tilefw.graph.collective_kinds import COLLECTIVE_KINDS, SUMMED
from tilefw.graph.dialect.pointwise_ops import GraphConstantOp
from tilefw.tile import types


@irdl_op_definition
class PartOp(IRDLOperation):
    """The rank's part of a constant or an input, of as many equal parts along an axis as there are ranks."""

    name = "graph.part"
    source = operand_def(TensorType)
    axis = prop_def(IntegerAttr.constr(i64))
    ranks = prop_def(IntegerAttr.constr(i64))
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "$source `axis` $axis `of` $ranks attr-dict `:` type($source) `to` type($result)"

    def verify_(self) -> None:
        ranks, axis, shape = ranks_of(self), self.axis.value.data, types.shape_of(self.source.type)
        if not 0 <= axis < len(shape) or shape[axis] % ranks:
            raise VerifyException(f"graph.part: {self.source.type} has no {ranks} equal parts along axis {axis}")
        wanted = (*shape[:axis], shape[axis] // ranks, *shape[axis + 1 :])
        if self.result.type != TensorType(types.element_of(self.source.type), wanted):
            raise VerifyException(f"graph.part: each part of {self.source.type} has shape {list(wanted)}, got {self.result.type}")
        if not isinstance(self.source.owner, Block | GraphConstantOp):
            raise VerifyException("graph.part is of an input of the model or of a constant, which all ranks have")


@irdl_op_definition
class CollectiveOp(IRDLOperation):
    """What all ranks do together with a tensor that each of them has."""

    name = "graph.collective"
    kind = prop_def(StringAttr)
    source = operand_def(TensorType)
    ranks = prop_def(IntegerAttr.constr(i64))
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "$kind $source `of` $ranks attr-dict `:` type($source) `to` type($result)"

    def verify_(self) -> None:
        ranks, shape, element = ranks_of(self), types.shape_of(self.source.type), types.element_of(self.source.type)
        kind = COLLECTIVE_KINDS.get(self.kind.data)
        if kind is None:
            raise VerifyException(f"graph.collective: {self.kind.data!r} is none of {', '.join(COLLECTIVE_KINDS)}")
        if not shape or (kind.divides and shape[0] % ranks):
            raise VerifyException(f"graph.collective {self.kind}: {self.source.type} has no {ranks} equal parts along dim 0")
        if kind.sums and types.dtype_of(element).name not in SUMMED:
            raise VerifyException(f"graph.collective {self.kind} adds up in fp32: it takes {', '.join(SUMMED)}, not {element}")
        wanted = TensorType(element, kind.shape(shape, ranks))
        if self.result.type != wanted:
            raise VerifyException(f"graph.collective {self.kind} gives {wanted}, got {self.result.type}")


def ranks_of(op: PartOp | CollectiveOp) -> int:
    """How many ranks an op says that there are. Raises VerifyException for none."""
    ranks = op.ranks.value.data
    if ranks < 1:
        raise VerifyException(f"{op.name} is of {ranks} ranks")
    return ranks
