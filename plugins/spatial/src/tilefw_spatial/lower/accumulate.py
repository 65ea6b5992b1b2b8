"""Values that a loop only adds to: a chain of combining operations from what is carried in to what is carried out.

Such a loop needs no order of its iterations but the one that rounding asks for; it becomes a `Reduce`, or a `Dot` that
contracts it.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilefw.api import DTYPES
from tilefw.api.ir import Block, ConstantOp, DotOp, ElementwiseOp, Operation, SSAValue, types
from tilefw_spatial.graph import Axis, Reduce, ReductionKind
from tilefw_spatial.lower.combine import KINDS, multiplied
from tilefw_spatial.lower.constant_tile import ConstantTile
from tilefw_spatial.lower.state import State
from tilefw_spatial.lower.tiles import Data, Entry, bits_of

_ROUNDED = frozenset({ReductionKind.ADDF, ReductionKind.MULF})  # the order matters to the last place
_IDEMPOTENT = frozenset(
    {ReductionKind.MAXF, ReductionKind.MINF, ReductionKind.MAXNUM, ReductionKind.MINNUM, ReductionKind.MAXS, ReductionKind.MINS,
     ReductionKind.MAXU, ReductionKind.MINU, ReductionKind.AND, ReductionKind.OR}
)
# What leaves every element as it is, where that is one number for all types.
_IDENTITY = {
    ReductionKind.ADDF: -0.0, ReductionKind.MULF: 1.0, ReductionKind.ADDI: 0, ReductionKind.MULI: 1, ReductionKind.OR: 0,
    ReductionKind.XOR: 0,
    ReductionKind.MAXF: float("-inf"), ReductionKind.MINF: float("inf"), ReductionKind.MAXU: 0,
}


class Serial(Exception):
    """A loop that was to become an axis needs its iterations one by one."""

    def __init__(self, axis: Axis) -> None:
        super().__init__(axis.name)
        self.axis = axis


@dataclass(frozen=True, slots=True)
class Link:
    """One operation of a chain: `other` is combined into what is carried, or the product of `dot`."""

    op: Operation
    other: SSAValue
    dot: DotOp | None = None


@dataclass(frozen=True, slots=True)
class AccumulationChain:
    """The operations between carried value number `index` and what the next iteration gets for it."""

    index: int
    links: tuple[Link, ...]

    @property
    def ops(self) -> frozenset[Operation]:
        """What the loop's body need not compute by itself."""
        return frozenset(op for link in self.links for op in (link.op, link.dot) if op is not None)


def chain_of(block: Block, index: int) -> AccumulationChain | None:
    """The chain of a carried value (its number after the counter); None where the body uses it otherwise."""
    links: list[Link] = []
    current: SSAValue = block.args[1 + index]
    while True:
        uses = list(current.uses)
        if len(uses) != 1 or uses[0].operation.parent is not block:
            return None
        user = uses[0].operation
        if user is block.last_op:
            return AccumulationChain(index, tuple(links)) if links and uses[0].index == index and _in_order(links) else None
        link = _link(user, current)
        if link is None:
            return None
        links.append(link)
        current = user.results[0]


def _link(op: Operation, carried: SSAValue) -> Link | None:
    if isinstance(op, DotOp):
        return Link(op, op.a, op) if op.acc is carried and carried not in (op.a, op.b) else None
    if not isinstance(op, ElementwiseOp) or op.row.name not in KINDS:
        return None
    other = op.operands[1] if op.operands[0] is carried else op.operands[0]
    return None if other is carried else Link(op, other, _product(op, other))


def _product(op: ElementwiseOp, other: SSAValue) -> DotOp | None:
    """The dot that a sum adds, where nothing else is in it and nobody else wants it."""
    dot = other.owner
    if not isinstance(dot, DotOp) or op.row.name not in ("addf", "addi") or dot.parent is not op.parent:
        return None
    zero = isinstance(dot.acc.owner, ConstantOp) and dot.acc.owner.value == 0
    return dot if zero and len(list(other.uses)) == 1 else None


def _in_order(links: list[Link]) -> bool:
    """Whether each link may run over the whole loop before the next one begins."""
    kinds = {"dot" if link.dot is not None else link.op.name for link in links}
    if len(links) == 1 or kinds == {"dot"}:
        return True
    rows = [link.op.row.name for link in links if isinstance(link.op, ElementwiseOp)]
    return len(kinds) == 1 and not any(KINDS[row] in _ROUNDED for row in rows)


def finished(state: State, chain: AccumulationChain, carried: Entry, axis: Axis) -> Entry:
    """What the chain has made of `carried` when the loop over `axis` ends."""
    for link in chain.links:
        if link.dot is not None:
            value, target = multiplied(state, link.dot, state.values[link.dot.a], state.values[link.dot.b], carried, (axis,))
            carried = state.data(value, target, types.shape_of(link.op.results[0].type))
        else:
            assert isinstance(link.op, ElementwiseOp)
            carried = _reduced(state, KINDS[link.op.row.name], state.values[link.other], carried, axis)
    return carried


def _reduced(state: State, kind: ReductionKind, entry: Entry, carried: Entry, axis: Axis) -> Entry:
    if axis not in (entry.value.axes if isinstance(entry, Data) else entry.keys if isinstance(entry, ConstantTile) else ()):
        if kind not in _IDEMPOTENT:
            raise Serial(axis)
        return state.elementwise(kind.value, [carried, entry], entry.dtype)
    if kind in _ROUNDED and entry.dtype.bits < 32:
        raise Serial(axis)  # a reduction rounds to its type once, the loop each time
    plain = isinstance(carried, ConstantTile) and _is_identity(carried, kind)
    target = state.aligned([entry] if plain else [entry, carried])
    operand = state.value(entry, target)
    initial = None if plain else state.value(carried, target)
    axes = [*operand.axes, *(() if initial is None else initial.axes)]
    ordered = axis if kind in _ROUNDED else None
    reduce = Reduce(kind, operand, (axis,), ordered, initial)
    value = state.made(reduce, [other for other in axes if other is not axis], DTYPES[operand.dtype])
    return state.data(value, target, entry.shape)


def _is_identity(tile: ConstantTile, kind: ReductionKind) -> bool:
    number, identity = tile.number, _IDENTITY.get(kind)
    return number is not None and identity is not None and bits_of(number, tile.dtype) == bits_of(identity, tile.dtype)
