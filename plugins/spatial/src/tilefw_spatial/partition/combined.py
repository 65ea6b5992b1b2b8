"""Arrays of as many vectors combined into one, vector by vector: added across chips, or put together from pieces."""

from __future__ import annotations

from collections.abc import Sequence

from tilefw_spatial.machine import Machine
from tilefw_spatial.stream_program import AccessPattern, AluStep, Array, OperandSource, Read, VectorStreamOp, Write


def combined(op: str, dtype: str, terms: Sequence[Array], result: AccessPattern, machine: Machine) -> VectorStreamOp:
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
