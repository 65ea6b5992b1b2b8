"""What follows from constants alone is a constant: maps and reductions of small tensors are computed when the model is read.

Views, and maps that read no tensor, cost nothing where they are read, and stay as they are but for those that a run gives or a
kernel that is not looked into reads: these are in memory anyhow.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation, SSAValue

from tilefw.graph.dialect.combining_ops import GraphReduceOp
from tilefw.graph.dialect.elements import StoredElements
from tilefw.graph.dialect.grouping_ops import OpaqueKernelOp
from tilefw.graph.dialect.moving_ops import GraphReshapeOp, ViewOp
from tilefw.graph.dialect.pointwise_ops import GraphConstantOp, MapOp
from tilefw.graph.meaning import Array, model_function, results_of
from tilefw.tile import numbers, types

_MOST = 1 << 16  # elements that are computed in NumPy at most, of each tensor


def fold_constants(module: ModuleOp) -> None:
    """Compute what is constant, in place."""
    known: dict[SSAValue, Array] = {}
    block = model_function(module).body.block
    for op in list(block.ops):
        if any(prod(types.shape_of(result.type)) > _MOST for result in op.results):
            continue
        if isinstance(op, GraphConstantOp):
            known[op.result] = results_of(op, [])[0]
            continue
        folds = isinstance(op, MapOp | GraphReduceOp)
        if not (folds or isinstance(op, ViewOp | GraphReshapeOp)):
            continue
        if not op.operands or not all(one in known for one in op.operands):
            continue
        found = results_of(op, [known[operand] for operand in op.operands])
        for result, array in zip(list(op.results), found, strict=True):
            if not folds:
                known[result] = array
                _hold(result, array, op)
                continue
            made = _constant(result, array)
            known[made.result] = array
            block.insert_op_before(made, op)
            result.replace_all_uses_with(made.result)
        if folds:
            op.detach()
            op.erase()


def _hold(value: SSAValue, array: Array, op: Operation) -> None:
    """Let what reads a view's elements in memory read a constant."""
    uses = [use for use in value.uses if isinstance(use.operation, ReturnOp | OpaqueKernelOp)]
    if not uses:
        return
    made = _constant(value, array)
    assert op.parent is not None
    op.parent.insert_op_before(made, op)
    for use in uses:
        use.operation.operands[use.index] = made.result


def _constant(value: SSAValue, array: Array) -> GraphConstantOp:
    data = numbers.to_bytes(array.reshape(-1), types.dtype_of(value.type))
    return GraphConstantOp.create(
        properties={"value": StoredElements(memoryview(data.tobytes()))}, result_types=[value.type]
    )
