"""Pieces carried out by the instruction set's own meanings, with all that the unit asks of their times checked on the way."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from tilefw_spatial import isa
from tilefw_spatial.chain import ChainLimits, ChainPiece, Results
from tilefw_spatial.chain import chain as chain_for
from tilefw_spatial.chain.native import Native
from tilefw_spatial.chain.record import operand_types
from tilefw_spatial.isa.meanings import immediate, meaning, modified
from tilefw_spatial.isa.types import reinterpret
from tilefw_spatial.machine import load
from tilefw_spatial.stream_program import AluStep, OperandSource

Array = np.ndarray[Any, Any]
Arrays = dict[Hashable, Array]


def chain(results: Results, limits: ChainLimits | None = None) -> list[ChainPiece]:
    """The pieces for the packaged machine."""
    return chain_for(results, load(), limits)


def run(pieces: Sequence[ChainPiece], arrays: Mapping[Hashable, Array], shape: tuple[int, int], every: int = 1) -> Arrays:
    """All arrays after the pieces: each of `shape`, [points, lanes], reduced ones [points // every, lanes]."""
    found = dict(arrays)
    for piece in pieces:
        check(piece)
        _run(piece, found, (shape[0] // every if piece.reduced else shape[0], shape[1]), every)
    return found


def _run(piece: ChainPiece, arrays: Arrays, shape: tuple[int, int], every: int) -> None:
    reads = [np.repeat(arrays[r.key], every, axis=0) if r.constant else arrays[r.key] for r in piece.reads]
    results: list[Array] = []
    assert all(read.shape == shape for read in reads)
    for step in piece.steps:
        operands = [
            modified(reinterpret(_value(source, dtype, reads, results), dtype), source.negate, source.absolute)
            for source, dtype in zip(step.operands, operand_types(Native(step.op, step.dtype)), strict=True)
            if source.kind != "none"
        ]
        if step.every > 1:
            operands = [np.broadcast_to(operand, shape) for operand in operands]
        made = meaning(step.op, step.dtype, operands, every=step.every)
        results.append(np.broadcast_to(made, (len(made) if step.every > 1 else shape[0], shape[1])))
    for write in piece.writes:
        assert piece.steps[write.step].every == (every if write.combined else 1)
        for key in write.keys:
            assert key not in arrays, "an array is written once"
            arrays[key] = reinterpret(results[write.step], write.dtype)


def _value(source: OperandSource, dtype: str, reads: Sequence[Array], results: Sequence[Array]) -> Array:
    if source.kind == "imm":
        return immediate(dtype, source.index)
    return reads[source.index] if source.kind == "stream" else results[source.index]


def check(piece: ChainPiece) -> None:
    """What holds for every piece: ALUs, streams, the times of operands."""
    machine = load()
    assert [step.alu for step in piece.steps] == list(range(len(piece.steps))), "ALUs are numbered in order, each once"
    assert len(piece.steps) <= machine.alus
    streams = [read.dtype for read in piece.reads] + [write.dtype for write in piece.writes]
    assert sum(isa.TYPES[dtype].nbytes for dtype in streams) <= machine.streams
    assert min([step.time for step in piece.steps] + [read.time for read in piece.reads]) == 0
    assert len({read.key for read in piece.reads}) == len(piece.reads)
    drained = [read.drained for read in piece.reads]
    assert drained == sorted(drained, reverse=True), "drained reads come first"
    times = [step.time for step in piece.steps]
    assert times == sorted(times), "steps are in order of time"
    for number, step in enumerate(piece.steps):
        assert all(source.index < number for source in step.operands if source.kind == "alu"), "operands are of earlier steps"
        assert step.dtype in isa.OPS[step.op][0].types_of(isa.OPS[step.op][1])
        assert len({source.index for source in step.operands if source.kind == "imm"}) <= 1, "an instruction has one immediate"
        for source in step.operands:
            _check_time(piece, step, source)


def _check_time(piece: ChainPiece, step: AluStep, source: OperandSource) -> None:
    machine = load()
    if source.kind == "stream":
        read = piece.reads[source.index]
        assert read.time == step.time, "a stream is read as it passes"
        assert isa.TYPES[read.dtype].nbytes >= isa.TYPES[operand_type(step, source)].nbytes
    elif source.kind == "alu":
        producer = piece.steps[source.index]
        assert producer.every == 1, "nobody waits for a reduction"
        waits = step.time - producer.time - machine.delays[isa.latency_key(producer.op, producer.dtype)]
        assert waits in range(0, machine.delay_step * machine.delay_steps, machine.delay_step)


def operand_type(step: AluStep, source: OperandSource) -> str:
    """As what a step reads an operand."""
    return operand_types(Native(step.op, step.dtype))[step.operands.index(source)]
