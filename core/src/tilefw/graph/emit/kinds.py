"""The kinds of groups, and who writes the kernel of each: the first kind whose root op is in the group."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from math import prod

from xdsl.ir import Operation, SSAValue

from tilefw.graph.dialect.combining_ops import ContractOp, GraphReduceOp, GraphScanOp
from tilefw.graph.dialect.moving_ops import GraphSortOp, ScatterOp
from tilefw.graph.emit.lines import LinesText
from tilefw.graph.emit.planes import PlanesText
from tilefw.graph.emit.pointwise import PointwiseText
from tilefw.graph.emit.rows import RowsText, walked
from tilefw.graph.emit.scatter import ScatterText
from tilefw.graph.emit.tile_text import NotOneKernelError, TileText
from tilefw.tile import types


def write(inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> tuple[str, TileText]:
    """The kind and the kernel that computes `outputs` from `inputs`, which are in memory. Raises NotOneKernelError where no kernel
    does in one launch, UnsupportedError where none can at all."""
    scatter = next((value.owner for value in outputs if isinstance(value.owner, ScatterOp)), None)
    if scatter is not None:
        if len(outputs) > 1:
            raise NotOneKernelError("a scatter beside other outputs")
        return "scatter", ScatterText("scatter", inputs, scatter)
    ops = _ops(inputs, outputs)
    anchor = next((op for op in ops if _is_rows(op)), None)
    if isinstance(anchor, GraphReduceOp | GraphScanOp | GraphSortOp):
        return "rows", RowsText("rows", inputs, outputs, anchor)
    if any(isinstance(op, ContractOp) for op in ops):
        for kind, write_kind in (("planes", PlanesText), ("lines", LinesText)):
            with suppress(NotOneKernelError):
                return kind, write_kind(kind, inputs, outputs)
    return "pointwise", PointwiseText("pointwise", inputs, outputs)


def _is_rows(op: Operation) -> bool:
    if not isinstance(op, GraphReduceOp | GraphScanOp | GraphSortOp):
        return False
    shape = types.shape_of(op.operands[0].type)
    return prod(shape[axis] for axis in walked(op)) > 1


def _ops(inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> list[Operation]:
    """The ops between inputs and outputs."""
    found: dict[Operation, None] = {}
    work = list(outputs)
    while work:
        value = work.pop()
        if value in inputs or not isinstance(value.owner, Operation) or value.owner in found:
            continue
        found[value.owner] = None
        work += value.owner.operands
    return list(found)
