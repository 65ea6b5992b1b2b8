"""alignment: an access of n bytes (vectors: of all n together) is at a multiple of n, or of less where the instruction
allows less. A fault ends the launch."""

from __future__ import annotations

import numpy as np

from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.checks.check import Check
from tilefw.sim.floats import Array
from tilefw.sim.report import LaunchStopped, first_true


class Alignment(Check):
    """Looks at the addresses of every access."""

    name = "alignment"

    def address(self, lanes: NumpyLanes, address: Array, flat: Array, multiple: int, size: int, mask: Array | None) -> None:
        if multiple <= 1 or not int(np.bitwise_or.reduce(flat, axis=None)) & (multiple - 1):
            return
        full = np.broadcast_to(address, lanes.frame.shape)
        bad = (full & np.uint64(multiple - 1)) != 0
        if mask is not None:
            bad = bad & mask
        a, b, lane = first_true(bad)
        where = int(full[a, b, lane])
        region = lanes.launch.memory.allocations.find(where)
        name = f" in {region.label}" if region is not None and region.label else ""
        lanes.launch.diagnostics.reporter.add(
            self.name, "TFW0802", f"access of {size} bytes at address {where:#x}{name}, which is not a multiple of {multiple}",
            lanes.instruction, count=int(bad.sum()), where=lanes.locate(a, b, lane), address=where,
        )
        raise LaunchStopped
