"""alignment: an access of n bytes (vectors: of all n together) stands at a multiple of n, or of less where the instruction
says so. A fault ends the launch."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from tilefw.sim.floats import Array
from tilefw.sim.report import Fault, first_true


def report(lanes: Any, address: Array, multiple: int, size: int, mask: Array | None) -> NoReturn:
    """Say which lane is misaligned; ends the launch."""
    full = np.broadcast_to(address, lanes.frame.shape)
    bad = (full & np.uint64(multiple - 1)) != 0
    if mask is not None:
        bad = bad & mask
    a, b, lane = first_true(bad)
    where = int(full[a, b, lane])
    region = lanes.launch.memory.find(where)
    name = f" in {region.label}" if region is not None and region.label else ""
    lanes.launch.reporter.add(
        "alignment", "TFW0802", f"access of {size} bytes at address {where:#x}{name}, which is no multiple of {multiple}",
        lanes.instruction, count=int(bad.sum()), where=lanes.locate(a, b, lane), address=where,
    )
    raise Fault
