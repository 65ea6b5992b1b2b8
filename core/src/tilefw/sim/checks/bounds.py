"""bounds: every access is inside a live allocation, and none writes what is read-only. A fault ends the launch.

An access without memory behind it cannot be executed, so this check is never off.
"""

from __future__ import annotations

import numpy as np

from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.checks.check import Check
from tilefw.sim.floats import Array
from tilefw.sim.memory.access import AccessKind
from tilefw.sim.memory.regions import Region
from tilefw.sim.report import first_true

VERBS: dict[AccessKind, str] = {"read": "load of", "write": "store of", "atomic": "atomic access to"}


class Bounds(Check):
    """Reports which lane is out of bounds, and how far."""

    name = "bounds"

    def out_of_bounds(
        self, lanes: NumpyLanes, space: str, address: Array, size: int, kind: AccessKind, mask: Array | None, region: Region | None
    ) -> None:
        base = region.base if region is not None and space == "global" else 0
        bad = _bad(lanes, address, size, mask, region, base)
        if space == "global":
            bad = bad & _outside_all(lanes, address, size)
        if not bad.any():
            bad = np.broadcast_to(np.True_ if mask is None else mask, lanes.frame.shape)
        a, b, lane = first_true(bad)
        where = int(np.broadcast_to(address, lanes.frame.shape)[a, b, lane])
        self.launch.diagnostics.reporter.add(
            self.name, "TFW0801", f"{VERBS[kind]} {size} bytes out of bounds, {location(lanes, space, where)}", lanes.instruction,
            count=int(bad.sum()), where=lanes.locate(a, b, lane), address=where,
        )

    def write_to_readonly(self, lanes: NumpyLanes, region: Region, address: Array, mask: Array | None) -> None:
        bad = np.broadcast_to(np.True_ if mask is None else mask, lanes.frame.shape)
        a, b, lane = first_true(bad)
        where = int(np.broadcast_to(address, lanes.frame.shape)[a, b, lane])
        self.launch.diagnostics.reporter.add(
            self.name, "TFW0809", f"write to {region.label or 'an allocation'}, which is read-only", lanes.instruction,
            count=int(bad.sum()), where=lanes.locate(a, b, lane), address=where,
        )


def _bad(lanes: NumpyLanes, address: Array, size: int, mask: Array | None, region: Region | None, base: int) -> Array:
    active = np.ones((1, 1, 1), dtype=np.bool_) if mask is None else mask
    full = np.broadcast_to(address, lanes.frame.shape)
    if region is None or region.size < size:
        return np.broadcast_to(active, lanes.frame.shape)
    return np.broadcast_to(active, lanes.frame.shape) & ((full - np.uint64(base)) > np.uint64(region.size - size))


def _outside_all(lanes: NumpyLanes, address: Array, size: int) -> Array:
    full = np.broadcast_to(address, lanes.frame.shape)
    outside = np.ones(lanes.frame.shape, dtype=np.bool_)
    for region in lanes.launch.memory.allocations:
        if region.size >= size:
            outside &= (full - np.uint64(region.base)) > np.uint64(region.size - size)
    return outside


def location(lanes: NumpyLanes, space: str, address: int) -> str:
    """Where an address lies, in words: "at address 0x…, offset 4096 of x, which has 4096 bytes"."""
    if space != "global":
        region = lanes.batch.memory.region(space)
        return f"at {space} address {address:#x}; the block has {region.size} bytes"
    region = lanes.launch.memory.allocations.find(address)
    nearest = lanes.launch.memory.allocations.nearest(address)
    if address < 4096:
        return f"at address {address:#x}: a null pointer"
    if nearest is None:
        return f"at address {address:#x}; nothing is allocated"
    name = nearest.label or f"the allocation at {nearest.base:#x}"
    offset = address - nearest.base
    if offset < 0:
        return f"at address {address:#x}, {-offset} bytes before {name} of {nearest.size} bytes"
    return f"at address {address:#x}, offset {offset} of {name}, which has {nearest.size} bytes"
