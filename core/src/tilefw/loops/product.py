"""Products of tiles as loops: operands in memory in the type that is summed up, a block of sums in registers, one step of K a turn.

Sums are of f32 for all narrower floats, of f64, and of i32 for bytes: exact products, one rounding an addition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import gcd

from xdsl.ir import SSAValue

from tilefw.loops.access import element_name
from tilefw.loops.buffers import TileBuffer, bytes_of
from tilefw.loops.index import Index, IndexMath, fixed
from tilefw.loops.index_map import Indices
from tilefw.loops.lowering import TileLowering
from tilefw.loops.machine import V
from tilefw.tile import types
from tilefw.tile.dialect.dot_op import DotOp

_Start = Callable[[Indices, IndexMath[V]], V]
_STEPS = 4  # of K in one turn of the loop, so that little of it is counting


def dot(lowering: TileLowering[V], op: DotOp) -> None:
    """Write a product and what it is added to."""
    computed = type_of_sums(op)
    block = _SumBlock.of(lowering, op.sizes, computed)
    left = _operand(lowering, op.a, computed, op.unsigned)
    right = _operand(lowering, op.b, computed, op.unsigned, block.columns if block.columns > block.lanes else 0)
    with sums_of(lowering, op, begun=False) as total:
        _multiply(lowering, left, right, total, op.sizes, block, _start(lowering, op))


def product_as_loops(
    lowering: TileLowering[V], op: DotOp, sizes: tuple[int, int, int], front: Indices, left: TileBuffer, right: TileBuffer,
    total: TileBuffer, unbegun: V | None = None,
) -> None:
    """A product of buffers, added to what `op` adds it to; its factors are widened as they are read. Sums begin at zero where
    `unbegun` holds."""
    block = _SumBlock.of(lowering, (1, *sizes), total.element)
    there = lowering.elements.buffers.get(op.acc) is total
    onto = partial(lowering.elements.read, total) if there else _start(lowering, op)
    start = onto if unbegun is None else _begun(lowering, onto, unbegun)
    _batch(lowering, left, right, total, front, sizes, block, op.unsigned, start)


def _begun(lowering: TileLowering[V], onto: _Start[V], unbegun: V) -> _Start[V]:
    """What makes zeros of sums that are unbegun."""

    def start(index: Indices, math: IndexMath[V]) -> V:
        found = onto(index, math)
        return lowering.legal("select", unbegun, lowering.machine.const(0, found.type), found)

    return start


def _start(lowering: TileLowering[V], op: DotOp) -> _Start[V]:
    """What makes the sums that a product is added to."""
    computed = type_of_sums(op)

    def start(index: Indices, math: IndexMath[V]) -> V:
        return as_type(lowering, lowering.elements.at(op.acc, index, math), computed, False)

    return start


def type_of_sums(op: DotOp) -> str:
    """The type in which a product is summed up."""
    sums = element_name(op.acc.type)
    return sums if sums in ("f64", "i32") else "f32"


@contextmanager
def sums_of(lowering: TileLowering[V], op: DotOp, begun: bool = True) -> Iterator[TileBuffer]:
    """Memory of a product's sums, in their type; behind the block it holds the product, rounded. Where it has `begun`, it holds
    what the product is added to; elsewhere whoever writes a sum makes that first."""
    elements, computed = lowering.elements, type_of_sums(op)
    target = lowering.in_place.get(op.result) or lowering.allocate(op.result)
    total = target if element_name(op.acc.type) == computed else lowering.temporary(target.shape, computed)
    if begun and elements.buffers.get(op.acc) is not total:
        write_as(lowering, op.acc, total)
    yield total
    if total is not target:
        _rounded(lowering, total, target)
    elements.buffers[op.result] = target


@dataclass(frozen=True, slots=True)
class _RowSpan:
    """Rows of a product from `first` up to `end`, of which `height` are summed up at once."""

    first: int
    end: int
    height: int


@dataclass(frozen=True, slots=True)
class _SumBlock:
    """The sums that are in registers at once: rows as one of the `spans` says, times `columns`, vectors of `lanes`; a turn of the
    loop does `steps` of K."""

    spans: tuple[_RowSpan, ...]
    columns: int
    lanes: int
    steps: int

    @classmethod
    def of(cls, lowering: TileLowering[V], sizes: tuple[int, int, int, int], element: str) -> _SumBlock:
        """The largest block that the machine's registers hold, in columns that divide the tile."""
        _, m, n, k = sizes
        rows_at_once, vectors_at_once = lowering.machine.product_tile
        lanes = min(lowering.machine.vector_lanes(8 * bytes_of(element)), n & -n)
        return cls(_row_spans(m, rows_at_once), gcd(n // lanes, vectors_at_once) * lanes, lanes, gcd(k, _STEPS))


def _row_spans(rows: int, at_once: int) -> tuple[_RowSpan, ...]:
    """All rows in as few blocks as can be, which differ by one row at most: a last block of few sums would wait for each."""
    blocks = -(-rows // at_once)
    height, taller = divmod(rows, blocks)
    border = taller * (height + 1)
    spans = (_RowSpan(0, border, height + 1), _RowSpan(border, rows, height))
    return tuple(span for span in spans if span.first < span.end)


def _operand(lowering: TileLowering[V], value: SSAValue, computed: str, unsigned: bool, panel: int = 0) -> TileBuffer:
    """An operand in memory, in the type that is summed up; what is written for this product alone stands in panels."""
    stored = lowering.elements.buffers.get(value)
    if stored is not None and stored.element == computed:
        return stored
    made = lowering.temporary(types.shape_of(value.type), computed, panel)
    write_as(lowering, value, made, unsigned)
    return made


def write_as(lowering: TileLowering[V], value: SSAValue, into: TileBuffer, unsigned: bool = False) -> None:
    """All elements of a tile into a buffer of another type."""
    lowering.store_value(value, into, lambda found: as_type(lowering, found, into.element, unsigned))


def _rounded(lowering: TileLowering[V], source: TileBuffer, into: TileBuffer) -> None:
    """All elements of a buffer into one of a narrower type."""
    def write(index: Indices, math: IndexMath[V]) -> None:
        found = lowering.elements.read(source, index, math)
        lowering.elements.write(into, index, as_type(lowering, found, into.element, False), math)

    lowering.each(into.shape, 32, write)


def as_type(lowering: TileLowering[V], value: V, to: str, unsigned: bool) -> V:
    """An element in another type, which has all of its numbers."""
    if value.type == to:
        return value
    row = "castf" if not value.type.startswith("i") else "extu" if unsigned else "exts"
    return lowering.legal(row, value, to=to)


def _multiply(
    lowering: TileLowering[V], a: TileBuffer, b: TileBuffer, c: TileBuffer, sizes: tuple[int, int, int, int], block: _SumBlock,
    start: _Start[V],
) -> None:
    batches, *whole = sizes
    with lowering.counting(batches) as batch:
        front: Indices = (batch,) if len(c.shape) == 3 else ()
        _batch(lowering, a, b, c, front, (whole[0], whole[1], whole[2]), block, False, start)


def _batch(
    lowering: TileLowering[V], a: TileBuffer, b: TileBuffer, c: TileBuffer, front: Indices, sizes: tuple[int, int, int],
    block: _SumBlock, unsigned: bool, start: _Start[V],
) -> None:
    """Columns are the outer loop: their part of `b` stays near while all rows of `a` pass."""
    _, n, k = sizes
    with lowering.counting(n, block.columns) as column:
        for span in block.spans:
            with lowering.counting(span.end - span.first, span.height) as within:
                down = [lowering.elements.math(1).add(within, fixed(span.first + i)) for i in range(span.height)]
                _block(lowering, a, b, c, front, down, column, k, block, unsigned, start)


def _block(
    lowering: TileLowering[V], a: TileBuffer, b: TileBuffer, c: TileBuffer, front: Indices, down: list[Index[V]],
    column: Index[V], k: int, block: _SumBlock, unsigned: bool, start: _Start[V],
) -> None:
    """A block of sums, in variables while K goes on. They begin with what `start` makes."""
    elements, machine = lowering.elements, lowering.machine
    columns, lanes = block.columns, block.lanes
    math = elements.math(lanes)
    across = [_vector(math.add(column, fixed(j)), lanes) for j in range(0, columns, lanes)]
    sums = [[machine.variable(c.element, lanes) for _ in across] for _ in down]
    for i, line in zip(down, sums, strict=True):
        for j, variable in zip(across, line, strict=True):
            found = start((*front, i, j), math)
            machine.assign(variable, found if found.lanes == lanes else machine.repeated(found, lanes))
    with lowering.counting(k, block.steps) as first:
        for step in (math.add(first, fixed(number)) for number in range(block.steps)):
            right = [as_type(lowering, elements.read(b, (*front, step, j), math), c.element, unsigned) for j in across]
            for i, line in zip(down, sums, strict=True):
                left = as_type(lowering, elements.read(a, (*front, i, step), math), c.element, unsigned)
                for factor, variable in zip(right, line, strict=True):
                    machine.assign(variable, _step(lowering, left, factor, machine.read(variable)))
    for i, line in zip(down, sums, strict=True):
        for j, variable in zip(across, line, strict=True):
            elements.write(c, (*front, i, j), machine.read(variable), math)


def _vector(index: Index[V], lanes: int) -> Index[V]:
    return Index(index.base, 1, index.divisor) if lanes > 1 else index


def _step(lowering: TileLowering[V], a: V, b: V, c: V) -> V:
    if c.type == "i32":
        return lowering.legal("addi", c, lowering.legal("muli", a, b))
    return lowering.legal("fma", a, b, c)
