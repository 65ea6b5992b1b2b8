"""Times, ALU numbers and MOVs for a segment, or none where it takes more than the unit has."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol

from tilefw_spatial import isa
from tilefw_spatial.chain.limits import ChainLimits
from tilefw_spatial.chain.micro import Micro, MicroOperand, element_type, is_reduced
from tilefw_spatial.chain.node import Input, Literal
from tilefw_spatial.chain.segment import FusedSegment, SegmentRead, SegmentWrite
from tilefw_spatial.chain.timing import TimingProblem, least_moves, times
from tilefw_spatial.chain.untimed_segment import UntimedSegment
from tilefw_spatial.machine import Machine
from tilefw_spatial.stream_program import AluStep, OperandSource


@dataclass(slots=True)
class TimedSegment:
    """A segment with the tick of each of its steps and the number of MOVs that this needs."""

    untimed: UntimedSegment
    ticks: dict[Micro, int]
    moves: int


def fit(untimed: UntimedSegment, limits: ChainLimits, machine: Machine) -> TimedSegment | None:
    """The best times found, if the segment then fits: there is an ALU for each of its steps and MOVs."""
    spare = limits.alus - len(untimed.steps)
    place = {step: i for i, step in enumerate(untimed.steps)}
    stream = {source: i for i, source in enumerate(untimed.reads)}
    sources = [[o.source for o in untimed.operands[step]] for step in untimed.steps]
    problem = TimingProblem(
        latency=[_ticks(step, machine) for step in untimed.steps],
        takes=[tuple(dict.fromkeys(place[s] for s in found if s in place)) for found in sources],
        streams=[tuple(dict.fromkeys(stream[s] for s in found if s in stream)) for found in sources],
        reads=len(stream),
        kept=machine.delay_steps,
    )
    if least_moves(problem) > spare:
        return None
    at = times(problem, spare)
    ticks = dict(zip(untimed.steps, at, strict=True))
    moves = sum(len(found) for found in _chains(untimed, ticks, machine).values())
    return TimedSegment(untimed, ticks, moves) if moves <= spare else None


def _ticks(step: Micro, machine: Machine) -> int:
    return machine.delays[isa.latency_key(step.op, step.dtype)] // machine.delay_step


def _chains(untimed: UntimedSegment, ticks: dict[Micro, int], machine: Machine) -> dict[Micro | Input, list[int]]:
    """The ticks at which MOVs of each value issue, one after the other."""
    latest: dict[Micro | Input, int] = {}
    first: dict[Micro | Input, int] = {}
    for step in untimed.steps:
        for source in (o.source for o in untimed.operands[step]):
            if not isinstance(source, Literal):
                latest[source] = max(latest.get(source, ticks[step]), ticks[step])
                first[source] = min(first.get(source, ticks[step]), ticks[step])
    chains: dict[Micro | Input, list[int]] = {}
    kept = machine.delay_steps
    for source, last in latest.items():
        # A stream is read as it passes; a result until kept - 1 ticks after it appeared.
        at = first[source]
        if isinstance(source, Micro) and source in ticks:
            at = ticks[source] + _ticks(source, machine) + kept - 1
        chains[source] = []
        while last > at:
            chains[source].append(at)
            at += kept
    return chains


class SegmentArrays(Protocol):
    """Which arrays a segment reads and writes."""

    def read(self, source: Micro | Input) -> tuple[Hashable, str]:
        """The array's key and its element type."""
        ...

    def written(self, step: Micro) -> tuple[tuple[Hashable, ...], str]:
        """The keys of the arrays that take a step's result, and their element type."""
        ...


def fused_segment(timed: TimedSegment, machine: Machine, names: SegmentArrays) -> FusedSegment:
    """The segment with its arrays named."""
    writer = _SegmentWriter(timed, machine)
    untimed = timed.untimed
    reduced = untimed.reduced
    reads = tuple(
        SegmentRead(*names.read(source), writer.arrival(source) * machine.delay_step, constant=is_reduced(source) and not reduced,
                  drained=isinstance(source, Input) and source.drained)
        for source in untimed.reads
    )
    writes = tuple(
        SegmentWrite(*names.written(step), writer.number[step], combined=step.every > 0) for step in untimed.writes
    )
    return FusedSegment(reads, writer.steps(), writes, reduced)


class _SegmentWriter:
    """Numbers the steps and MOVs in order of time, whoever reads after who is read, and finds for each reader the one that has its
    value then."""

    def __init__(self, timed: TimedSegment, machine: Machine) -> None:
        self.untimed, self.ticks, self.tick = timed.untimed, timed.ticks, machine.delay_step
        self.chains = _chains(self.untimed, self.ticks, machine)
        entries: list[tuple[int, Micro | tuple[Micro | Input, int]]] = [(self.ticks[step], step) for step in self.untimed.steps]
        entries += [(at, (source, k)) for source, chain in self.chains.items() for k, at in enumerate(chain)]
        self.entries = sorted(entries, key=lambda entry: entry[0])
        self.number = {entry: i for i, (_, entry) in enumerate(self.entries)}
        self.stream = {source: i for i, source in enumerate(self.untimed.reads)}

    def arrival(self, source: Micro | Input) -> int:
        """The tick at which a stream is read."""
        return min(self.ticks[step] for step in self.untimed.steps if any(o.source is source for o in self.untimed.operands[step]))

    def steps(self) -> tuple[AluStep, ...]:
        return tuple(
            self._step(entry, tick, alu) if isinstance(entry, Micro) else self._move(entry[0], tick, alu)
            for alu, (tick, entry) in enumerate(self.entries)
        )

    def _step(self, step: Micro, tick: int, alu: int) -> AluStep:
        operands = tuple(self._source(o, tick) for o in self.untimed.operands[step])
        if step.every and len(operands) == 1:
            operands += (OperandSource("none"),)
        to = step.result if step.op.startswith("CVT.") else ""
        return AluStep(step.op, step.dtype, operands, to, max(1, step.every), alu, tick * self.tick)

    def _move(self, source: Micro | Input, tick: int, alu: int) -> AluStep:
        return AluStep("MOV", element_type(source), (self._at(MicroOperand(source), tick),), alu=alu, time=tick * self.tick)

    def _source(self, operand: MicroOperand, tick: int) -> OperandSource:
        if isinstance(operand.source, Literal):
            return OperandSource("imm", operand.source.bits, operand.negate, operand.absolute)
        return self._at(operand, tick)

    def _at(self, operand: MicroOperand, tick: int) -> OperandSource:
        """The value as some ALU or stream has it at a tick: by the last MOV that issued before."""
        source = operand.source
        assert not isinstance(source, Literal)
        k = sum(at < tick for at in self.chains[source]) - 1
        if k >= 0:
            return OperandSource("alu", self.number[(source, k)], operand.negate, operand.absolute)
        if source in self.stream:
            return OperandSource("stream", self.stream[source], operand.negate, operand.absolute)
        assert isinstance(source, Micro)
        return OperandSource("alu", self.number[source], operand.negate, operand.absolute)
