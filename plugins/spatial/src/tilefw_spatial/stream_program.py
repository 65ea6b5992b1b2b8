"""Stream programs: the operations on streams that the scheduler places in time.

A stream operation moves arrays through one unit: vectors leave memory, pass the ALUs (or the matrix unit), and results go back to
memory. Within an operation all distances in time are fixed, because a stream neither stops nor waits; only when it begins is open.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tilefw.api import Place
from tilefw_spatial.program import Transfer


@dataclass(slots=True, eq=False)
class Array:
    """Vectors of one element type somewhere in memory; `placement` decides where.

    `role` is `in`, `out`, `const`, `temp`, or `link` for what other chips send. Of results that write one element of a buffer the
    one of the highest `rank` wins. `groups` > 1 spreads neighbouring vectors over that many blocks (the matrix unit takes several
    at once). Each `segment` successive vectors, if it is not 0, lie in slices of their own: two stream operations that make
    different ones can run at the same time. `side` is where it must be read from or is better: `W`, `E` or empty. `transfers` as in
    `program.HostTensor`."""

    name: str
    dtype: str
    vectors: int
    role: str
    groups: int = 1
    side: str = ""
    segment: int = 0
    transfers: tuple[Transfer, ...] = ()
    data: NDArray[np.generic] | None = None
    rank: int = 0


@dataclass(frozen=True, slots=True)
class AccessPattern:
    """An affine access pattern: which vector is accessed at each point of an operation's domain: `start + Σ index_d · strides_d`,
    one stride a loop, outermost first; or `table`, where that is no such sum: one vector's number a point."""

    array: Array
    start: int
    strides: tuple[int, ...]
    table: NDArray[np.int64] | None = None


@dataclass(frozen=True, slots=True)
class OperandSource:
    """An operand of an ALU: `kind` is `stream` (index of the stream operation's read), `alu` (index of an earlier step), `imm`
    (bits of the element), `lane` (the lane's own number), or `none`. Sign and magnitude are free for floats: |x| first, then -x."""

    kind: str
    index: int = 0
    negate: bool = False
    absolute: bool = False


@dataclass(frozen=True, slots=True)
class AluStep:
    """One ALU at work for the whole stream operation: `op` is a row of the instruction table with its suffix (`CMP.lt`), on
    elements of `dtype` (`to` is what a CVT makes). A TRED step combines `every` successive vectors and has a result once each
    `every` points."""

    op: str
    dtype: str
    operands: tuple[OperandSource, ...]
    to: str = ""
    every: int = 1
    alu: int = -1  # which of the ALUs, and
    time: int = 0  # the cycle of the first point at which it issues, counted from the stream operation's begin at the vector unit


@dataclass(frozen=True, slots=True)
class Read:
    """A stream into an operation: vectors of `pattern`, the first at the vector unit at `time` (same origin as `AluStep.time`)."""

    pattern: AccessPattern
    time: int = 0


@dataclass(frozen=True, slots=True)
class Write:
    """A stream out of an operation: results of step `step` (each `every` points one), to vectors of `pattern`, whose domain is the
    operation's, without its innermost loop where the step reduces it."""

    step: int
    pattern: AccessPattern


@dataclass(slots=True, eq=False)
class VectorStreamOp:
    """A chain of ALUs over a domain of points: `domain` are extents of loops, outermost first; one point a cycle.

    Where `drains` is set, read k comes from the accumulators of `drains[k]` instead of memory: their rows from first to last, so
    the domain has as many points as they have rows, and the access pattern is ignored."""

    domain: tuple[int, ...]
    reads: list[Read]
    steps: list[AluStep]
    writes: list[Write]
    drains: tuple[MatrixStreamOp, ...] = ()
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Product:
    """Activations times one set of weights: the vectors of `activations` (`half` 0 or 1 of their lanes where the plane takes half a
    vector) by `weights`, whose vectors from `first` on are the rows of K; `depth` of them count."""

    activations: AccessPattern
    half: int
    weights: Array
    first: int
    depth: int


@dataclass(slots=True, eq=False)
class MatrixStreamOp:
    """Sums of products into accumulators: one tile of results, `rows` by 320 lanes, on one side's planes.

    Products follow one another; the first sets the accumulators, the others add to them. A VectorStreamOp that `drains` it takes
    the results; one that drains two of them (a K split) has a step that adds the two reads."""

    dtype: str
    rows: int
    products: list[Product]
    side: str = "W"
    place: Place | None = None


@dataclass(slots=True, eq=False)
class LaneStreamOp:
    """Vectors through the switch: `op` is `PRM`, or `DST` where no lane leaves its superlane; `map` has the source lane of each
    lane, -1 for zero."""

    domain: tuple[int, ...]
    op: str
    dtype: str
    read: AccessPattern
    write: AccessPattern
    map: tuple[int, ...] = ()
    place: Place | None = None


StreamOp = VectorStreamOp | MatrixStreamOp | LaneStreamOp


def reads_of(stream_op: StreamOp) -> list[Array]:
    """The arrays that a stream operation itself reads, one entry a read: not what the products read that it drains."""
    match stream_op:
        case VectorStreamOp():
            return [read.pattern.array for read in stream_op.reads[len(stream_op.drains) :]]
        case MatrixStreamOp():
            return [array for product in stream_op.products for array in (product.activations.array, product.weights)]
        case LaneStreamOp():
            return [stream_op.read.array]


def writes_of(stream_op: StreamOp) -> list[Array]:
    """The arrays that a stream operation writes, one entry a write."""
    match stream_op:
        case VectorStreamOp():
            return [write.pattern.array for write in stream_op.writes]
        case MatrixStreamOp():
            return []
        case LaneStreamOp():
            return [stream_op.write.array]


def arrays_of(stream_op: StreamOp) -> list[Array]:
    """The arrays that a stream operation accesses."""
    return reads_of(stream_op) + writes_of(stream_op)


@dataclass(slots=True)
class StreamProgram:
    """One chip's stream operations, in an order that is right if they ran one after the other, and the arrays that they access;
    `results` has the array of each store."""

    stream_ops: list[StreamOp] = field(default_factory=list)
    arrays: list[Array] = field(default_factory=list)
    results: list[Array] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class LinkStreamOp:
    """One byte plane of vectors `first` to `first + count` of an array of chip `source` to the same vectors of arrays of other
    chips, a vector as often as a link takes one. `targets` are (chip, array); all of them are sent to at once."""

    source: int
    array: Array
    byte: int
    first: int
    count: int
    targets: tuple[tuple[int, Array], ...]


@dataclass(slots=True)
class NodeStreamProgram:
    """The stream programs of several chips, and one order of all their operations, by chip, that is right if they ran one after
    the other."""

    chips: list[StreamProgram]
    order: list[tuple[int, StreamOp] | LinkStreamOp] = field(default_factory=list)
