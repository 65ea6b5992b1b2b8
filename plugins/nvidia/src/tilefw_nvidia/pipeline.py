"""The order of lowering: tile IR to lanes (core's `tile-to-lane`), lanes to PTX instructions (here), then `emit`.

`SimtBackend.pipeline` runs the two; registers stay virtual, as PTX has no others, so nothing follows. This file gives the
second step its name for `tilefw opt`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilefw.api.ir import Context, ModuleOp, ModulePass
from tilefw.api.simt import lane_to_machine
from tilefw_nvidia.chips import CHIPS, chip_named
from tilefw_nvidia.select.lanes import PtxChip


@dataclass(frozen=True)
class LaneToPtx(ModulePass):
    """`lane-to-ptx{fusion=false target="nvidia-sm86"}`: without fusion no multiplication and addition are contracted."""

    name = "lane-to-ptx"
    fusion: bool = True
    target: str = CHIPS[0].target

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        chip = chip_named(self.target)
        lane_to_machine(PtxChip(chip, self.fusion), chip.target).apply(ctx, op)
