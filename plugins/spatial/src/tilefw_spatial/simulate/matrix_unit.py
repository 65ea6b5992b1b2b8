"""What the planes of the matrix unit do: LW, IW, MAC and DRN, with weight buffers and accumulators.

For element types but int8 the two planes of a side are one unit, represented by plane 0 with plane 1 taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilefw_spatial import isa
from tilefw_spatial.isa import ACCUMULATE_FLAG, HALF_FLAG, TYPES
from tilefw_spatial.machine import Machine
from tilefw_spatial.simulate import matrix_sums
from tilefw_spatial.simulate.burst import Burst
from tilefw_spatial.simulate.chip import Request, SpatialChip, Taint
from tilefw_spatial.simulate.findings import Faults
from tilefw_spatial.simulate.line import Line, LineSegment

SliceRows = NDArray[np.int64] | slice
_NOTHING = np.empty((0, 0), np.uint8)


@dataclass(slots=True, eq=False)
class Weights:
    """What a buffer holds: rows of K by columns, as codes of `dtype`; loaded by `source`, its last row at cycle `filled`."""

    dtype: str
    codes: NDArray[Any]
    tainted: bool
    source: Burst
    filled: int
    replaced: Burst | None = None  # the LW that began to load something else in its place
    last_use: int = -1
    user: Burst | None = None


@dataclass(frozen=True, slots=True)
class Install:
    """What is multiplied by from cycle `time` on."""

    time: int
    weights: Weights | None


class Plane:
    """Buffers, installed weights and accumulators of a plane; accumulators take storage when they are first accessed."""

    def __init__(self, machine: Machine) -> None:
        self.buffers: list[Weights | None] = [None] * machine.weight_buffers
        self.installs: list[Install] = []
        self.busy = Line()
        self._shape = (machine.accumulator_banks * machine.accumulator_rows, machine.columns)
        self._words: NDArray[np.uint32] | None = None
        self.set = np.zeros(self._shape[0], bool)
        self.tainted = np.zeros(self._shape[0], bool)

    @property
    def words(self) -> NDArray[np.uint32]:
        """All accumulators, [rows, columns]."""
        if self._words is None:
            self._words = np.zeros(self._shape, np.uint32)
        return self._words

    def installed(self, cycle: int) -> Install | None:
        """What a MAC issued at a cycle multiplies by."""
        return next((i for i in reversed(self.installs) if i.time <= cycle), None)


class MatrixUnits:
    """All planes of a chip."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._planes: dict[tuple[str, int], Plane] = {}

    def plane(self, unit: str, number: int) -> Plane:
        found = self._planes.get((unit, number))
        if found is None:
            found = self._planes[unit, number] = Plane(self._machine)
        return found

    def of(self, burst: Burst) -> Plane:
        """The plane that a burst's queue steers."""
        return self.plane(burst.queue.unit, burst.queue.number)


