"""Reductions and scans as loops: many elements at once where the axis, or a dim beside it, is long enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from tilefw.loops.access import element_name
from tilefw.loops.buffers import bytes_of
from tilefw.loops.elements import code_of
from tilefw.loops.identities import IDEMPOTENT, identity, row_of
from tilefw.loops.index import Index, IndexMath, fixed
from tilefw.loops.index_map import Indices
from tilefw.loops.limits import Limits, limits_along, uniform_beyond
from tilefw.loops.lowering import TileLowering
from tilefw.loops.machine import V
from tilefw.loops.plan import hides_waiting
from tilefw.tile import types
from tilefw.tile.dialect.combine_op import CombineOp, CombineReturnOp, ReduceOp, ScanOp
from tilefw.tile.dialect.constant_op import ConstantOp
from tilefw.tile.dialect.elementwise_op import ElementwiseOp

_CHAINS = 4  # sums that are taken side by side, where each addition would wait for the one before


def reduce(lowering: TileLowering[V], op: ReduceOp) -> None:
    """Write a reduction: along the vectors themselves where the axis is last and long, else beside it."""
    shape = types.shape_of(op.operands[0].type)
    axis, bits = op.axis, _bits(op)
    rest = (*shape[:axis], *shape[axis + 1 :])
    _, beside = lowering.vector_dim(rest, bits)
    along = min(lowering.machine.vector_lanes(bits), shape[axis] & -shape[axis])
    targets = [None if not rest else lowering.allocate(result) for result in op.results]
    with lowering.filled_by(op):
        if axis == len(shape) - 1 and along >= beside:
            _along(lowering, op, shape, along, targets)
        else:
            _beside(lowering, op, rest, targets)
    for result, target in zip(op.results, targets, strict=True):
        if target is not None:
            lowering.elements.buffers[result] = target


def _along(lowering: TileLowering[V], op: ReduceOp, shape: tuple[int, ...], lanes: int, targets: Sequence[object]) -> None:
    elements, machine = lowering.elements, lowering.machine
    size = shape[-1]
    vectors = size // lanes
    waits = not any(hides_waiting(operand, lowering.plan, elements.filling) for operand in op.operands)
    chains = _CHAINS if waits and vectors % _CHAINS == 0 and vectors > _CHAINS else 1
    step = chains * lanes
    math = elements.math(lanes)
    start = identity(machine, op) if vectors > 1 else None
    limits = limits_along(op.operands, len(shape) - 1) if start is not None and lanes > 1 else ()

    def at(outer: Indices, base: Index[V], inside: bool = False) -> Indices:
        if inside:
            elements.inside[base.base] = limits
        return (*outer, Index(base.base, 1, base.divisor) if lanes > 1 else base)

    def add(totals: list[list[V]], outer: Indices, first: V, last: V, inside: bool = False) -> None:
        """A loop from `first` to `last`, as many vectors a turn as there are totals."""
        with machine.loop(first, last, lowering.legal.integer(len(totals) * lanes, "i64")) as counter, lowering.region():
            for chain, variables in enumerate(totals):
                index = math.add(Index(counter, 0, len(totals) * lanes), fixed(chain * lanes))
                found = _operands(lowering, op, at(outer, index, inside), math)
                _assign(lowering, variables, combined(lowering, op, [machine.read(v) for v in variables], found), lanes)

    def write(outer: Indices, plain: IndexMath[V]) -> None:
        for operand in op.operands:
            elements.ahead(operand, outer, math)
        if start is not None:
            firsts = [[start] for _ in range(chains)]
        else:
            firsts = [_operands(lowering, op, at(outer, fixed(chain * lanes)), math) for chain in range(chains)]
        if vectors > chains or start is not None:
            totals = [[machine.variable(v.type, lanes) for v in first] for first in firsts]
            for variables, first in zip(totals, firsts, strict=True):
                _assign(lowering, variables, first, lanes)
            zero, last = (lowering.legal.integer(n, "i64") for n in (0 if start is not None else step, size))
            if limits:
                whole = lowering.below_all(limits, size, step)
                add(totals, outer, zero, whole, True)
                _rest(lowering, op, outer, limits, lanes, lambda end: add(totals[:1], outer, whole, end))
            else:
                add(totals, outer, zero, last)
            firsts = [[machine.read(v) for v in variables] for variables in totals]
        values = firsts[0]
        for other in firsts[1:]:
            values = combined(lowering, op, values, other)
        _finish(lowering, op, outer, _folded(lowering, op, values, lanes), targets, plain)

    lowering.scalar_each(shape[:-1], write)


def _rest(
    lowering: TileLowering[V], op: ReduceOp, outer: Indices, limits: Limits, lanes: int, add: Callable[[V], None]
) -> None:
    """The elements that masks have to do with: `add` takes them up to an end. Beyond the limits all are one number; where it makes
    no difference a second time, one vector of it is taken, and what is stored on the way gets it without more ado."""
    elements, legal, machine = lowering.elements, lowering.legal, lowering.machine
    size = types.shape_of(op.operands[0].type)[-1]
    dim, last = len(outer), legal.integer(size, "i64")
    filled = list(elements.filling)
    if not all(uniform_beyond(value, dim, limits) for value in (*op.operands, *filled)):
        add(last)
        return
    corner = (*outer, fixed(size - 1))
    same = _changes_once(lowering, op, elements.at(op.operands[0], corner, elements.math(1)))
    if same is None:
        add(last)
        return
    beyond = [elements.at(value, corner, elements.math(1)) for value in filled]
    most = elements.below(limits[0], size)
    for limit in limits[1:]:
        most = legal("maxs", most, elements.below(limit, size))
    vectors = legal("andi", legal("addi", most, legal.integer(2 * lanes - 1, "i64")), legal.integer(-lanes, "i64"))
    end = legal("select", same, legal("mins", vectors, last), last)
    add(end)
    if filled:
        math = elements.math(lanes)
        with machine.loop(end, last, legal.integer(lanes, "i64")) as counter, lowering.region():
            for value, found in zip(filled, beyond, strict=True):
                elements.write(elements.filling[value], (*outer, Index(counter, 1, lanes)), machine.repeated(found, lanes), math)


def _changes_once(lowering: TileLowering[V], op: ReduceOp, value: V) -> V | None:
    """Whether a number that is combined with itself is itself, as an i1: then with anything it makes the same again. None where
    it is not known how to ask."""
    legal = lowering.legal
    if row_of(op) in IDEMPOTENT:
        return legal.true()
    if value.type not in ("f32", "f64", "i32", "i64"):
        return None
    (twice,) = combined(lowering, op, [value], [value])
    if value.type.startswith("i"):
        return legal("eqi", twice, value)
    return legal("ori", legal("eqf", twice, value), legal("isnan", value))


def _folded(lowering: TileLowering[V], op: CombineOp, values: list[V], lanes: int) -> list[V]:
    """All lanes combined to one."""
    machine = lowering.machine
    values = [v if v.lanes == lanes else machine.repeated(v, lanes) for v in values]
    while lanes > 1:
        lanes //= 2
        low, high = ([machine.part(v, first, lanes) for v in values] for first in (0, lanes))
        values = combined(lowering, op, low, high)
    return values


def _beside(lowering: TileLowering[V], op: ReduceOp, rest: tuple[int, ...], targets: Sequence[object]) -> None:
    machine = lowering.machine
    axis, size = op.axis, op.extent

    def write(index: Indices, math: IndexMath[V]) -> None:
        def at(place: Index[V]) -> Indices:
            return (*index[:axis], place, *index[axis:])

        values = _operands(lowering, op, at(fixed(0)), math)
        if size > 1:
            totals = [machine.variable(v.type, math.lanes) for v in values]
            _assign(lowering, totals, values, math.lanes)
            first, last = (lowering.legal.integer(n, "i64") for n in (1, size))
            with machine.loop(first, last, first) as counter, lowering.region():
                found = _operands(lowering, op, at(Index(counter)), math)
                made = combined(lowering, op, [machine.read(v) for v in totals], found)
                _assign(lowering, totals, made, math.lanes)
            values = [machine.read(v) for v in totals]
        _finish(lowering, op, index, values, targets, math)

    lowering.each(rest, _bits(op), write)


def scan(lowering: TileLowering[V], op: ScanOp) -> None:
    """Write a scan: its axis in order, with vectors of a dim beside it where there is one."""
    machine, elements = lowering.machine, lowering.elements
    shape = types.shape_of(op.operands[0].type)
    axis, size = op.axis, op.extent
    targets = [lowering.allocate(result) for result in op.results]
    rest = (*shape[:axis], *shape[axis + 1 :])

    def write(index: Indices, math: IndexMath[V]) -> None:
        def at(place: Index[V]) -> Indices:
            place = math.mirrored(place, size) if op.reverse else place
            return (*index[:axis], place, *index[axis:])

        values = _operands(lowering, op, at(fixed(0)), math)
        _finish(lowering, op, at(fixed(0)), values, targets, math)
        if size == 1:
            return
        totals = [machine.variable(v.type, math.lanes) for v in values]
        _assign(lowering, totals, values, math.lanes)
        first, last = (lowering.legal.integer(n, "i64") for n in (1, size))
        with machine.loop(first, last, first) as counter, lowering.region():
            here = at(Index(counter))
            made = combined(lowering, op, [machine.read(v) for v in totals], _operands(lowering, op, here, math))
            _assign(lowering, totals, made, math.lanes)
            _finish(lowering, op, here, made, targets, math)

    lowering.each(rest, _bits(op), write)
    for result, target in zip(op.results, targets, strict=True):
        elements.buffers[result] = target


def combined(lowering: TileLowering[V], op: CombineOp, earlier: Sequence[V], later: Sequence[V]) -> list[V]:
    """The op's function of what is combined so far and of the next elements."""
    block = op.combine
    known: dict[SSAValue, V] = dict(zip(block.args, (*earlier, *later), strict=True))
    for inner in block.ops:
        if isinstance(inner, CombineReturnOp):
            return [known[value] for value in inner.operands]
        if isinstance(inner, ConstantOp):
            known[inner.result] = lowering.machine.const(code_of(inner), element_name(inner.result.type))
        else:
            assert isinstance(inner, ElementwiseOp)
            known[inner.result] = lowering.elements.row(inner, [known[value] for value in inner.operands])
    raise AssertionError("a combine function ends in its results")


def _operands(lowering: TileLowering[V], op: CombineOp, index: Indices, math: IndexMath[V]) -> list[V]:
    return [lowering.elements.at(operand, index, math) for operand in op.operands]


def _assign(lowering: TileLowering[V], variables: Sequence[V], values: Sequence[V], lanes: int) -> None:
    for variable, value in zip(variables, values, strict=True):
        lowering.machine.assign(variable, value if value.lanes == lanes else lowering.machine.repeated(value, lanes))


def _finish(
    lowering: TileLowering[V], op: CombineOp, index: Indices, values: Sequence[V], targets: Sequence[object], math: IndexMath[V]
) -> None:
    for result, value, target in zip(op.results, values, targets, strict=True):
        if target is None:
            lowering.elements.scalars[result] = value
        else:
            lowering.elements.write(target, index, value, math)  # type: ignore[arg-type]


def _bits(op: CombineOp) -> int:
    return max(32, *(8 * bytes_of(element_name(value.type)) for value in op.operands))
