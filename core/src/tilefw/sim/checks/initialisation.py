"""initialisation: undefined bits travel with values and are an error where they decide something that cannot be taken back.

Those places are addresses, branch and guard conditions, operands of atomics and stores to global memory. In shared and local
memory they stay poison (a layout conversion may move lanes that nobody reads), and are reported when they get further.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilefw.sim.floats import Array
from tilefw.sim.report import first_true

CODE = "TFW0803"


def report(lanes: Any, what: str, bad: Array) -> None:
    """`bad` marks lanes whose `what` (address, condition, stored value) has undefined bits."""
    if not lanes.launch.track_poison or lanes.silent:
        return
    if lanes.mask is not None:
        bad = bad & lanes.mask
    bad = np.broadcast_to(bad, lanes.frame.shape)
    if not bad.any():
        return
    a, b, lane = first_true(bad)
    lanes.launch.reporter.add(
        "initialisation", CODE, f"{what} is not initialised", lanes.instruction, count=int(bad.sum()),
        where=lanes.locate(a, b, lane), note="the value comes from a register or memory that was never written",
    )


def report_memory(lanes: Any, piece: Any, poison: Array) -> None:
    """An atomic operation on memory that was never written."""
    bad = np.zeros(lanes.frame.shape, dtype=np.bool_)
    bad[piece.lanes] = poison.view(np.uint8).reshape(len(poison), -1).any(axis=1)
    a, b, lane = first_true(bad)
    address = int(piece.region.base + piece.index[np.argmax(bad[piece.lanes])])
    name = f" of {piece.region.label}" if piece.region.label else ""
    lanes.launch.reporter.add(
        "initialisation", CODE, f"atomic operation on memory{name} that was never written", lanes.instruction,
        count=int(bad.sum()), where=lanes.locate(a, b, lane), address=address,
    )
