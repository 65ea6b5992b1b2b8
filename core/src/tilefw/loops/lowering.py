"""A tile function as loops: the walk over its ops, control flow, and the statements that write elements.

`lower_function` is the kit's entry. Ops are met in order; those that the plan makes anew write nothing when they are met.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.scf import ConditionOp, ForOp, IfOp, WhileOp, YieldOp
from xdsl.ir import Block, Operation, SSAValue

from tilefw.api.errors import UnsupportedError
from tilefw.loops import control
from tilefw.loops.access import access_of, element_name
from tilefw.loops.buffers import Buffer, Scratch, bytes_of
from tilefw.loops.combine import reduce, scan
from tilefw.loops.effects import Effects
from tilefw.loops.elements import Elements, code_of
from tilefw.loops.index import Index, IndexMath, fixed
from tilefw.loops.index_map import Indices
from tilefw.loops.machine import LoopAtomic, LoopMachine, V
from tilefw.loops.plan import Plan, plan_of
from tilefw.loops.product import dot
from tilefw.passes.axis_info import AxisInfoAnalysis
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.atomic_ops import AtomicOp
from tilefw.tile.dialect.elementwise_op import ElementwiseOp
from tilefw.tile.dialect.structural_op import StructuralOp
from tilefw.tile.dialect.trap_op import TrapOp
from tilefw.tile.text.source_location import place_of

Shape = tuple[int, ...]


def lower_function(
    function: FuncOp, machine: LoopMachine[V], effects: Effects, facts: AxisInfoAnalysis, capacity: int | None = None
) -> int:
    """Write a function on a machine; gives the bytes of its own memory that one program needs.

    Raises UnsupportedError TFW0610, with the place, for an op or a row that is not served, and CapacityError TFW0659 where tiles
    need more than `capacity` bytes at once.
    """
    lowering = Lowering(machine, plan_of(function, effects), facts, capacity)
    lowering.run(function)
    return lowering.scratch.high


class Lowering(Generic[V]):
    """One function on its way."""

    def __init__(self, machine: LoopMachine[V], plan: Plan, facts: AxisInfoAnalysis, capacity: int | None) -> None:
        self.machine = machine
        self.plan = plan
        self.elements: Elements[V] = Elements(machine, facts)
        self.legal = self.elements.legal
        self.scopes = self.elements.scopes
        self.scratch = Scratch(capacity)
        self.in_place: dict[SSAValue, Buffer] = {}
        self.op: Operation | None = None

    def run(self, function: FuncOp) -> None:
        """Write the whole function."""
        for number, argument in enumerate(function.body.block.args):
            self.elements.scalars[argument] = self.machine.parameter(number, element_name(argument.type))
        self.block(function.body.block)

    def block(self, block: Block) -> None:
        """Write the ops of a block in order."""
        for op in block.ops:
            self.op = op
            handler = _HANDLERS.get(type(op))
            if handler is not None:
                handler(self, op)
            elif isinstance(op, ElementwiseOp | StructuralOp):
                _pure(self, op)
            elif isinstance(op, AtomicOp):
                _atomic(self, op)
            else:
                raise self.refused(f"'{op.name}'")

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

    def allocate(self, value: SSAValue, until: int = 0) -> Buffer:
        """Memory for a stored value until it is read for the last time, and until a position at least."""
        last = max(self.plan.last_read.get(value, 0), until, self.now)
        return self.scratch.allocate(types.shape_of(value.type), element_name(value.type), self.now, last, value.name_hint or "")

    def temporary(self, shape: Shape, element: str) -> Buffer:
        """Memory that this op alone uses."""
        return self.scratch.allocate(shape, element, self.now, self.now)

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

    def each(self, shape: Shape, bits: int, write: Callable[[Indices, IndexMath[V]], None]) -> None:
        """Call `write` for every vector of elements of a tile, inside the loops over them."""
        dim, lanes = self.vector_dim(shape, bits)
        self._nest(shape, dim, lanes, (), write)

    def scalar_each(self, shape: Shape, write: Callable[[Indices, IndexMath[V]], None]) -> None:
        """Call `write` for every single element of a tile, in order."""
        self._nest(shape, 0, 1, (), write)

    def _nest(
        self, shape: Shape, dim: int, lanes: int, outer: Indices, write: Callable[[Indices, IndexMath[V]], None]
    ) -> None:
        at = len(outer)
        if at == len(shape):
            write(outer, self.elements.math(lanes))
            return
        with self.counting(shape[at], lanes if at == dim else 1) as index:
            if at == dim and lanes > 1:
                index = Index(index.base, 1, index.divisor)
            self._nest(shape, dim, lanes, (*outer, index), write)

    def store_value(self, value: SSAValue, into: Buffer) -> None:
        """Write all elements of a tile into a buffer."""
        def write(index: Indices, math: IndexMath[V]) -> None:
            self.elements.write(into, index, self.elements.at(value, index, math), math)

        self.each(into.shape, max(32, 8 * bytes_of(into.element)), write)

    def copy(self, source: Buffer, into: Buffer) -> None:
        """All elements of one buffer into another of the same shape."""

        def write(index: Indices, math: IndexMath[V]) -> None:
            self.elements.write(into, index, self.elements.read(source, index, math), math)

        self.each(into.shape, 8 * bytes_of(into.element), write)

    def fill(self, value: SSAValue) -> None:
        """Give a stored value its memory and write its elements there; what is made anew needs neither."""
        if value in self.plan.stored:
            buffer = self.allocate(value)
            self.store_value(value, buffer)
            self.elements.buffers[value] = buffer

    def reads(self, value: SSAValue, stored: SSAValue) -> bool:
        """Whether making elements of a value reads the memory of a stored one."""
        if value is stored:
            return True
        if value in self.plan.stored or not types.is_tile(value.type) or not isinstance(value.owner, Operation):
            return False
        return any(self.reads(operand, stored) for operand in value.owner.operands)


# -- ops without control flow


def _pure(lowering: Lowering[V], op: Operation) -> None:
    for result in op.results:
        if types.is_tile(result.type):
            lowering.fill(result)
        else:
            lowering.elements.scalars[result] = lowering.elements.made(result, (), lowering.elements.math(1))


def _constant(lowering: Lowering[V], op: ops.ConstantOp) -> None:
    if types.is_tile(op.result.type):
        lowering.fill(op.result)
    else:
        lowering.elements.scalars[op.result] = lowering.machine.const(code_of(op), element_name(op.result.type))


def _addptr(lowering: Lowering[V], op: ops.AddPtrOp) -> None:
    if types.is_tile(op.result.type):
        lowering.fill(op.result)
        return
    pointer, offset = (lowering.elements.scalars[operand] for operand in op.operands)
    lowering.elements.scalars[op.result] = lowering.elements.moved(pointer, offset, op.pointer)


def _load(lowering: Lowering[V], op: ops.LoadOp | ops.LoadBlockOp) -> None:
    (result,) = op.results
    if types.is_tile(result.type):
        lowering.fill(result)
        return
    lowering.elements.scalars[result] = lowering.elements.load(access_of(op), (), lowering.elements.math(1))


def _store(lowering: Lowering[V], op: ops.StoreOp | ops.StoreBlockOp) -> None:
    access = access_of(op)
    elements, machine = lowering.elements, lowering.machine

    def write(index: Indices, math: IndexMath[V]) -> None:
        value = elements.at(op.value, index, math)
        memory, mask, lanes = elements.reach(access, index, math)
        lanes = max(lanes, 1 if mask is None else mask.lanes)
        if value.lanes < math.lanes and lanes > 1:
            value = machine.repeated(value, math.lanes)
        machine.store(memory, value, mask)

    lowering.each(access.shape, max(32, 8 * bytes_of(access.element)), write)


def _atomic(lowering: Lowering[V], op: AtomicOp) -> None:
    """Each element by itself, in order; a masked-off one is none."""
    access = access_of(op)
    elements, machine, legal = lowering.elements, lowering.machine, lowering.legal
    result = op.results[0]
    kept = lowering.allocate(result) if types.is_tile(result.type) and op.result_is_used else None
    kind = "cas" if isinstance(op, ops.AtomicCasOp) else op.kind  # type: ignore[attr-defined]
    old = machine.variable(access.element) if not access.shape else None
    if old is not None:
        machine.assign(old, machine.const(0, access.element))

    def write(index: Indices, math: IndexMath[V]) -> None:
        memory, mask, _ = elements.reach(access, index, math)
        operands = tuple(elements.at(value, index, math) for value in op.values)

        def act() -> None:
            distance = legal("muli", memory.offset, legal.integer(bytes_of(access.element), "i64"))
            address = legal("addi", memory.address, distance)
            found = machine.atomic(LoopAtomic(kind, access.element, address, operands, op.order, op.scope))
            if kept is not None:
                elements.write(kept, index, found, math)
            elif old is not None:
                machine.assign(old, found)

        if mask is None:
            act()
        else:
            with machine.branch(mask), lowering.region():
                act()

    lowering.scalar_each(access.shape, write)
    if kept is not None:
        elements.buffers[result] = kept
    if old is not None:
        elements.scalars[result] = machine.read(old)


def _program_id(lowering: Lowering[V], op: ops.ProgramIdOp) -> None:
    lowering.elements.scalars[op.result] = lowering.machine.program_id(op.axis)


def _num_programs(lowering: Lowering[V], op: ops.NumProgramsOp) -> None:
    lowering.elements.scalars[op.result] = lowering.machine.programs(op.axis)


_HANDLERS: dict[type[Operation], Callable[[Lowering[Any], Any], None]] = {
    ops.ConstantOp: _constant,
    ops.IotaOp: _pure,
    ops.AddPtrOp: _addptr,
    ops.LoadOp: _load,
    ops.LoadBlockOp: _load,
    ops.StoreOp: _store,
    ops.StoreBlockOp: _store,
    ops.ProgramIdOp: _program_id,
    ops.NumProgramsOp: _num_programs,
    ops.ReduceOp: reduce,
    ops.ScanOp: scan,
    ops.DotOp: dot,
    ops.BarrierOp: lambda lowering, op: lowering.machine.fence(),
    TrapOp: lambda lowering, op: lowering.machine.trap(op.message, place_of(op)),
    ForOp: control.for_loop,
    WhileOp: control.while_loop,
    IfOp: control.branch,
    **dict.fromkeys((YieldOp, ConditionOp, ReturnOp), lambda lowering, op: None),  # what holds the region reads their operands
}
