"""The order behind selection: schedule, registers, real instructions, waits, wait states; then `emit`."""

from __future__ import annotations

from collections.abc import Sequence

from tilefw.api import CompileOptions, TargetInfo
from tilefw.api.ir import ModulePass
from tilefw.api.machine import FillWaitStates, InsertWaits, Inst, Operand, ScheduleInstructions, Slice, TieOperands
from tilefw.api.simt import assign_registers
from tilefw_amd import occupancy, replay, spill, wait_states, waits
from tilefw_amd.finish import Finish
from tilefw_amd.isa.vocabulary import instructions


def copy(to: Slice, source: Operand) -> Inst:
    """A copy within a class, or of a constant into it."""
    return Inst(f"move.{to.reg.cls}", [to], [source])


def machine_passes(target: TargetInfo, options: CompileOptions) -> Sequence[ModulePass]:
    table = instructions(target.name)
    steps = {"v": occupancy.steps(target.limits), "s": occupancy.SCALAR_STEPS}
    return (
        ScheduleInstructions(table, steps, "disjoint" in options.facts, options.verify),
        TieOperands(copy),
        assign_registers(table, spill.limits(target, options.num_warps, options.maxnreg), spill.MODEL, options.verify),
        Finish(),
        InsertWaits(table, waits.MODEL, replay.seen if options.verify else None),
        FillWaitStates(table, wait_states.model(), replay.rules() if options.verify else None),
    )
