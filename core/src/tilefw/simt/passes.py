"""The order of the kit's passes from simplified tile IR to selected machine code, on one page; a chip's own passes follow."""

from __future__ import annotations

from xdsl.passes import ModulePass

from tilefw.machine.coalesce import Coalesce
from tilefw.machine.dead import EliminateDead
from tilefw.machine.early_ends import EarlyEnds
from tilefw.machine.hoist import Hoist
from tilefw.machine.late_begins import LateBegins
from tilefw.simt.asynchronous.check_phases import CheckPhases
from tilefw.simt.asynchronous.check_products import CheckProducts
from tilefw.simt.asynchronous.dots import AsynchronousDots
from tilefw.simt.asynchronous.late_copies import LateCopies
from tilefw.simt.asynchronous.phases import PlacePhases
from tilefw.simt.asynchronous.waits import PlaceAtomWaits
from tilefw.simt.chip import LaneChip
from tilefw.simt.description import LaneMachine
from tilefw.simt.lower.tile_to_lane import TileToLane
from tilefw.simt.roles.check_roles import CheckRoles
from tilefw.simt.roles.divide import DivideRoles
from tilefw.simt.select.combine import CombineInstructions
from tilefw.simt.select.lane_to_machine import SelectInstructions
from tilefw.simt.shared_memory.barriers import InsertBarriers
from tilefw.simt.shared_memory.placement import PlaceShared
from tilefw.simt.software_pipeline.invariants_to_shared import InvariantsToShared
from tilefw.simt.software_pipeline.loops import PipelineLoops
from tilefw.simt.software_pipeline.short_loops import UnrollShortLoops
from tilefw.simt.software_pipeline.whole_arrays import WholeArrays


def lane_passes(
    machine: LaneMachine, num_stages: int, most_stages: int | None = None, verify: bool = False
) -> tuple[ModulePass, ...]:
    """The passes for a kernel of `machine.waves` waves; loops that feed a dot run `num_stages` iterations deep, all loops at most
    `most_stages`. `verify`: an independent check follows what waits for products.
    """
    return (
        # Before what asks for loops. Where accesses add a lane's offset to an address of the wave, rounds cost the lanes little.
        *([] if machine.chip.offsets else [UnrollShortLoops()]),
        WholeArrays(machine, num_stages, most_stages),  # after loops that fall away, before loads are anything else
        PipelineLoops(machine, num_stages, most_stages),  # while loads, their addresses and loops are all still tile ops
        InvariantsToShared(machine),
        AsynchronousDots(machine),  # when all operands that a pipeline has in shared memory are there
        LateCopies(machine),
        TileToLane(machine),
        DivideRoles(machine),  # before each role's memory, waits and barriers
        PlaceShared(machine.chip.shared_bytes),
        PlaceAtomWaits(machine.chip.shared_views),  # before barriers, which order others behind what they wait for
        InsertBarriers(machine.disjoint),
        *([CheckProducts(machine.chip.shared_views), CheckRoles()] if verify else []),
        *([PlacePhases(machine.chip)] if machine.chip.copy_engine else []),
        *([CheckPhases()] if machine.chip.copy_engine and verify else []),
    )


def selection_passes(chip: LaneChip, target: str) -> tuple[ModulePass, ...]:
    """From lane IR to machine code of `chip` with virtual registers, without what selection leaves over."""
    combiner = chip.combiner
    return (
        SelectInstructions(chip, target),
        EliminateDead(chip.table),  # selection makes whole vectors, of which not every element is read
        *([] if combiner is None else [CombineInstructions(combiner), EliminateDead(chip.table)]),
        *([EarlyEnds(chip.table), LateBegins(chip.table)] if chip.early_ends else []),
        *([Hoist(chip.table, chip.steps)] if chip.steps else []),  # before coalescing, while each value has its own register
        Coalesce(chip.table, straight_line=bool(chip.consecutive)),
    )
