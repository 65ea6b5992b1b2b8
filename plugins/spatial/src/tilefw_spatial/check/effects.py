"""What a burst takes and puts, and when: every field of the table's row as progressions on lines.

A line is what carries values from one instruction to another: a stream of a chip, with diagonals as its numbers, or the results of
an ALU, with the cycles in which they appear.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilefw_spatial.check.problem import CheckedBurst
from tilefw_spatial.check.progression import Progression
from tilefw_spatial.isa import ALU_USES, OPS, PUT_FLAG, TYPES, OperandKind, Use, WordField, alu_and_steps, latency_key, result_type
from tilefw_spatial.isa.wellformed import planes_of
from tilefw_spatial.machine import Machine

STREAM, RESULT = "stream", "result"


@dataclass(frozen=True, slots=True, order=True)
class EffectLine:
    """A stream (`number` as in words) or an ALU's results."""

    kind: str
    chip: int
    number: int

    def name(self, machine: Machine) -> str:
        """As messages name it."""
        if self.kind == RESULT:
            return f"VXM.{self.number}"
        return f"sW{self.number - machine.streams}" if machine.is_west(self.number) else f"sE{self.number}"


@dataclass(frozen=True, slots=True)
class Effect:
    """A burst takes from a line, or puts on it, at these numbers; `field` tells operands apart."""

    line: EffectLine
    numbers: Progression
    burst: CheckedBurst
    field: str


def every(burst: CheckedBurst) -> int:
    """How many points make one result."""
    return burst.inst.step if OPS[burst.inst.op][0].name == "TRED" else 1


def takes(machine: Machine, burst: CheckedBurst) -> Iterator[Effect]:
    """What a burst takes from lines."""
    row = OPS[burst.inst.op][0]
    for field in row.fields:
        if field.use is Use.TAKE:
            late = machine.delays[row.latency] if row.name in ("WR", "SCT") else 0
            planes = planes_of(burst.inst, field)
            yield from _streams(machine, burst, field.part, getattr(burst.inst, field.part), planes, burst.time + late, 1)
        elif field.use in ALU_USES:
            yield from _operand(machine, burst, field)


def _operand(machine: Machine, burst: CheckedBurst, field: WordField) -> Iterator[Effect]:
    value: int = getattr(burst.inst, field.part)
    kind = OperandKind(burst.inst.map >> 2 * "abc".index(field.part) & 3)
    apart = every(burst) if field.use is Use.START else 1
    if kind is OperandKind.STREAM:
        planes = 1 if field.use is Use.MASK else TYPES[burst.inst.dtype].nbytes
        yield from _streams(machine, burst, field.part, value, planes, burst.time, apart)
    elif kind is OperandKind.ALU:
        alu, steps = alu_and_steps(value)
        begin = burst.time - steps * machine.delay_step
        numbers = Progression(begin, burst.period * apart, burst.count // apart)
        yield Effect(EffectLine(RESULT, burst.chip, alu), numbers, burst, field.part)


def puts(machine: Machine, burst: CheckedBurst) -> Iterator[Effect]:
    """What a burst puts on lines."""
    row, inst = OPS[burst.inst.op][0], burst.inst
    delay = machine.delays[latency_key(inst.op, inst.dtype)] if row.latency else 0
    apart = every(burst)
    begin = burst.time + (apart - 1) * burst.period + delay
    if row.unit == "VXM":
        numbers = Progression(begin, burst.period * apart, burst.count // apart)
        yield Effect(EffectLine(RESULT, burst.chip, burst.plane), numbers, burst, "result")
        if inst.flags & PUT_FLAG:
            planes = TYPES[result_type(inst.op, inst.dtype)].nbytes
            yield from _streams(machine, burst, "dst", inst.dst, planes, begin, apart)
        return
    for field in row.fields:
        if field.use is Use.PUT:
            yield from _streams(machine, burst, "dst", inst.dst, planes_of(inst, field), begin, 1)


def _streams(
    machine: Machine, burst: CheckedBurst, field: str, first: int, planes: int, time: int, apart: int
) -> Iterator[Effect]:
    numbers = Progression(machine.diagonal(first, burst.position, time), burst.period * apart, burst.count // apart)
    for plane in range(planes):
        yield Effect(EffectLine(STREAM, burst.chip, first + plane), numbers, burst, f"{field}{plane}")


def last_event(machine: Machine, burst: CheckedBurst) -> int | None:
    """The cycle of a burst's last effect; None for what has none."""
    row = OPS[burst.inst.op][0]
    if row.unit == "ICU" and row.name != "NTFY":
        return None
    key = "" if row.name == "LW" else latency_key(burst.inst.op, burst.inst.dtype)
    return burst.last + (machine.delays[key] if key else 0)