def load_weights(chip: SpatialChip, units: MatrixUnits, burst: Burst) -> int:
    """LW: rows of K into a buffer. It is done as a whole, when its last vectors pass."""
    inst, nbytes = burst.inst, TYPES[burst.inst.dtype].nbytes
    streams = chip.machine.weight_streams
    (planes,), tainted, count = chip.take(burst, [Request(inst.a, streams, burst.time, 1, burst.count)])
    if count < burst.count:
        chip.findings.add(Faults.OPERAND, f"weights are missing at {burst.queue.unit}", burst, burst.time + count)
        planes = np.concatenate([planes, np.zeros((streams, burst.count - count, chip.machine.lanes), np.uint8)], axis=1)
    # Stream r·b + p of cycle i is byte p of row i·(16/b) + r of K.
    rows = planes.reshape(streams // nbytes, nbytes, burst.count, chip.machine.lanes).transpose(2, 0, 3, 1)
    codes = np.ascontiguousarray(rows).reshape(-1, chip.machine.lanes, nbytes).view(f"u{nbytes}")[..., 0]
    plane = units.of(burst)
    old = plane.buffers[inst.imm]
    if old is not None:
        old.replaced = burst
        if old.last_use >= burst.time and old.user is not None:
            _overwritten(chip, old.user, burst, old.last_use)
    plane.buffers[inst.imm] = Weights(inst.dtype, codes, tainted is not None, burst, burst.last)
    return burst.count


def install(chip: SpatialChip, units: MatrixUnits, burst: Burst) -> int:
    """IW: a buffer becomes what is multiplied by."""
    plane, buffer = units.of(burst), burst.inst.imm
    weights = plane.buffers[buffer]
    if weights is None:
        chip.findings.add(Faults.WEIGHTS, f"buffer {buffer} of {burst.queue.unit} was never loaded", burst, burst.time)
    elif weights.filled >= burst.time or weights.dtype != burst.inst.dtype:
        message = f"buffer {buffer} of {burst.queue.unit} holds no whole {burst.inst.dtype} weights"
        chip.findings.add(Faults.WEIGHTS, message, burst, burst.time, other=weights.source)
    plane.installs = [*plane.installs[-63:], Install(burst.time + chip.machine.delays["install_weights"], weights)]
    return 1


def multiply(chip: SpatialChip, units: MatrixUnits, burst: Burst) -> int:
    """MAC: products of activations with the installed weights, into accumulators. All points lie between two installs."""
    inst, machine = burst.inst, chip.machine
    integer = inst.dtype == "int8"
    (planes,), tainted, count = chip.take(
        burst, [Request(inst.a, TYPES[inst.dtype].nbytes, burst.time, burst.period, burst.count)]
    )
    burst = burst.head(count)
    _occupy(chip, units, burst)
    begin = machine.lanes // 2 if inst.flags & HALF_FLAG else 0
    codes = _codes(planes, begin, min(begin + inst.imm, machine.lanes))
    weights = _weights(chip, units, burst, codes.shape[1])
    if weights is None:
        sums = np.zeros((count, machine.columns), np.int32 if integer else np.float32)
    elif integer:
        sums = matrix_sums.integer_products(codes.view(np.int8), weights.codes[: codes.shape[1]].view(np.int8))
    else:
        sums = matrix_sums.products(codes, weights.codes[: codes.shape[1]], inst.dtype)
    if weights is not None and weights.tainted:
        tainted = np.ones(count, bool)
    _accumulate(chip, units.of(burst), burst, sums, tainted)
    return count


def drain(chip: SpatialChip, units: MatrixUnits, burst: Burst) -> int:
    """DRN: accumulators onto streams."""
    plane = units.of(burst)
    rows = _accumulators(chip, burst)
    values = plane.words[rows].copy().view(TYPES[burst.inst.dtype].numpy)
    tainted = ~plane.set[rows] | plane.tainted[rows]
    first = burst.time + chip.machine.delays["drain"]
    chip.put_planes(burst, burst.inst.dst, first, burst.period, values, tainted if tainted.any() else None)
    return burst.count


def _codes(planes: NDArray[np.uint8], begin: int, end: int) -> NDArray[Any]:
    """Activations [n, end - begin] as codes."""
    if len(planes) == 1:
        return np.ascontiguousarray(planes[0][:, begin:end])
    return planes[0][:, begin:end].astype(np.uint16) | planes[1][:, begin:end].astype(np.uint16) << 8


def _occupy(chip: SpatialChip, units: MatrixUnits, burst: Burst) -> None:
    """A pair's multiplication takes both planes of its side."""
    pair = burst.inst.dtype != "int8"
    for number in range(chip.machine.planes) if pair else (burst.queue.number,):
        line = units.plane(burst.queue.unit, number).busy
        line.forget(burst.time - 2 * chip.machine.accumulator_rows)
        rival = line.add(LineSegment(burst.time, burst.period, burst.count, _NOTHING, None, burst))
        if rival is not None:
            message = f"two products in plane {number} of {burst.queue.unit}"
            chip.findings.add(Faults.WEIGHTS, message, burst, max(burst.time, rival.start), other=rival.source)


def _weights(chip: SpatialChip, units: MatrixUnits, burst: Burst, depth: int) -> Weights | None:
    """The weights that a MAC multiplies by; None, and a finding, where there are none of its type and depth."""
    found = units.of(burst).installed(burst.time)
    weights = None if found is None else found.weights
    unit = burst.queue.unit
    if weights is None:
        chip.findings.add(Faults.WEIGHTS, f"no weights are installed in {unit}", burst, burst.time)
        return None
    if weights.dtype != burst.inst.dtype or len(weights.codes) < depth:
        installed = f"{len(weights.codes)} rows of {weights.dtype} weights"
        message = f"{unit} has {installed} installed, {depth} of {burst.inst.dtype} are wanted"
        chip.findings.add(Faults.WEIGHTS, message, burst, burst.time, other=weights.source)
        return None
    if weights.replaced is not None and weights.replaced.time <= burst.last:
        _overwritten(chip, burst, weights.replaced, max(burst.time, weights.replaced.time))
    if burst.last > weights.last_use:
        weights.last_use, weights.user = burst.last, burst
    return weights


def _overwritten(chip: SpatialChip, user: Burst, load: Burst, cycle: int) -> None:
    message = f"the weights that {user.queue.name} multiplies by are being overwritten"
    chip.findings.add(Faults.WEIGHTS, message, user, cycle, other=load)


def _accumulators(chip: SpatialChip, burst: Burst) -> SliceRows:
    """The accumulators of a burst's points; outside of its bank is reported, and the last row taken instead."""
    size = chip.machine.accumulator_rows
    begin = burst.inst.address // size * size
    rows = burst.address + burst.step * np.arange(burst.count)
    outside = (rows < begin) | (rows >= begin + size)
    if burst.step == 1 and not outside.any():
        return slice(burst.address, burst.address + burst.count)
    if outside.any():
        first = int(np.argmax(outside))
        message = f"accumulator {int(rows[first]) - begin} of a bank of {size} in {burst.queue.unit}"
        chip.findings.add(Faults.ROW, message, burst, burst.time + first * burst.period)
    return np.where(outside, begin + size - 1, rows)


def _accumulate(chip: SpatialChip, plane: Plane, burst: Burst, sums: NDArray[Any], tainted: Taint) -> None:
    rows = _accumulators(chip, burst)
    bad = np.zeros(burst.count, bool) if tainted is None else tainted
    if isinstance(rows, slice) or burst.step or burst.count == 1:
        _store(plane, burst, rows, sums, bad)
        return
    for i in range(burst.count):  # one accumulator again and again: in the order of time
        _store(plane, burst, rows[i : i + 1], sums[i : i + 1], bad[i : i + 1])


def _store(plane: Plane, burst: Burst, rows: SliceRows, sums: NDArray[Any], bad: NDArray[np.bool_]) -> None:
    if burst.inst.flags & ACCUMULATE_FLAG:
        bad = bad | ~plane.set[rows] | plane.tainted[rows]
        sums = matrix_sums.add(plane.words[rows].view(sums.dtype), sums)
    plane.words[rows] = sums.view(np.uint32)
    plane.set[rows] = True
    plane.tainted[rows] = bad


def multiply_delay(machine: Machine, burst: Burst) -> int:
    """Cycles from the passing of activations to their accumulators."""
    return machine.delays[isa.latency_key(burst.inst.op, burst.inst.dtype)]
