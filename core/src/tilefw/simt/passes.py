"""The order of lowering from simplified tile IR to lane IR with its shared memory placed: one page, the same for every chip."""

from __future__ import annotations

from xdsl.passes import ModulePass

from tilefw.simt.description import Machine
from tilefw.simt.lower.tile_to_lane import TileToLane
from tilefw.simt.pipeline.loops import PipelineLoops
from tilefw.simt.pipeline.park import ParkOperands
from tilefw.simt.shared_memory.barriers import InsertBarriers
from tilefw.simt.shared_memory.placement import PlaceShared


def lane_passes(machine: Machine, num_stages: int, disjoint: bool = False) -> tuple[ModulePass, ...]:
    """The passes for a kernel of `machine.warps` warps; loops that feed a dot run `num_stages` iterations deep.

    `disjoint`: buffers of different arguments do not overlap.
    """
    return (
        PipelineLoops(machine, num_stages, disjoint),  # while loads, their addresses and loops are all still tile ops
        ParkOperands(machine),
        TileToLane(machine),
        PlaceShared(machine.chip.shared_bytes),
        InsertBarriers(disjoint),
    )
