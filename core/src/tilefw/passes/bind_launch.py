"""A kernel as one launch sees it: scalar arguments are numbers, and so are the grid's extents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass

from tilefw.api.launch import LaunchArguments
from tilefw.passes.rewriting import place_before, replace
from tilefw.tile import types
from tilefw.tile.dialect.kernel_info import argument_attributes
from tilefw.tile.dialect.ops import ConstantOp, NumProgramsOp, ProgramIdOp
from tilefw.tile.numbers import round_to


@dataclass(frozen=True)
class BindLaunchPass(ModulePass):
    """Puts constants in place of the scalars that `launch` names, of the grid's extents, and of program ids that can only be 0.

    The parameters stay, so that arguments still match the entry; what follows from the constants, later passes fold.
    """

    name = "bind-launch"
    launch: LaunchArguments

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for operation in list(op.walk()):
            if isinstance(operation, func.FuncOp):
                self._bind_scalars(operation)
            elif isinstance(operation, NumProgramsOp):
                _to_constant(operation, self.launch.grid[operation.axis])
            elif isinstance(operation, ProgramIdOp) and self.launch.grid[operation.axis] == 1:
                _to_constant(operation, 0)

    def _bind_scalars(self, function: func.FuncOp) -> None:
        block = function.body.block
        first = block.first_op
        assert first is not None
        for index, argument in enumerate(block.args):
            named = argument_attributes(function, index).get("tile.name")
            name = named.data if isinstance(named, StringAttr) else ""
            if name in self.launch.scalars and not types.is_pointer(argument.type):
                constant = ConstantOp(_fitted(self.launch.scalars[name], argument.type), argument.type)
                place_before(constant, first)
                argument.replace_all_uses_with(constant.results[0])


def _fitted(value: int | float, type: Attribute) -> int | float:
    """The number as its parameter holds it: floats are rounded to the format (integers wrap in the constant itself)."""
    return float(round_to(np.asarray(value, np.float64), types.dtype_of(type))) if types.is_float(type) else value


def _to_constant(operation: Operation, value: int) -> None:
    constant = ConstantOp(value, operation.results[0].type)
    place_before(constant, operation)
    replace(operation, constant.results[0])
