"""The order behind selection: invariants out of loops, schedule, registers, real instructions, waits, wait states; then `emit`."""

from __future__ import annotations

from collections.abc import Sequence

from tilefw.api import CompileOptions, TargetInfo
from tilefw.api.ir import ModulePass
from tilefw.api.machine import FillWaitStates, HoistInvariants, InsertWaits, ScheduleInstructions
from tilefw.api.simt import assign_registers
from tilefw_amd import occupancy, replay, wait_states, waits
from tilefw_amd.finish import Finish
from tilefw_amd.isa.vocabulary import instructions

# Scalar registers cost no occupancy; what a schedule leaves of them is for pairs and for what assignment needs on the way.
_SCALARS = (64, 80, 96)


def machine_passes(target: TargetInfo, options: CompileOptions) -> Sequence[ModulePass]:
    table = instructions(target.name)
    steps = {"v": occupancy.steps(target.limits), "s": _SCALARS}
    return (
        HoistInvariants(table, steps),
        ScheduleInstructions(table, steps, "disjoint" in options.facts, options.verify),
        assign_registers(table, verify=options.verify),
        Finish(),
        InsertWaits(table, waits.MODEL, replay.seen if options.verify else None),
        FillWaitStates(table, wait_states.model(), replay.rules() if options.verify else None),
    )
