"""Programs written by hand for the simulators' tests: queues by times, arrays by where they lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tilefw.api import LaunchOptions
from tilefw_spatial.check.checker import cycles
from tilefw_spatial.check.unroll import unroll
from tilefw_spatial.isa import TYPES
from tilefw_spatial.machine import Machine, load
from tilefw_spatial.program import (
    AxisMap,
    BoundParameter,
    ChipCode,
    HostTensor,
    QueueInst,
    RowAllocation,
    SliceRows,
    SpatialProgram,
    Transfer,
)
from tilefw_spatial.simulate.device import simulate
from tilefw_spatial.simulate.engine import Simulation
from tilefw_spatial.simulate.transfers import HostBuffer
from tilefw_spatial.valid import program_faults

MACHINE: Machine = load("sdm-1")

Timed = Mapping[str, Sequence[tuple[int, QueueInst]]]


def kinds(*of: int) -> int:
    """`map` of an ALU row whose operands a, b, c have these kinds; those not named are none."""
    return sum(kind << 2 * place for place, kind in enumerate((*of, *[3] * (3 - len(of)))))


def queue(timed: Sequence[tuple[int, QueueInst]]) -> tuple[QueueInst, ...]:
    """Instructions at their cycles, with NOPs between."""
    found: list[QueueInst] = []
    now = 0
    for time, inst in sorted(timed, key=lambda entry: entry[0]):
        assert time >= now, f"{inst.op} at {time}: the queue is taken until {now}"
        while time > now:
            found.append(QueueInst("NOP", imm=min(65535, time - now)))
            now += found[-1].imm
        found.append(inst)
        now = time + (inst.burst if inst.op not in ("REP",) else inst.burst * inst.imm)
    return tuple(found)


def allocation(
    dtype: str, vectors: int, places: Sequence[tuple[str, int, int] | tuple[str, int, int, int]], groups: int = 1
) -> RowAllocation:
    """An array in one segment; `places` are (slice, bank, row) and perhaps the chip, all groups of plane 0 first."""
    planes = TYPES[dtype].nbytes
    rows = [SliceRows(place[0], place[1], place[2], place[3] if len(place) == 4 else 0) for place in places]
    assert len(rows) == planes * groups
    return RowAllocation(dtype, vectors, tuple(tuple(rows[p * groups : (p + 1) * groups]) for p in range(planes)), groups, vectors)


def matrix(parameter: int, vectors: int, lanes: int = 320, row: int = 320) -> Transfer:
    """A buffer [vectors, lanes] of rows `row` elements apart, a row a vector."""
    return Transfer(parameter, 0, (
        AxisMap(vectors, np.arange(vectors) * row, 1, 0), AxisMap(lanes, np.arange(lanes), 0, 1),
    ), 320)


def program(
    timed: Timed | Sequence[Timed], tensors: Sequence[HostTensor], parameters: Sequence[tuple[str, str]] = (),
    maps: tuple[tuple[int, ...], ...] = (),
) -> SpatialProgram:
    chips = [timed] if isinstance(timed, Mapping) else timed
    return counted(SpatialProgram(
        "kernel", MACHINE.name, MACHINE.hash, (1, 1, 1), tuple(
            BoundParameter(name, "pointer", dtype) for name, dtype in parameters
        ),
        tuple(tensors), tuple(ChipCode({name: queue(t) for name, t in chip.items()}, maps) for chip in chips), 0,
    ))


def counted(made: SpatialProgram) -> SpatialProgram:
    """The program with the cycles that the checker counts in it; one that is no program as it is."""
    if any(program_faults(MACHINE, made)):
        return made
    return replace(made, cycles=cycles(unroll(made, MACHINE)[0], MACHINE))


def run(made: SpatialProgram, *arrays: np.ndarray) -> Simulation:
    """Run a program on arrays, which are changed in place."""
    buffers = [HostBuffer(p.name, a.reshape(-1).view(np.uint8), 0) for p, a in zip(made.parameters, arrays, strict=True)]
    return simulate(made, MACHINE, buffers, LaunchOptions())
