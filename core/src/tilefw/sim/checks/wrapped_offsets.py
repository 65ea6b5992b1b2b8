"""bounds: no access is made at an offset that has wrapped around its width, which may lie in bounds again.

Our compilers compute offsets in as few bits as those of every access in bounds need, and say which instructions do so
(`Program.promises`). The exact integers are followed beside the registers; what wraps around on the way and is right again, or is
never used by an access that is made, is no finding.
"""

from __future__ import annotations

import numpy as np

from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.checks.bounds import VERBS, location
from tilefw.sim.checks.check import Check
from tilefw.sim.floats import Array
from tilefw.sim.memory.access import AccessKind
from tilefw.sim.report import first_true

CODE = "TFW0817"


class WrappedOffsets(Check):
    """Reports where an access is meant, and where it is made."""

    name = "bounds"
    follows_offsets = True

    def wrapped(
        self, lanes: NumpyLanes, space: str, address: Array, integers: Array, size: int, kind: AccessKind, bad: Array
    ) -> None:
        a, b, lane = first_true(bad)
        made, meant = (int(np.broadcast_to(of, lanes.frame.shape)[a, b, lane]) for of in (address, integers))
        lanes.launch.diagnostics.reporter.add(
            self.name, CODE, f"{VERBS[kind]} {size} bytes at an offset that has wrapped around", lanes.instruction,
            count=int(bad.sum()), where=lanes.locate(a, b, lane), address=made, note=_places(lanes, made, meant),
        )


def _places(lanes: NumpyLanes, made: int, meant: int) -> str:
    region = lanes.launch.memory.allocations.find(made)
    if region is None or not region.label:
        return f"it is meant {location(lanes, 'global', meant)}"
    return (
        f"it is meant at offset {meant - region.base} of {region.label}, which has {region.size} bytes, "
        f"and made at offset {made - region.base}"
    )
