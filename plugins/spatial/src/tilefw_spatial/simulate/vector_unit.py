"""What an ALU of the vector unit does: operands from streams, other ALUs, immediates; the meaning from the instructions' table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilefw.api.integers import ceil_div
from tilefw_spatial import isa
from tilefw_spatial.isa import OPS, TYPES, OperandKind, Use, WordField, alu_and_steps
from tilefw_spatial.isa.meanings import immediate, meaning, modified
from tilefw_spatial.isa.types import reinterpret
from tilefw_spatial.isa.types import values as elements
from tilefw_spatial.isa.wellformed import ABSOLUTE, NEGATE, kind_of
from tilefw_spatial.program import QueueInst
from tilefw_spatial.simulate.burst import Burst
from tilefw_spatial.simulate.chip import Request, SpatialChip, Taint, taint_of
from tilefw_spatial.simulate.findings import Faults
from tilefw_spatial.simulate.line import LineFound, LineSegment


@dataclass(slots=True)
class _Operand:
    """One operand before it is looked up: its position (0 to 2 for a, b, c), kind, type, and the points at which it is taken."""

    position: int
    kind: OperandKind
    dtype: str
    value: int
    every: int


def compute(chip: SpatialChip, burst: Burst) -> int:
    """Any row of the vector unit; returns how many points it did."""
    inst = burst.inst
    row, _ = OPS[inst.op]
    every = inst.step if row.name == "TRED" else 1
    operands = [o for o in (_operand(inst, field, every) for field in row.operands) if o is not None]
    values, tainted, count = _operands(chip, burst, operands, every)
    if count < every:
        return _truncated(chip, burst, count, every)
    count -= count % every
    full = [np.broadcast_to(v[:count], (count, chip.machine.lanes)) for v in values]
    result = np.broadcast_to(meaning(inst.op, inst.dtype, full, every), (count // every, chip.machine.lanes))
    if tainted is not None:
        tainted = taint_of([np.logical_or.reduce(tainted[:count].reshape(-1, every), axis=1)], count // every)
    _deliver(chip, burst.head(count), result, tainted, every)
    return count


def _truncated(chip: SpatialChip, burst: Burst, count: int, every: int) -> int:
    """A reduction that lacks one of its vectors: zeros are its result, and the finding."""
    message = f"a reduction of {every} vectors at {burst.queue.name} lacks one"
    chip.findings.add(Faults.OPERAND, message, burst, burst.time + count * burst.period)
    dtype = isa.result_type(burst.inst.op, burst.inst.dtype)
    _deliver(chip, burst.head(every), np.zeros((1, chip.machine.lanes), TYPES[dtype].numpy), None, every)
    return every


def _operand(inst: QueueInst, field: WordField, every: int) -> _Operand | None:
    kind = kind_of(inst, field)
    if field.use is Use.START and kind is OperandKind.LANE:
        return None
    dtype = "int1" if field.use is Use.MASK else inst.dtype
    return _Operand("abc".index(field.part), kind, dtype, getattr(inst, field.part), every if field.use is Use.START else 1)


def _operands(chip: SpatialChip, burst: Burst, operands: list[_Operand], every: int) -> tuple[list[NDArray[Any]], Taint, int]:
    """The operands' elements for as many points as all of them are there."""
    streams = [o for o in operands if o.kind is OperandKind.STREAM]
    found = {o.position: _from_alu(chip, burst, o) for o in operands if o.kind is OperandKind.ALU}
    count = min([burst.count, *(f.count * o.every for o in operands if (f := found.get(o.position)))])
    taken: dict[int, NDArray[np.uint8]] = {}
    taints: list[Taint] = []
    for every in {o.every for o in streams}:  # a reduction takes its start less often than its points
        same_rate = [o for o in streams if o.every == every]
        period, points = burst.period * every, ceil_div(count, every)
        requests = [Request(o.value, TYPES[o.dtype].nbytes, burst.time, period, points) for o in same_rate]
        planes, tainted, n = chip.take(burst, requests)
        taken |= {o.position: p for o, p in zip(same_rate, planes, strict=True)}
        count = min(count, n * every)
        taints.append(_spread(tainted, every, count))
    values = [_value(burst.inst, o, taken, found, count, chip.machine.lanes) for o in operands]
    taints += [_spread(f.tainted, o.every, count) for o in operands if (f := found.get(o.position)) and f.tainted is not None]
    return values, taint_of(taints, count), count


def _value(
    inst: QueueInst, operand: _Operand, taken: dict[int, NDArray[np.uint8]], found: dict[int, LineFound], count: int, lanes: int
) -> NDArray[Any]:
    dtype = operand.dtype
    if operand.kind is OperandKind.STREAM:
        values = elements(dtype, taken[operand.position])
    elif operand.kind is OperandKind.ALU:
        results = found[operand.position].values
        assert results is not None
        values = reinterpret(results, dtype)
    elif operand.kind is OperandKind.IMMEDIATE:
        values = immediate(dtype, inst.imm)
    else:
        values = np.arange(lanes)[None].astype(TYPES[dtype].numpy)
    if operand.every > 1 and len(values) > 1:
        values = np.repeat(values, operand.every, axis=0)
    negate, absolute = inst.map >> NEGATE + operand.position & 1, inst.map >> ABSOLUTE + operand.position & 1
    if TYPES[dtype].is_float:
        values = modified(values, bool(negate), bool(absolute))
    return values[:count]


def _spread(tainted: Taint, every: int, count: int) -> Taint:
    return tainted if tainted is None or every == 1 else np.repeat(tainted, every)[:count]


def _from_alu(chip: SpatialChip, burst: Burst, operand: _Operand) -> LineFound:
    """Another ALU's results, taken so many steps after they appeared; where the very first is missing, zero and a finding."""
    number, steps = alu_and_steps(operand.value)
    delay = steps * chip.machine.delay_step
    count = ceil_div(burst.count, operand.every)
    found = chip.results[number].find(burst.time - delay, burst.period * operand.every, count)
    if found.count:
        return found
    message = f"no result of VXM.{number} from {delay} cycles before at {burst.queue.name}"
    chip.findings.add(Faults.OPERAND, message, burst, burst.time)
    return LineFound(np.zeros((1, chip.machine.lanes), np.uint32), None, 1)


def _deliver(chip: SpatialChip, burst: Burst, result: NDArray[Any], tainted: Taint, every: int) -> None:
    """Results into the ALU's pipe, and onto streams where the instruction asks for it."""
    machine, inst = chip.machine, burst.inst
    delay = machine.delays[isa.latency_key(inst.op, inst.dtype)]
    first, period = burst.time + (every - 1) * burst.period + delay, burst.period * every
    line = chip.results[burst.queue.number]
    line.forget(chip.now - machine.delay_step * machine.delay_steps - chip.patience)
    bits = reinterpret(result, "uint32")  # one consumer's burst may take results of several types, one after the other
    rival = line.add(LineSegment(first, period, len(result), bits, tainted, burst))
    if rival is not None:
        chip.findings.add(Faults.PRODUCERS, f"two results of {burst.queue.name} in one cycle", burst, first, other=rival.source)
    if inst.flags & isa.PUT_FLAG:
        chip.put_planes(burst, inst.dst, first, period, np.ascontiguousarray(result), tainted)
