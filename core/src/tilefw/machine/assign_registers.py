"""The pass that puts machine functions onto physical registers: allocates, checks the allocation, drops copies that became idle."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tilefw.machine.allocate import allocate, drop_identities
from tilefw.machine.check import check_allocation
from tilefw.machine.function_op import FuncOp
from tilefw.machine.inst import Function
from tilefw.machine.table import InstructionTable
from tilefw.machine.text import parse_function, print_function


@dataclass(frozen=True)
class AssignRegisters(ModulePass):
    """Notes the registers used, by class, as the function's attribute `registers`. Raises UnsupportedError (TFW0650)."""

    name = "assign-registers"
    table: InstructionTable

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for machine in op.body.block.ops:
            if isinstance(machine, FuncOp):
                assign(machine.function, self.table)


def assign(function: Function, table: InstructionTable) -> None:
    """Rewrite one function onto the physical registers of `table`; raises InternalError when the checker disagrees."""
    virtual = parse_function(print_function(function))
    function.attributes["registers"] = allocate(function, table)
    check_allocation(virtual, function, table)
    drop_identities(function, table)
