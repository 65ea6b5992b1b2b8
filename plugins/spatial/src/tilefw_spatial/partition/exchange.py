"""What chips exchange: which of their arrays are identical, which operations make an array, what sends it, and what adds it up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass

import numpy as np

from tilefw_spatial.isa import TYPES
from tilefw_spatial.machine import Machine
from tilefw_spatial.stream_program import (
    AccessPattern,
    AluStep,
    Array,
    LinkStreamOp,
    OperandSource,
    Read,
    StreamOp,
    StreamProgram,
    VectorStreamOp,
    Write,
    reads_of,
    writes_of,
)

MOST_VECTORS = 256
"""The most vectors that one link operation sends: its slices do nothing else while it lasts."""


def same(left: object, right: object) -> bool:
    """Whether two values are equal, tables of numbers within them too."""
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return isinstance(left, np.ndarray) and isinstance(right, np.ndarray) and np.array_equal(left, right)
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    if is_dataclass(left) and type(left) is type(right):
        return all(same(getattr(left, field.name), getattr(right, field.name)) for field in fields(left))
    return left == right


def same_data(left: Array, right: Array) -> bool:
    """Whether two arrays have the same elements of the host's buffers in the same lanes of the same vectors."""
    shape = (left.dtype, left.vectors, left.groups, left.role) == (right.dtype, right.vectors, right.groups, right.role)
    return shape and same(left.transfers, right.transfers) and same(left.data, right.data)


def results_identical(programs: Sequence[StreamProgram]) -> bool:
    """Whether all chips make the same results in the same lanes of the same vectors."""
    return all(same_data(a, b) for program in programs[1:] for a, b in zip(programs[0].results, program.results, strict=True))


def sources_of(stream_op: StreamOp) -> list[Array]:
    """The arrays that a stream operation reads, and those that the products read that it drains."""
    drains = stream_op.drains if isinstance(stream_op, VectorStreamOp) else ()
    return reads_of(stream_op) + [array for drained in drains for array in reads_of(drained)]


def needed(stream_ops: Sequence[StreamOp], arrays: Iterable[Array]) -> list[StreamOp]:
    """Those of the stream operations that make the arrays and what they are made of, in their order."""
    wanted = {id(array) for array in arrays}
    kept: set[int] = set()
    for stream_op in reversed(stream_ops):
        if any(id(array) in wanted for array in writes_of(stream_op)):
            kept.add(id(stream_op))
            wanted |= {id(array) for array in sources_of(stream_op)}
            if isinstance(stream_op, VectorStreamOp):
                kept |= {id(drained) for drained in stream_op.drains}
    return [stream_op for stream_op in stream_ops if id(stream_op) in kept]


def accessed(stream_ops: Iterable[StreamOp]) -> dict[int, Array]:
    """The arrays that stream operations read or write, by identity."""
    return {id(array): array for stream_op in stream_ops for array in (*sources_of(stream_op), *writes_of(stream_op))}


def transmissions(source: int, array: Array, *targets: tuple[int, Array], count: int | None = None) -> list[LinkStreamOp]:
    """Link operations that send the first `count` vectors of an array (None: all) to others of its shape, byte plane by byte
    plane."""
    count = array.vectors if count is None else count
    return [
        LinkStreamOp(source, array, byte, first, min(MOST_VECTORS, count - first), targets)
        for byte in range(TYPES[array.dtype].nbytes) for first in range(0, count, MOST_VECTORS)
    ]


def combination(op: str, dtype: str, terms: Sequence[Array], result: AccessPattern, machine: Machine) -> VectorStreamOp:
    """`op` of the first two terms, of that and the third, …: one vector a cycle. One term alone is moved."""
    points = (terms[0].vectors,)
    if len(terms) == 1:
        step = AluStep("MOV", dtype, (OperandSource("stream", 0),), alu=0)
        return VectorStreamOp(points, [Read(AccessPattern(terms[0], 0, (1,)))], [step], [Write(0, result)])
    steps = [AluStep(op, dtype, (OperandSource("stream", 0), OperandSource("stream", 1)), alu=0)]
    reads = [Read(AccessPattern(terms[0], 0, (1,))), Read(AccessPattern(terms[1], 0, (1,)))]
    for number, term in enumerate(terms[2:], 2):
        time = (number - 1) * machine.delays["alu"]
        reads.append(Read(AccessPattern(term, 0, (1,)), time))
        sources = (OperandSource("alu", number - 2), OperandSource("stream", number))
        steps.append(AluStep(op, dtype, sources, alu=number - 1, time=time))
    return VectorStreamOp(points, reads, steps, [Write(len(steps) - 1, result)])
