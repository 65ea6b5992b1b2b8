"""pending: bytes that an asynchronous copy will write are neither read nor written before a wait covers the copy."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilefw.sim.memory.regions import ELEMENTS
from tilefw.sim.report import first_true

CODE = "TFW0805"


def check(lanes: Any, pieces: Any, size: int, kind: str) -> None:
    """Look up the flags that the copies in flight have set on their destinations."""
    for piece in pieces:
        flags = piece.region.flags
        if flags is None:
            continue
        if not (np.bitwise_or.reduce(piece.index, axis=None) & (size - 1)):
            hit = np.take(flags.view(ELEMENTS[size]), piece.index >> (size.bit_length() - 1)) != 0
        else:
            hit = np.take(flags, piece.index[..., None] + np.arange(size)).any(axis=-1)
        if hit.any():
            _report(lanes, piece, hit, kind)


def _report(lanes: Any, piece: Any, hit: Any, kind: str) -> None:
    if piece.lanes is None:
        bad = np.broadcast_to(hit, lanes.frame.shape)
        index = np.broadcast_to(piece.index, lanes.frame.shape)[bad]
    else:
        bad = np.zeros(lanes.frame.shape, dtype=np.bool_)
        bad[piece.lanes] = hit
        index = piece.index[hit]
    a, b, lane = first_true(bad)
    address = int(index[0]) % max(1, piece.region.stride)
    origin = lanes.batch.copies.origin(piece.region, int(index[0]))
    lanes.launch.reporter.add(
        "pending", CODE, f"{'load' if kind == 'read' else 'store'} touches bytes that an asynchronous copy has not delivered yet",
        lanes.instruction, count=int(bad.sum()), where=lanes.locate(a, b, lane), address=address,
        other=None if origin is None else f"copy started by `{origin.text}`" + (f" ({origin.code})" if origin.code else ""),
        note="a wait for the copy, and a barrier where another thread started it, must stand between",
    )
