"""The order of lowering: tile IR to lanes (core's `tile-to-lane`), lanes to PTX instructions (here), then `emit`.

`SimtBackend.pipeline` runs the two; registers stay virtual, as PTX has no others, so nothing follows. This file gives the
second step its name for `tilefw opt`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilefw.api.ir import Context, ModuleOp, ModulePass
from tilefw.api.simt import lane_to_machine
from tilefw_nvidia.chip import PtxChip
from tilefw_nvidia.target import SM80


@dataclass(frozen=True)
class LaneToPtx(ModulePass):
    """`lane-to-ptx{fusion=false}`: without fusion no multiplication and addition are contracted."""

    name = "lane-to-ptx"
    fusion: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lane_to_machine(PtxChip(self.fusion), SM80.name).apply(ctx, op)
