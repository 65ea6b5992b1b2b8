"""The walk over a tile function: ops in order, memory for what is stored, loops over the elements of a tile.

Ops that the plan makes anew write nothing when they are met.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any, Generic

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from tilefw.api.errors import UnsupportedError
from tilefw.loops.access import element_name
from tilefw.loops.buffers import Scratch, TileBuffer, bytes_of
from tilefw.loops.elements import Elements
from tilefw.loops.index import Index, IndexMath, fixed, stepped
from tilefw.loops.index_map import Indices
from tilefw.loops.limits import Limits, MaskLimit, limits_along
from tilefw.loops.machine import LoopMachine, V
from tilefw.loops.plan import StoragePlan, consecutive_dim
from tilefw.passes.axis_info import AxisInfoAnalysis
from tilefw.tile import types
from tilefw.tile.text.source_location import place_of

Shape = tuple[int, ...]


Handlers = Callable[[type[Operation]], Callable[["TileLowering[Any]", Any], None] | None]
"""What writes ops of a class; None for a class that is not served."""


class TileLowering(Generic[V]):
    """One function on its way."""

    def __init__(
        self, machine: LoopMachine[V], plan: StoragePlan, facts: AxisInfoAnalysis, handler: Handlers, capacity: int | None = None,
        copies: bool = False,
    ) -> None:
        self._handler = handler
        self.machine = machine
        self.plan = plan
        self.elements: Elements[V] = Elements(machine, facts)
        self.legal = self.elements.legal
        self.scopes = self.elements.scopes
        self.scratch = Scratch(capacity)
        self.in_place: dict[SSAValue, TileBuffer] = {}
        self.unbegun: dict[SSAValue, V] = {}
        """Products whose sums in their place are still to be begun, at zero, where a variable, an i1, holds."""
        self.copied_early: dict[Operation, TileBuffer] = {}
        self.tags_used = 0
        self.copies = copies
        self.op: Operation | None = None

    def run(self, function: FuncOp) -> None:
        """Write the whole function."""
        for number, argument in enumerate(function.body.block.args):
            value = self.machine.parameter(number, element_name(argument.type))
            self.machine.parameters.append(value)
            self.elements.scalars[argument] = value
        self.block(function.body.block)

    def block(self, block: Block) -> None:
        """Write the ops of a block in order."""
        for op in block.ops:
            self.op = self.machine.origin = op
            handler = self._handler(type(op))
            if handler is None:
                raise self.refused(f"'{op.name}'")
            handler(self, op)

    def refused(self, what: str) -> UnsupportedError:
        """The error for something that is not served, at the op's place."""
        assert self.op is not None
        return UnsupportedError(f"a machine without lanes does not serve {what}", code="TFW0610", place=place_of(self.op))

    # -- positions and memory

    @property
    def now(self) -> int:
        """The position of the op that is being written."""
        assert self.op is not None
        return self.plan.position[self.op]

    def allocate(self, value: SSAValue, until: int = 0) -> TileBuffer:
        """Memory for a stored value until it is read for the last time, and until a position at least."""
        last = max(self.plan.last_read.get(value, 0), until, self.now)
        return self.scratch.allocate(types.shape_of(value.type), element_name(value.type), self.now, last, value.name_hint or "")

    def temporary(self, shape: Shape, element: str, panel: int = 0) -> TileBuffer:
        """Memory that this op alone uses."""
        return self.scratch.allocate(shape, element, self.now, self.now, panel=panel)

    # -- loops over the elements of a tile

    @contextmanager
    def region(self) -> Iterator[None]:
        """A region of the code: what is computed inside is not known outside."""
        self.scopes.enter()
        try:
            yield
        finally:
            self.scopes.leave()

    @contextmanager
    def counting(self, end: int, step: int = 1) -> Iterator[Index[V]]:
        """A loop over 0, step, … below `end`; one that runs once is written without a loop."""
        if end <= step:
            with self.region():
                yield fixed(0)
            return
        first, last, by = (self.legal.integer(n, "i64") for n in (0, end, step))
        with self.machine.loop(first, last, by) as counter, self.region():
            yield Index(counter, 0, step)

    def vector_dim(self, shape: Shape, bits: int) -> tuple[int, int]:
        """Which dim's neighbours make a vector, and how many of them: the last dim where it is long enough, else the longest."""
        if not shape:
            return 0, 1
        most = self.machine.vector_lanes(bits)

        def fit(size: int) -> int:
            return min(most, size & -size)

        last = len(shape) - 1
        best = last if fit(shape[last]) == most else max(range(len(shape)), key=lambda d: (fit(shape[d]), d))
        return best, fit(shape[best])

    def each(
        self, shape: Shape, bits: int, write: Callable[[Indices, IndexMath[V]], None], panel: int = 0,
        values: Sequence[SSAValue] = (), ends: MaskLimit | None = None, whole: Sequence[SSAValue] = (), limits: Limits = (),
    ) -> None:
        """Call `write` for every vector of elements of a tile, inside the loops over them; with a `panel`, panel by panel.

        Elements of `values` are made for it: below the limits of their masks, and `limits` beside, without masks; those of `whole`
        in one loop. From the limit `ends` of the vectors' dim on nothing is written."""
        dim, lanes = self.vector_dim(shape, bits)
        self.elements.run = (panel or shape[-1]) if dim == len(shape) - 1 else 0
        limits = tuple(dict.fromkeys((*limits, *limits_along(values, dim, self.elements.buffers)))) if lanes > 1 else ()
        def nest(first: Index[V], inside: bool) -> None:
            def place(index: Indices, math: IndexMath[V]) -> None:
                column = math.add(first, index[-1])
                if inside and not isinstance(column.base, int):
                    self.elements.inside[column.base] = limits
                write((*index[:-1], column), math)

            self._nest((*shape[:-1], panel), dim, lanes, (), place)

        if panel:
            self.split_at(limits, shape[-1], panel, nest)
        else:
            self._nest(shape, dim, lanes, (), write, limits, ends, (*values, *whole))
        self.elements.run = 0

    def scalar_each(self, shape: Shape, write: Callable[[Indices, IndexMath[V]], None]) -> None:
        """Call `write` for every single element of a tile, in order."""
        self._nest(shape, 0, 1, (), write)

    def _nest(
        self, shape: Shape, dim: int, lanes: int, outer: Indices, write: Callable[[Indices, IndexMath[V]], None],
        limits: Limits = (), ends: MaskLimit | None = None, values: Sequence[SSAValue] = (),
    ) -> None:
        at = len(outer)
        if at == len(shape):
            write(outer, self.elements.math(lanes))
            return
        if at == len(shape) - 1:
            for value in values:
                self.elements.ahead(value, outer, self.elements.math(lanes))

        def further(index: Index[V], inside: bool) -> None:
            if at == dim and lanes > 1:
                index = Index(index.base, 1, index.divisor)
            if inside:
                self.elements.inside[index.base] = limits
            self._nest(shape, dim, lanes, (*outer, index), write, limits, ends, values)

        if at == dim:
            self.split_at(limits, shape[at], lanes, further, ends if lanes > 1 else None)
        else:
            with self.counting(shape[at]) as index:
                further(index, False)

    def split_at(
        self, limits: Limits, size: int, step: int, write: Callable[[Index[V], bool], None], ends: MaskLimit | None = None,
    ) -> None:
        """Loops over 0, step, … below `size`: one of the steps that lie below all limits of masks, one of the rest, up to what
        `ends` lets through."""
        if size <= step or (not limits and ends is None):
            with self.counting(size, step) as index:
                write(index, False)
            return
        zero, by = self.legal.integer(0, "i64"), self.legal.integer(step, "i64")
        last = self.legal.integer(size, "i64") if ends is None else self.elements.below(ends, size)
        parts = [(zero, last, False)]
        if limits:
            whole = self.below_all(limits, size, step)
            parts = [(zero, whole, True), (whole, last, False)]
        for first, end, inside in parts:
            with self.machine.loop(first, end, by) as counter, self.region():
                write(Index(counter, 0, step), inside)

    def below_all(self, limits: Limits, size: int, step: int) -> V:
        """How many elements of a dim of `size` lie below all limits, in whole steps: an i64."""
        least = self.elements.below(limits[0], size)
        for limit in limits[1:]:
            least = self.legal("mins", least, self.elements.below(limit, size))
        return self.legal("andi", least, self.legal.integer(-step, "i64"))

    @contextmanager
    def filled_by(self, statement: Operation) -> Iterator[None]:
        """While a statement reads values that it also writes to their memory."""
        elements = self.elements
        values = [value for value, by in self.plan.written_by.items() if by is statement]
        values.sort(key=lambda value: self.plan.position[value.owner])  # type: ignore[index]  # the results of ops
        elements.filling |= {value: self.allocate(value) for value in values}
        yield
        for value in values:
            elements.buffers[value] = elements.filling.pop(value)

    def store_value(self, value: SSAValue, into: TileBuffer, finish: Callable[[V], V] | None = None) -> None:
        """Write all elements of a tile into a buffer; `finish` makes of them what is written."""
        elements = self.elements
        finish = finish or (lambda found: found)
        bits = max(32, 8 * bytes_of(into.element))
        dim, lanes = self.vector_dim(into.shape, bits)
        other = consecutive_dim(value, self.plan)
        if self.machine.transposes and other not in (None, dim) and lanes > 1 and into.shape[other] % lanes == 0:
            self._store_across(value, into, finish, dim, other, lanes)
            return

        def write(index: Indices, math: IndexMath[V]) -> None:
            elements.write(into, index, finish(elements.at(value, index, math)), math)

        across = self._short_rows(into.shape, bits)
        if across and not into.panel and not elements.loads(value):
            self._several_rows(into.shape, *across, write)
            return
        self.each(into.shape, bits, write, into.panel, (value,))

    def _short_rows(self, shape: Shape, bits: int) -> tuple[int, int] | None:
        """Where rows are shorter than a vector: the dim of which some neighbours with all that is in them make one, and how
        many."""
        lanes, inner = self.machine.vector_lanes(bits), 1
        for dim in reversed(range(len(shape) if self.machine.permutes else 0)):
            if lanes % inner:
                return None
            count = lanes // inner
            if shape[dim] >= count:
                return (dim, count) if dim < len(shape) - 1 and shape[dim] % count == 0 else None
            inner *= shape[dim]
        return None

    def _several_rows(self, shape: Shape, dim: int, count: int, write: Callable[[Indices, IndexMath[V]], None]) -> None:
        """Call `write` for vectors of what is next to each other in the last dims, `count` of the neighbours in one of them."""
        inner = prod(shape[dim + 1 :])
        math = self.elements.math(count * inner)
        lanes = range(math.lanes)
        front = tuple(lane // inner for lane in lanes)
        sizes = [(prod(shape[at + 1 :]), shape[at]) for at in range(dim + 1, len(shape))]
        within = tuple(stepped(0, tuple(lane // each % size for lane in lanes), 0) for each, size in sizes)

        def nest(outer: Indices) -> None:
            at = len(outer)
            with self.counting(shape[at], count if at == dim else 1) as index:
                if at < dim:
                    nest((*outer, index))
                else:
                    write((*outer, stepped(index.base, front, index.divisor), *within), math)

        nest(())

    def _store_across(
        self, value: SSAValue, into: TileBuffer, finish: Callable[[V], V], dim: int, other: int, lanes: int
    ) -> None:
        """Read along one dim, whose neighbours are next to one another in memory, and write along another: squares are transposed.
        """
        elements, machine = self.elements, self.machine
        math = elements.math(lanes)

        def nest(outer: Indices) -> None:
            at = len(outer)
            if at < len(into.shape):
                with self.counting(into.shape[at], lanes if at in (dim, other) else 1) as index:
                    nest((*outer, index))
                return
            rows = [finish(elements.at(value, self._square(outer, other, dim, row, math), math)) for row in range(lanes)]
            turned = machine.transposed([machine.repeated(row, lanes) if row.lanes == 1 else row for row in rows])
            for row, found in enumerate(turned):
                elements.write(into, self._square(outer, dim, other, row, math), found, math)

        nest(())

    def _square(self, corner: Indices, along: int, beside: int, row: int, math: IndexMath[V]) -> Indices:
        """A row of the square at a corner: the vector along one dim, at place `row` of the other."""
        found = list(corner)
        found[along] = Index(corner[along].base, 1, corner[along].divisor)
        found[beside] = math.add(corner[beside], fixed(row))
        return tuple(found)

    def copy(self, source: TileBuffer, into: TileBuffer) -> None:
        """All elements of one buffer into another of the same shape."""

        def write(index: Indices, math: IndexMath[V]) -> None:
            self.elements.write(into, index, self.elements.read(source, index, math), math)

        self.each(into.shape, 8 * bytes_of(into.element), write)

    def fill(self, value: SSAValue) -> None:
        """Give a stored value its memory and write its elements there; what is made anew needs neither."""
        if value in self.plan.stored and value not in self.plan.written_by:
            buffer = self.allocate(value)
            self.store_value(value, buffer)
            self.elements.buffers[value] = buffer

    def reads(self, value: SSAValue, stored: SSAValue) -> bool:
        """Whether making elements of a value reads the memory of a stored one."""
        seen: set[SSAValue] = set()
        pending = [value]
        while pending:
            reader = pending.pop()
            if reader is stored:
                return True
            if reader in seen or reader in self.plan.stored or not isinstance(reader.owner, Operation):
                continue
            seen.add(reader)
            pending.extend(operand for operand in reader.owner.operands if types.is_tile(operand.type))
        return False
