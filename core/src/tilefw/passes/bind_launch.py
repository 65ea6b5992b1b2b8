"""A kernel as one launch sees it: scalar arguments are numbers, the grid's extents too, and what follows from them is folded.

Structured access has then taken address arithmetic out, so that the operations left are those which the launch needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation

from tilefw.passes.canonicalize import CanonicalizePass
from tilefw.passes.cse import CsePass
from tilefw.passes.dce import DcePass
from tilefw.passes.rewriting import place_before, replace
from tilefw.passes.scalarize_carried import ScalarizeCarriedPass
from tilefw.passes.structured_access import StructuredAccessPass
from tilefw.tile import types
from tilefw.tile.kernel_info import argument_attributes
from tilefw.tile.ops import ConstantOp, NumProgramsOp, ProgramIdOp

_PASSES = (
    CanonicalizePass, CsePass, ScalarizeCarriedPass, StructuredAccessPass, CanonicalizePass, CsePass, DcePass,
)


def bound(module: ModuleOp, scalars: Mapping[str, int | float], grid: Sequence[int]) -> ModuleOp:
    """A copy of `module` for one launch: `scalars` by parameter name, `grid` of up to three extents.

    The copy is for reading: nothing executes it.
    """
    copy = module.clone()
    for operation in list(copy.walk()):
        if isinstance(operation, func.FuncOp):
            _bind_scalars(operation, scalars)
        elif isinstance(operation, NumProgramsOp):
            _to_constant(operation, _extent(grid, operation.axis))
        elif isinstance(operation, ProgramIdOp) and _extent(grid, operation.axis) == 1:
            _to_constant(operation, 0)
    context = Context()
    for step in _PASSES:
        step().apply(context, copy)
    return copy


def _extent(grid: Sequence[int], axis: int) -> int:
    return grid[axis] if axis < len(grid) else 1


def _bind_scalars(function: func.FuncOp, scalars: Mapping[str, int | float]) -> None:
    block = function.body.block
    first = block.first_op
    assert first is not None
    for index, argument in enumerate(block.args):
        named = argument_attributes(function, index).get("tile.name")
        name = named.data if isinstance(named, StringAttr) else ""
        if name in scalars and not types.is_pointer(argument.type):
            constant = ConstantOp(scalars[name], argument.type)
            place_before(constant, first)
            argument.replace_all_uses_with(constant.results[0])


def _to_constant(operation: Operation, value: int) -> None:
    constant = ConstantOp(value, operation.results[0].type)
    place_before(constant, operation)
    replace(operation, constant.results[0])
