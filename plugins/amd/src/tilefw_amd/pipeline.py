"""The order of lowering: tile IR to lanes (core's `tile-to-lane`), lanes to instructions, then the passes here; then `emit`.

`SimtBackend.pipeline` runs them all. For `tilefw opt` the two halves have names: `lane-to-gfx942` selects, `gfx942-code` makes
finished code of what was selected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilefw.api import CompileOptions, TargetInfo, UsageError
from tilefw.api.ir import Context, ModuleOp, ModulePass
from tilefw.api.machine import FillWaitStates, InsertWaits, Inst, Operand, ScheduleInstructions, Slice, TieOperands
from tilefw.api.simt import assign_registers, lane_to_machine
from tilefw_amd import occupancy, replay, spill, wait_states, waits
from tilefw_amd.chip import AmdLanes
from tilefw_amd.finish import Finish
from tilefw_amd.isa.vocabulary import instructions
from tilefw_amd.options import chosen
from tilefw_amd.target import MI300X


def copy(to: Slice, source: Operand) -> Inst:
    """A copy within a class, or of a constant into it."""
    return Inst(f"move.{to.reg.cls}", [to], [source])


def machine_passes(target: TargetInfo, options: CompileOptions) -> Sequence[ModulePass]:
    """Schedule, registers, real instructions, waits, wait states."""
    table = instructions(target.name)
    steps = {"v": occupancy.steps(target.limits), "s": occupancy.SCALAR_STEPS}
    said = target, options.num_warps, options.maxnreg, chosen(options)["waves_per_eu"]
    registers, why = spill.limits(*said), spill.limited_by(*said)
    return (
        ScheduleInstructions(table, steps, "disjoint" in options.facts, options.verify),
        TieOperands(copy),
        assign_registers(table, registers, spill.MODEL, options.verify, why),
        Finish(),
        InsertWaits(table, waits.MODEL, replay.seen if options.verify else None),
        FillWaitStates(table, wait_states.model(), replay.rules() if options.verify else None),
    )


@dataclass(frozen=True)
class LaneToGfx942(ModulePass):
    """`lane-to-gfx942{fusion=false disjoint=true}`: without fusion no product and sum of floats are contracted; disjoint buffers of
    different arguments do not overlap."""

    name = "lane-to-gfx942"
    fusion: bool = True
    disjoint: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lane_to_machine(AmdLanes(self.fusion, self.disjoint), MI300X.name).apply(ctx, op)


@dataclass(frozen=True)
class Gfx942Code(ModulePass):
    """`gfx942-code{until=assign-registers}`: the passes on machine code, checked, up to and with the one that is named; all without
    a name. `num_warps`, `maxnreg` and `disjoint` are what the launch would say."""

    name = "gfx942-code"
    until: str = ""
    num_warps: int = 4
    maxnreg: int | None = None
    disjoint: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        facts = frozenset({"disjoint"} if self.disjoint else ())
        passes = machine_passes(MI300X, CompileOptions(self.num_warps, maxnreg=self.maxnreg, facts=facts, verify=True))
        names = [each.name for each in passes]
        if self.until and self.until not in names:
            raise UsageError(f"{self.name} has no pass '{self.until}'", "TFW0404", help=f"its passes are {', '.join(names)}")
        for each in passes[: names.index(self.until) + 1 if self.until else None]:
            each.apply(ctx, op)
