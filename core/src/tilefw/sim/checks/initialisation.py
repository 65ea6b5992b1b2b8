"""initialisation: undefined bits travel with values and are an error where they decide something that cannot be taken back.

Those places are addresses, branch and guard conditions, operands of atomics and stores to global memory. In shared and local
memory they stay poison (a layout conversion may move lanes that nobody reads), and are reported when they get further.
"""

from __future__ import annotations

import numpy as np

from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.checks.check import Check
from tilefw.sim.floats import Array
from tilefw.sim.memory.access import Piece
from tilefw.sim.report import first_true

CODE = "TFW0803"


class Initialisation(Check):
    """Reports where undefined bits decide."""

    name = "initialisation"
    follows_undefined = True

    def undefined(self, lanes: NumpyLanes, what: str, bad: Array) -> None:
        if lanes.mask is not None:
            bad = bad & lanes.mask
        bad = np.broadcast_to(bad, lanes.frame.shape)
        if not bad.any():
            return
        lanes.launch.diagnostics.reporter.add(
            self.name, CODE, f"{what} is not initialised", lanes.instruction, count=int(bad.sum()),
            where=lanes.locate(*first_true(bad)), note="the value comes from a register or memory that was never written",
        )

    def undefined_memory(self, lanes: NumpyLanes, piece: Piece, poison: Array) -> None:
        assert piece.lanes is not None, "atomics name their lanes"
        bad = np.zeros(lanes.frame.shape, dtype=np.bool_)
        bad[piece.lanes] = poison.view(np.uint8).reshape(len(poison), -1).any(axis=1)
        a, b, lane = first_true(bad)
        address = int(piece.region.base + piece.index[np.argmax(bad[piece.lanes])])
        name = f" of {piece.region.label}" if piece.region.label else ""
        lanes.launch.diagnostics.reporter.add(
            self.name, CODE, f"atomic operation on memory{name} that was never written", lanes.instruction,
            count=int(bad.sum()), where=lanes.locate(a, b, lane), address=address,
        )
