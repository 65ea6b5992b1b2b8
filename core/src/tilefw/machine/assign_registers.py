"""The pass that puts machine functions onto physical registers: allocates, checks the allocation, drops copies that became idle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tilefw.machine.allocate import allocate, drop_identities
from tilefw.machine.check import check_allocation, snapshot
from tilefw.machine.function_op import FuncOp
from tilefw.machine.inst import Function
from tilefw.machine.spill_model import SpillModel
from tilefw.machine.table import InstructionTable


@dataclass(frozen=True)
class AssignRegisters(ModulePass):
    """Notes what it used as attributes of the function: `registers` by file, and where values were spilled `spills` (smallest
    registers, by class) and `scratch_bytes` of a lane. Raises UnsupportedError (TFW0650).

    `limits`: registers that may be used, by file, where they are fewer than the chip has. `spills`: where values go that find no
    register; without it they are refused. `verify`: an independent checker replays the result.
    """

    name = "assign-registers"
    table: InstructionTable
    limits: Mapping[str, int] | None = None
    spills: SpillModel | None = None
    verify: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for machine in op.body.block.ops:
            if isinstance(machine, FuncOp):
                assign(machine.function, self.table, self.limits, self.spills, self.verify)


def assign(
    function: Function, table: InstructionTable, limits: Mapping[str, int] | None = None, spills: SpillModel | None = None,
    verify: bool = True,
) -> None:
    """Rewrite one function onto the physical registers of `table`; raises InternalError when the checker disagrees."""
    before = snapshot(function) if verify else None
    function.attributes["registers"] = allocate(function, table, limits)
    drop_identities(function, table)
    if before is not None:
        check_allocation(before, function, table, spills)
