"""`--split stages`: a pipeline of chips. Each has consecutive operations of the program, and sends what it made to its readers.

The program is cut where every array is whole: none is written on two chips. Stages are as even as such cuts allow, by cycles of the
units and of the links that a cut loads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

from tilefw.api import UnsupportedError
from tilefw_spatial.arrange import arrange
from tilefw_spatial.graph import Graph
from tilefw_spatial.isa import TYPES
from tilefw_spatial.machine import Machine
from tilefw_spatial.partition.exchange import accessed, transmissions
from tilefw_spatial.stream_program import (
    AccessPattern,
    Array,
    LaneStreamOp,
    LinkStreamOp,
    MatrixStreamOp,
    NodeStreamProgram,
    StreamOp,
    StreamProgram,
    VectorStreamOp,
    writes_of,
)

MOST = 40
"""Cuts that are compared, at most."""


def staged(graph: Graph, chips: int, machine: Machine) -> NodeStreamProgram:
    """The stream programs of chips one after the other. Raises UnsupportedError TFW0658 where there are not so many stages."""
    program = arrange(graph, machine)
    steps: list[StreamOp] = [stream_op for stream_op in program.stream_ops if not isinstance(stream_op, MatrixStreamOp)]
    cuts = cuts_of(steps)
    bounds = bounds_of(steps, cuts, chips, machine)
    if bounds is None:
        raise UnsupportedError(
            "split=stages cuts a kernel where arrays are whole: "
            f"{chips} chips need {chips} stages, and this one has {len(cuts) + 1}",
            code="TFW0658", help="use fewer chips, or split=n",
        )
    return _Line(program, [steps[begin:end] for begin, end in pairwise(bounds)]).program()


def cuts_of(steps: Sequence[StreamOp]) -> list[int]:
    """Numbers of stream operations before which no array is half written."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for number, step in enumerate(steps):
        for array in writes_of(step):
            first.setdefault(id(array), number)
            last[id(array)] = number
    within = {number for key, begin in first.items() for number in range(begin + 1, last[key] + 1)}
    return [number for number in range(1, len(steps)) if number not in within]


def bounds_of(steps: Sequence[StreamOp], cuts: Sequence[int], chips: int, machine: Machine) -> list[int] | None:
    """Where the stages begin and end, so that the longest is shortest; None where there are too few cuts."""
    if len(cuts) < chips - 1:
        return None
    spread = sorted({cuts[number * len(cuts) // MOST] for number in range(MOST)}) if len(cuts) > MOST else cuts
    starts = [0, *spread, len(steps)]
    costs = {(i, j): _cost(steps, starts[i], starts[j], machine) for j in range(len(starts)) for i in range(j)}
    best: dict[int, tuple[int, list[int]]] = {0: (0, [0])}
    for _ in range(chips):
        best = {
            place: min((max(cost, costs[before, place]), [*ends, starts[place]]) for before, (cost, ends) in best.items()
                       if before < place)
            for place in range(min(best) + 1, len(starts))
        }
    return best[len(starts) - 1][1]


def _cost(steps: Sequence[StreamOp], begin: int, end: int, machine: Machine) -> int:
    """Cycles of a stage, or of the link that brings what it needs if that takes longer."""
    made = {id(array) for step in steps[:begin] for array in writes_of(step)}
    crossing = sum(_bytes(array) for key, array in accessed(steps[begin:end]).items() if key in made)
    return max(sum(_cycles(step) for step in steps[begin:end]), crossing * machine.link_interval)


def _bytes(array: Array) -> int:
    return array.vectors * TYPES[array.dtype].nbytes


def _cycles(step: StreamOp) -> int:
    """About how long a stream operation takes: what it drains is made on two sides at once."""
    own = 0 if isinstance(step, MatrixStreamOp) else prod(step.domain)
    drains = step.drains if isinstance(step, VectorStreamOp) else ()
    return own + sum(drained.rows * len(drained.products) for drained in drains) // 2


@dataclass(slots=True)
class _Line:
    """The stages, one a chip."""

    whole: StreamProgram
    stages: list[list[StreamOp]]

    def program(self) -> NodeStreamProgram:
        """Each stage on its chip with arrays of its own; what a later stage reads is sent when it is whole."""
        order: list[tuple[int, StreamOp] | LinkStreamOp] = []
        copies: list[dict[int, Array]] = []
        programs: list[StreamProgram] = []
        producer = {id(array): chip for chip, steps in enumerate(self.stages) for step in steps for array in writes_of(step)}
        for chip, steps in enumerate(self.stages):
            own = accessed(steps)
            copies.append({key: _copy(array, producer.get(key, chip) == chip) for key, array in own.items()})
        for chip, steps in enumerate(self.stages):
            stream_ops = [stream_op for step in steps for stream_op in _moved(step, copies[chip])]
            order += [(chip, stream_op) for stream_op in stream_ops]
            for key, array in copies[chip].items():
                readers = [(other, copies[other][key]) for other in range(chip + 1, len(self.stages)) if key in copies[other]]
                if readers and producer.get(key) == chip:
                    order += transmissions(chip, array, *readers)
            programs.append(StreamProgram(stream_ops, list(copies[chip].values())))
        return NodeStreamProgram(programs, order)


def _copy(array: Array, own: bool) -> Array:
    """A chip's own array; what another chip makes arrives."""
    if own:
        return replace(array)
    return replace(array, role="link", transfers=(), data=None)


def _moved(step: StreamOp, arrays: Mapping[int, Array]) -> list[StreamOp]:
    """A stream operation on a chip's arrays, after the products that it drains."""
    def pattern(found: AccessPattern) -> AccessPattern:
        return replace(found, array=arrays.get(id(found.array), found.array))

    match step:
        case VectorStreamOp():
            drains = tuple(_product(drained, arrays) for drained in step.drains)
            reads = [replace(read, pattern=pattern(read.pattern)) for read in step.reads]
            writes = [replace(write, pattern=pattern(write.pattern)) for write in step.writes]
            return [*drains, replace(step, reads=reads, writes=writes, drains=drains)]
        case LaneStreamOp():
            return [replace(step, read=pattern(step.read), write=pattern(step.write))]
        case MatrixStreamOp():
            return [_product(step, arrays)]


def _product(stream_op: MatrixStreamOp, arrays: Mapping[int, Array]) -> MatrixStreamOp:
    return replace(stream_op, products=[
        replace(
            product, weights=arrays[id(product.weights)],
            activations=replace(product.activations, array=arrays[id(product.activations.array)]),
        )
        for product in stream_op.products
    ])
