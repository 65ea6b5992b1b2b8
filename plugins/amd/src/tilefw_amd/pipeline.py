"""The order of lowering: tile IR to lanes (core's `tile-to-lane`), lanes to instructions, then the passes here; then `emit`.

`SimtBackend.pipeline` runs them all. For `tilefw opt` the two halves have names for each chip: `lane-to-CHIP` selects, `CHIP-code`
makes finished code of what was selected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from tilefw.api import CompileOptions, UsageError
from tilefw.api.ir import Context, ModuleOp, ModulePass
from tilefw.api.machine import (
    FillWaitStates,
    Function,
    InsertWaits,
    Inst,
    Operand,
    ScheduleInstructions,
    SinkIntoLoops,
    Slice,
    Steps,
    TieOperands,
)
from tilefw.api.simt import assign_registers, selection_passes
from tilefw_amd.chips import Chip, chips, named, occupancy
from tilefw_amd.isa.set import instruction_set
from tilefw_amd.machine import spill, verify, wait_states, waits
from tilefw_amd.machine.copies import RemoveMarkers
from tilefw_amd.machine.expand import ExpandPseudos
from tilefw_amd.machine.traits import instructions
from tilefw_amd.options import chosen
from tilefw_amd.select.lanes import AmdLanes


def copy(to: Slice, source: Operand) -> Inst:
    """A copy within a class, or of a constant into it."""
    return Inst(f"move.{to.reg.cls}", [to], [source])


def _worth_going_down_to(chip: Chip, function: Function) -> Steps:
    known = function.attributes
    return {} if known.workgroup is None else occupancy.reachable(chip, math.prod(known.workgroup), known.shared_bytes)


def machine_passes(chip: Chip, options: CompileOptions) -> Sequence[ModulePass]:
    """Schedule, registers, real instructions, waits, wait states."""
    isa = instruction_set(chip)
    table = instructions(isa)
    asked = chip, options.num_warps, options.maxnreg, chosen(options)["waves_per_eu"]
    registers, why = spill.limits(*asked), spill.limited_by(*asked)
    return (
        SinkIntoLoops(table),
        ScheduleInstructions(
            table, occupancy.steps(chip), "disjoint" in options.facts, options.verify, partial(_worth_going_down_to, chip)
        ),
        TieOperands(copy),
        assign_registers(table, registers, spill.model(isa), options.verify, why, occupancy.steps(chip)),
        ExpandPseudos(),
        InsertWaits(table, waits.model(isa), partial(verify.seen, isa) if options.verify else None),
        RemoveMarkers(),
        FillWaitStates(table, wait_states.model(isa), verify.rules(isa) if options.verify else None),
    )


@dataclass(frozen=True)
class LaneToMachine(ModulePass):
    """`lane-to-CHIP{fusion=false disjoint=true}`: without fusion no product and sum of floats are contracted; disjoint buffers of
    different arguments do not overlap."""

    chip: ClassVar[Chip]
    fusion: bool = True
    disjoint: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lanes = AmdLanes(instruction_set(self.chip), self.fusion, self.disjoint)
        for each in selection_passes(lanes, self.chip.target):
            each.apply(ctx, op)


@dataclass(frozen=True)
class MachineCode(ModulePass):
    """`CHIP-code{until=assign-registers}`: the passes on machine code, checked, up to and with the one that is named; all without
    a name. `num_warps`, `maxnreg` and `disjoint` are what the launch would say."""

    chip: ClassVar[Chip]
    until: str = ""
    num_warps: int = 4
    maxnreg: int | None = None
    disjoint: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        facts = frozenset({"disjoint"} if self.disjoint else ())
        passes = machine_passes(self.chip, CompileOptions(self.num_warps, maxnreg=self.maxnreg, facts=facts, verify=True))
        names = [each.name for each in passes]
        if self.until and self.until not in names:
            raise UsageError(f"{self.name} has no pass '{self.until}'", "TFW0404", help=f"its passes are {', '.join(names)}")
        for each in passes[: names.index(self.until) + 1 if self.until else None]:
            each.apply(ctx, op)


def __getattr__(name: str) -> type[ModulePass]:
    """`lane_to_CHIP` and `CHIP_code`: the two passes of a chip (`plugin.tilefw_passes`)."""
    chip_name = name.removeprefix("lane_to_").removesuffix("_code")
    if chip_name == name or chip_name not in chips():
        raise AttributeError(name)
    kind, pass_name = (LaneToMachine, f"lane-to-{chip_name}") if name.startswith("lane") else (MachineCode, f"{chip_name}-code")
    made: Any = type(name, (kind,), {"name": pass_name, "chip": named(chip_name), "__doc__": kind.__doc__, "__module__": __name__})
    return made
