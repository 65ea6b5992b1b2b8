"""The order of lowering: tile IR to lanes (core's `tile-to-lane`), lanes to PTX instructions (here), then `emit`.

`SimtBackend.pipeline` runs the two; registers stay virtual, as PTX has no others, so little follows: `reduce-warps` and
`rematerialise`. This file gives the second step and those passes one name for `tilefw opt`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilefw.api import UsageError
from tilefw.api.ir import Context, ModuleOp, ModulePass
from tilefw.api.simt import selection_passes
from tilefw_nvidia.chips import Chip, chips
from tilefw_nvidia.select.lanes import PtxChip
from tilefw_nvidia.select.registers_needed import rematerialise
from tilefw_nvidia.select.warp_reductions import ReduceWarps


@dataclass(frozen=True)
class LaneToPtx(ModulePass):
    """`lane-to-ptx{fusion=false target="NAME"}`: without fusion no multiplication and addition are contracted."""

    name = "lane-to-ptx"
    fusion: bool = True
    target: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        chip = _chip(self.target)
        after = (ReduceWarps(chip), rematerialise(chip, None))
        for each in (*selection_passes(PtxChip(chip, self.fusion), chip.target), *after):
            each.apply(ctx, op)


def _chip(target: str) -> Chip:
    """The chip of a target's name, the oldest for none; raises UsageError."""
    by_target = {chip.target: chip for chip in chips().values()}
    found = by_target.get(target or next(iter(by_target)))
    if found is None:
        raise UsageError(f"no target {target!r} of this plugin", code="TFW0902", help=f"there are {', '.join(by_target)}")
    return found
