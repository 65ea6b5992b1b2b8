"""Elementwise operations before they become steps: inputs, constants, rows of the elementwise table, and reductions over time.

A region is a set of results that are wanted and, through their operands, all nodes below them. All of it runs over one domain of
points (loops, outermost first); a point is one vector of 320 lanes. What is `reduced` has one vector for each point of the domain
without its innermost loop (or loops: `every` points make one): the results of reductions, inputs that are constant along that
loop, and whatever is made of these alone. Where full-rate work reads a reduced value it finds the same vector at every point of
the innermost loop.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from tilefw.api import Place
from tilefw_spatial.graph import ReductionKind


@dataclass(frozen=True, slots=True, eq=False)
class Input:
    """An array that streams in. `key` is the caller's name for it: two inputs of one key are one stream.

    `dtype` is the element type (Triton's name: `fp16`). `reduced`: constant along the innermost loop. `drained`: it comes from the
    matrix unit's accumulators; only one segment reads it, where drained inputs are the first reads. What other segments need of it
    goes through memory."""

    key: Hashable
    dtype: str
    reduced: bool = False
    drained: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """One constant for all elements: `bits` is the element's code, unsigned (1.0 of fp32 is 0x3F800000)."""

    bits: int
    dtype: str


@dataclass(frozen=True, slots=True, eq=False)
class Apply:
    """A row of the elementwise table on operands of one type T (a select's first is int1); `dtype` is the result's.

    `row` is the table's name, or `castf_rtz` for a `castf` that truncates. `fusion` allows a sum to take a product unrounded.
    `place` is the user's line, for errors."""

    row: str
    operands: tuple[Node, ...]
    dtype: str
    fusion: bool = True
    place: Place | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Combined:
    """`operand` combined over each `every` successive points, in order of time, beginning with `initial` (a reduced value or a
    literal) where given: `combine(… combine(combine(initial, x0), x1) …)`. The result, of `dtype` (the operand's), is reduced.

    Floats narrower than fp32 are combined in fp32 and rounded once at the end."""

    kind: ReductionKind
    operand: Node
    every: int
    dtype: str
    initial: Node | None = None
    place: Place | None = None


Node = Input | Literal | Apply | Combined


@dataclass(frozen=True, slots=True)
class NodeResult:
    """A value that is needed outside the region, under the caller's name `key` for the array that takes it: a vector a point, or
    if the node is reduced a vector for each point of the domain without its innermost loop."""

    key: Hashable
    node: Node


Results = Sequence[NodeResult]
