"""What the switches do: lanes moved, merged and transposed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from tilefw_spatial.isa import OPS, TYPES, latency_key
from tilefw_spatial.program import QueueInst
from tilefw_spatial.simulate.burst import Burst
from tilefw_spatial.simulate.chip import Request, SpatialChip

Planes = NDArray[np.uint8]  # [planes, n, lanes]


def switch(chip: SpatialChip, burst: Burst) -> int:
    """Any row of a switch; returns how many points it did."""
    inst = burst.inst
    name = OPS[inst.op][0].name
    planes = chip.machine.switch_streams if name == "TRN" else TYPES[inst.dtype].nbytes
    streams = (inst.a, inst.b) if name == "SELL" else (inst.a,)
    requests = [Request(stream, planes, burst.time, burst.period, burst.count) for stream in streams]
    taken, tainted, count = chip.take(burst, requests)
    burst = burst.head(count)
    first = burst.time + chip.machine.delays[latency_key(inst.op, inst.dtype)]
    for plane, values in enumerate(_MOVES[name](chip, inst, taken)):
        chip.put(burst, inst.dst + plane, first, burst.period, np.ascontiguousarray(values), tainted)
    return count


def _shifted(chip: SpatialChip, inst: QueueInst, taken: list[Planes]) -> Planes:
    lanes = np.arange(chip.machine.lanes) - inst.step
    return _mapped(taken[0], np.where((lanes >= 0) & (lanes < chip.machine.lanes), lanes, -1))


def _permuted(chip: SpatialChip, inst: QueueInst, taken: list[Planes]) -> Planes:
    return _mapped(taken[0], chip.maps[inst.map])


def _merged(chip: SpatialChip, inst: QueueInst, taken: list[Planes]) -> Planes:
    return np.where(chip.maps[inst.map] >= 0, taken[0], taken[1])


def _transposed(chip: SpatialChip, inst: QueueInst, taken: list[Planes]) -> Planes:
    """In each superlane byte j of stream i goes to byte i of stream j."""
    machine = chip.machine
    tiles = taken[0].reshape(machine.switch_streams, -1, machine.superlanes, machine.superlane_lanes)
    return tiles.transpose(3, 1, 2, 0).reshape(machine.superlane_lanes, -1, machine.lanes)


def _mapped(values: Planes, source: NDArray[np.int64]) -> Planes:
    return np.where(source >= 0, values[..., np.maximum(source, 0)], np.uint8(0))


_MOVES: Mapping[str, Callable[[SpatialChip, QueueInst, list[Planes]], Planes]] = {
    "LSH": _shifted, "PRM": _permuted, "DST": _permuted, "SELL": _merged, "TRN": _transposed,
}
