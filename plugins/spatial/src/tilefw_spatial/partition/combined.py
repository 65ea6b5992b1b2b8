"""Arrays of as many vectors combined into one, vector by vector: added across chips, or put together from pieces."""

from __future__ import annotations

from collections.abc import Sequence

from tilefw_spatial.machine import Machine
from tilefw_spatial.sweep import AluStep, Array, OperandSource, Read, VectorSweep, Walk, Write


def combined(op: str, dtype: str, terms: Sequence[Array], result: Walk, machine: Machine) -> VectorSweep:
    """`op` of the first two terms, of that and the third, …: one vector a cycle. One term alone is moved."""
    points = (terms[0].vectors,)
    if len(terms) == 1:
        step = AluStep("MOV", dtype, (OperandSource("stream", 0),), alu=0)
        return VectorSweep(points, [Read(Walk(terms[0], 0, (1,)))], [step], [Write(0, result)])
    steps = [AluStep(op, dtype, (OperandSource("stream", 0), OperandSource("stream", 1)), alu=0)]
    reads = [Read(Walk(terms[0], 0, (1,))), Read(Walk(terms[1], 0, (1,)))]
    for number, term in enumerate(terms[2:], 2):
        time = (number - 1) * machine.delays["alu"]
        reads.append(Read(Walk(term, 0, (1,)), time))
        sources = (OperandSource("alu", number - 2), OperandSource("stream", number))
        steps.append(AluStep(op, dtype, sources, alu=number - 1, time=time))
    return VectorSweep(points, reads, steps, [Write(len(steps) - 1, result)])
