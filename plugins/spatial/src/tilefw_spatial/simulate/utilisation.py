"""What a launch did in numbers: its cycles, how far it used each kind of functional unit, and the rows of the slices it filled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from tilefw.api import Utilisation
from tilefw.api.integers import ceil_div
from tilefw_spatial.isa import OPS
from tilefw_spatial.machine import SIDES, Machine
from tilefw_spatial.program import RowAllocation, SliceRows
from tilefw_spatial.simulate.burst import Burst
from tilefw_spatial.simulate.engine import Simulation

UNITS: Mapping[str, str] = {
    "MEM": "memory slices", "LW": "weights loading", "MAC": "matrix planes", "DRN": "accumulators draining", "ALU": "vector ALUs",
    "SXM": "lane switches", "C2C": "links",
}
"""Kind of queue -> the resource that it counts for."""

Occupied = dict[tuple[int, str], NDArray[np.bool_]]
"""(Chip, slice) -> which of its rows, of both banks, hold something at some time."""


def counted(simulation: Simulation) -> dict[str, int]:
    """What a launch did, as counters by name.

    `busy.KIND` are cycles in which a queue of the kind had a vector, summed over queues; `multiply_adds` counts those that K asked
    for, of all columns.
    """
    counters = {
        "cycles": simulation.cycles, "cycles_predicted": simulation.program.cycles, "bursts": len(simulation.bursts),
        "multiply_adds": 0,
    }
    for burst in simulation.bursts:
        key = f"busy.{burst.queue.kind}"
        counters[key] = counters.get(key, 0) + burst.count
        if OPS[burst.inst.op][0].name == "MAC":
            counters["multiply_adds"] += burst.count * burst.inst.imm * simulation.machine.columns
    if simulation.findings.dropped:
        counters["findings_dropped"] = simulation.findings.dropped
    return counters


def utilisation(simulation: Simulation) -> tuple[Utilisation, ...]:
    """Cycles in which queues of each kind had a vector, of all cycles of all such queues of the program's chips; and bytes of rows.

    A product of 16-bit and 8-bit floats occupies two matrix planes, one of int8 a single one. Planes that work as a pair are
    loaded and drained by the queues of the first."""
    machine, chips = simulation.machine, len(simulation.program.chips)
    used = dict.fromkeys(UNITS, 0)
    for burst in simulation.bursts:
        used[burst.queue.kind] += burst.count * _planes(burst)
    queues = [queue.kind for queue in machine.queues.values()]
    busy = [
        Utilisation(name, used[kind], queues.count(kind) * chips * simulation.cycles) for kind, name in UNITS.items()
    ]
    rows = sum(int(filled.sum()) for filled in occupied(simulation).values())
    return (*busy, Utilisation("memory", rows * machine.lanes, machine.capacity * chips, "bytes"))


def _planes(burst: Burst) -> int:
    return 2 if burst.queue.kind == "MAC" and burst.inst.dtype != "int8" else 1


def occupied(simulation: Simulation) -> Occupied:
    """The rows that the host fills or reads, and those that instructions write. Rows that data chooses (SCT) are not among them."""
    machine = simulation.machine
    rows: Occupied = {
        (chip, f"MEM.{side}{i}"): np.zeros(machine.banks * machine.rows, np.bool_)
        for chip in range(len(simulation.program.chips)) for side in SIDES for i in range(machine.slices)
    }
    for tensor in simulation.program.tensors:
        for block, count in _blocks(tensor.allocation):
            begin = block.bank * machine.rows + block.row
            rows[block.chip, block.slice][begin : begin + count] = True
    for burst in simulation.bursts:
        if OPS[burst.inst.op][0].name == "WR":
            rows[burst.chip, burst.queue.unit][_addresses(machine, burst)] = True
    return rows


def _blocks(allocation: RowAllocation) -> Iterator[tuple[SliceRows, int]]:
    """Where vectors of an allocation lie, and in how many rows there."""
    for plane in allocation.planes:
        for number, block in enumerate(plane):
            segment, group = divmod(number, allocation.groups)
            vectors = min(allocation.segment, allocation.vectors - segment * allocation.segment)
            yield block, max(0, ceil_div(vectors - group, allocation.groups))


def _addresses(machine: Machine, burst: Burst) -> NDArray[np.int64]:
    found = burst.address + burst.step * np.arange(burst.count)
    return found[(found >= 0) & (found < machine.banks * machine.rows)]
