"""Fused segments carried out by the instruction set's own meanings; all that the unit asks of their times is checked."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from tilefw_spatial import isa
from tilefw_spatial.chain import ChainLimits, FusedSegment, Results
from tilefw_spatial.chain import chain as chain_for
from tilefw_spatial.chain.native import Native
from tilefw_spatial.chain.record import operand_types
from tilefw_spatial.isa.meanings import immediate, meaning, modified
from tilefw_spatial.isa.types import reinterpret
from tilefw_spatial.machine import load
from tilefw_spatial.stream_program import AluStep, OperandSource

Array = np.ndarray[Any, Any]
Arrays = dict[Hashable, Array]


def chain(results: Results, limits: ChainLimits | None = None) -> list[FusedSegment]:
    """The segments for the packaged machine."""
    return chain_for(results, load(), limits)


def run(fused_segments: Sequence[FusedSegment], arrays: Mapping[Hashable, Array], shape: tuple[int, int], every: int = 1) -> Arrays:
    """All arrays after the segments: each of `shape`, [points, lanes], reduced ones [points // every, lanes]."""
    found = dict(arrays)
    for fused in fused_segments:
        check(fused)
        _run(fused, found, (shape[0] // every if fused.reduced else shape[0], shape[1]), every)
    return found


def _run(fused: FusedSegment, arrays: Arrays, shape: tuple[int, int], every: int) -> None:
    reads = [np.repeat(arrays[r.key], every, axis=0) if r.constant else arrays[r.key] for r in fused.reads]
    results: list[Array] = []
    assert all(read.shape == shape for read in reads)
    for step in fused.steps:
        operands = [
            modified(reinterpret(_value(source, dtype, reads, results), dtype), source.negate, source.absolute)
            for source, dtype in zip(step.operands, operand_types(Native(step.op, step.dtype)), strict=True)
            if source.kind != "none"
        ]
        if step.every > 1:
            operands = [np.broadcast_to(operand, shape) for operand in operands]
        made = meaning(step.op, step.dtype, operands, every=step.every)
        results.append(np.broadcast_to(made, (len(made) if step.every > 1 else shape[0], shape[1])))
    for write in fused.writes:
        assert fused.steps[write.step].every == (every if write.combined else 1)
        for key in write.keys:
            assert key not in arrays, "an array is written once"
            arrays[key] = reinterpret(results[write.step], write.dtype)


def _value(source: OperandSource, dtype: str, reads: Sequence[Array], results: Sequence[Array]) -> Array:
    if source.kind == "imm":
        return immediate(dtype, source.index)
    return reads[source.index] if source.kind == "stream" else results[source.index]


def check(fused: FusedSegment) -> None:
    """What holds for every segment: ALUs, streams, the times of operands."""
    machine = load()
    assert [step.alu for step in fused.steps] == list(range(len(fused.steps))), "ALUs are numbered in order, each once"
    assert len(fused.steps) <= machine.alus
    streams = [read.dtype for read in fused.reads] + [write.dtype for write in fused.writes]
    assert sum(isa.TYPES[dtype].nbytes for dtype in streams) <= machine.streams
    assert min([step.time for step in fused.steps] + [read.time for read in fused.reads]) == 0
    assert len({read.key for read in fused.reads}) == len(fused.reads)
    drained = [read.drained for read in fused.reads]
    assert drained == sorted(drained, reverse=True), "drained reads come first"
    times = [step.time for step in fused.steps]
    assert times == sorted(times), "steps are in order of time"
    for number, step in enumerate(fused.steps):
        assert all(source.index < number for source in step.operands if source.kind == "alu"), "operands are of earlier steps"
        assert step.dtype in isa.OPS[step.op][0].types_of(isa.OPS[step.op][1])
        assert len({source.index for source in step.operands if source.kind == "imm"}) <= 1, "an instruction has one immediate"
        for source in step.operands:
            _check_time(fused, step, source)


def _check_time(fused: FusedSegment, step: AluStep, source: OperandSource) -> None:
    machine = load()
    if source.kind == "stream":
        read = fused.reads[source.index]
        assert read.time == step.time, "a stream is read as it passes"
        assert isa.TYPES[read.dtype].nbytes >= isa.TYPES[operand_type(step, source)].nbytes
    elif source.kind == "alu":
        producer = fused.steps[source.index]
        assert producer.every == 1, "nobody waits for a reduction"
        waits = step.time - producer.time - machine.delays[isa.latency_key(producer.op, producer.dtype)]
        assert waits in range(0, machine.delay_step * machine.delay_steps, machine.delay_step)


def operand_type(step: AluStep, source: OperandSource) -> str:
    """As what a step reads an operand."""
    return operand_types(Native(step.op, step.dtype))[step.operands.index(source)]
