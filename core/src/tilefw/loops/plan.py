"""The plan: which values of a function stand in memory, and which are made anew, element by element, wherever they are read.

A store of x + y needs neither x, y nor the sum in memory: its loop reads an element of each, adds and writes. The rules, in order:

- results of reductions, scans, products, atomics, loops and branches, and what a gather picks from, are stored;
- a load is stored unless one statement alone reads it, each element once, and nothing before may change what it reads;
- any other op is stored where many stand on top of it before a statement reads them;
- arithmetic is stored where it is dear and read more than once: by several statements, in a loop further in, or for many elements
  of a larger tile.

A stored value that a reduction reads first is written while the reduction reads it, in one pass over the tile, unless memory has
it along another dim than the last: then it is turned first.

A statement is an op that writes elements: of a stored value, to memory, or of what a loop or a branch hands on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, OpResult, SSAValue

from tilefw.loops.access import access_of
from tilefw.loops.effects import Effects
from tilefw.passes.rewriting import block_of
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.elementwise_op import ElementwiseOp
from tilefw.tile.dialect.gather_op import GatherOp
from tilefw.tile.dialect.structural_op import StructuralOp
from tilefw.tile.nested_ops import nested_ops

_LOADS = (ops.LoadOp, ops.LoadBlockOp)
BLOCKS = (ops.LoadBlockOp, ops.StoreBlockOp)
_MADE_ANEW = (ElementwiseOp, StructuralOp, ops.ConstantOp, ops.IotaOp, ops.AddPtrOp, *_LOADS)
# What an element costs, in additions; rows that are not named cost one. Above `_DEAR` a value is rather stored than made twice.
_COSTS = {
    **dict.fromkeys(("divs", "divu", "rems", "remu", "divf", "div_rn", "remf", "sqrt", "sqrt_rn", "rsqrt"), 10),
    **dict.fromkeys(("exp", "exp2", "log", "log2", "sin", "cos", "tanh", "erf", "pow", "log1p", "expm1"), 25),
}
_DEAR = 6
_HIDES = 16  # what takes as many additions lasts as long as any one of them takes until its result is there
_MOST = 1000
_TALL = 32  # ops on top of each other: code that is written by recursion must end
_MOST_WAYS = 8  # that are told apart; above, a value is read often


@dataclass(frozen=True, slots=True)
class ValueReader:
    """A statement that reads a value; `often`: each element more than once, or in a region further in. `way`: the ops between them
    that change indices; a statement that reads by two ways reads an element for two of its own."""

    statement: Operation
    often: bool
    way: tuple[Operation, ...] = ()


@dataclass(slots=True)
class StoragePlan:
    """What stands in memory. `position` numbers the ops in the order of the text; `last_read` is the last position at which a
    stored value's memory is needed. `written_by` names the statement that writes a stored value, where that is not the value's op.
    `copied` are the loads that an engine copies into the memory of their results; those of them that are `early`, a turn of their
    loop before.
    """

    stored: set[SSAValue] = field(default_factory=set)
    written_by: dict[SSAValue, Operation] = field(default_factory=dict)
    position: dict[Operation, int] = field(default_factory=dict)
    last_read: dict[SSAValue, int] = field(default_factory=dict)
    copied: set[Operation] = field(default_factory=set)
    early: set[Operation] = field(default_factory=set)


def plan_of(function: FuncOp, effects: Effects, copies: bool = False) -> StoragePlan:
    """The plan of a function; with `copies`, loads of blocks are copied whole. Values of the readers come first: what is read by
    something that is made anew is read by its readers."""
    plan = _Planner(effects, copies).planned(function)
    for value in plan.stored:
        if (reduction := _first_reduction(value, plan, effects)) is not None:
            plan.written_by[value] = reduction
    for value in plan.stored:
        plan.last_read[value] = _last_read(value, plan)
    return plan


class _Planner:
    def __init__(self, effects: Effects, copies: bool) -> None:
        self.effects = effects
        self.copies = copies
        self.plan = StoragePlan()
        self.readers: dict[SSAValue, set[ValueReader]] = {}
        self.costs: dict[SSAValue, int] = {}
        self.heights: dict[SSAValue, int] = {}

    def planned(self, function: FuncOp) -> StoragePlan:
        listed = nested_ops(function)
        for number, op in enumerate(listed):
            self.plan.position[op] = number
            for result in op.results:
                self.costs[result] = self._cost(op, result)
        for op in reversed(listed):
            for region in op.regions:
                for block in region.blocks:
                    if not isinstance(op, FuncOp | ops.ReduceOp | ops.ScanOp):
                        self.plan.stored.update(a for a in block.args if types.is_tile(a.type))
            for result in op.results:
                if types.is_tile(result.type):
                    self._decide(op, result)
        return self.plan

    def _decide(self, op: Operation, value: OpResult) -> None:
        readers = self.readers[value] = self._readers_of(value)
        self.heights[value] = self._height(value)
        picked = any(isinstance(use.operation, GatherOp) and use.index == 0 for use in value.uses)
        if picked or not isinstance(op, _MADE_ANEW) or self._wants_memory(op, value, readers):
            self.plan.stored.add(value)

    def _wants_memory(self, op: Operation, value: OpResult, readers: set[ValueReader]) -> bool:
        if self.copies and isinstance(op, BLOCKS) and is_block_copy(op):
            self.plan.copied.add(op)
            return True
        if isinstance(op, ops.LoadOp | ops.LoadBlockOp):
            alone = next(iter(readers)) if len(readers) == 1 else None  # what reads it by two ways would read memory twice
            return alone is None or alone.often or op.volatile or not self.effects.may_wait(op, _pointer(op), alone.statement)
        if self.heights[value] >= _TALL and not isinstance(op, ops.ConstantOp | ops.IotaOp):  # whose elements need no others
            return True
        if not isinstance(op, ElementwiseOp):
            return False
        again = len(readers) > 1 or any(reader.often for reader in readers)
        return again and self.costs[value] >= _DEAR

    def _readers_of(self, value: SSAValue) -> set[ValueReader]:
        found: set[ValueReader] = set()
        for use in value.uses:
            op = use.operation
            further_in = op.parent is not block_of(value)
            often = further_in or _repeats(op, value)
            unstored = [result for result in op.results if result not in self.plan.stored] if _is_made_anew(op) else []
            step = (op,) if isinstance(op, StructuralOp) else ()
            for result in unstored:
                found |= {ValueReader(r.statement, r.often or often, (*step, *r.way)) for r in self.readers[result]}
            if len(unstored) < len(op.results) or not op.results:
                found.add(ValueReader(op, often))
        if len(found) <= _MOST_WAYS:
            return found
        return {ValueReader(reader.statement, True) for reader in found}

    def _cost(self, op: Operation, value: SSAValue) -> int:
        """What making one element of a value takes, down to what stands in registers; no more than _MOST is told apart."""
        if not isinstance(op, _MADE_ANEW) or not types.is_tile(value.type):
            return 0
        own = _COSTS.get(op.row.name, 1) if isinstance(op, ElementwiseOp) else 0
        return min(_MOST, own + sum(self.costs.get(operand, 0) for operand in op.operands))

    def _height(self, value: SSAValue) -> int:
        """How many ops that are made anew stand between a value and the statement that reads it."""
        users = [result for use in value.uses for result in use.operation.results if _is_made_anew(use.operation)]
        return 1 + max((self.heights[user] for user in users if user not in self.plan.stored), default=0)


def hides_waiting(value: SSAValue, plan: StoragePlan, written: Collection[SSAValue]) -> bool:
    """Whether making an element of a value takes so long that nobody waits for an addition beside it. Of what is stored only the
    `written` are made."""

    seen: set[SSAValue] = set()
    pending, total = [value], 0
    while pending and total < _HIDES:
        made = pending.pop()
        op = made.owner
        if made in seen or not isinstance(op, ElementwiseOp) or (made in plan.stored and made not in written):
            continue
        seen.add(made)
        total += _COSTS.get(op.row.name, 1)
        pending.extend(op.operands)
    return total >= _HIDES


def is_block_copy(op: ops.LoadBlockOp | ops.StoreBlockOp) -> bool:
    """Whether an engine can copy what an op loads or stores."""
    return not op.volatile and bool(op.block)


def _is_made_anew(op: Operation) -> bool:
    """Whether an op's elements may be made where they are read. What it makes of no dims is there once it has been met."""
    return isinstance(op, _MADE_ANEW) and all(types.is_tile(result.type) for result in op.results)


def _repeats(op: Operation, value: SSAValue) -> bool:
    """Whether an op reads elements of a tile several times for its own."""
    if isinstance(op, ops.BroadcastOp):
        return types.shape_of(op.source.type) != types.shape_of(op.result.type)
    return isinstance(op, GatherOp) and op.source is value


def carried_out(statement: Operation, plan: StoragePlan) -> Operation:
    """The op at whose place a statement's loops run."""
    return next((plan.written_by[result] for result in statement.results if result in plan.written_by), statement)


def _first_reduction(value: SSAValue, plan: StoragePlan, effects: Effects) -> Operation | None:
    """The reduction that reads a stored value before anything else does, each of its elements, and may make it then."""
    op = value.owner
    if not isinstance(op, ElementwiseOp | ops.LoadOp | ops.LoadBlockOp) or (isinstance(op, _LOADS) and op.volatile):
        return None
    if op in plan.copied:
        return None
    if consecutive_dim(value, plan) not in (None, types.rank_of(value.type) - 1):
        return None  # what is read along another dim than it is written is turned on the way
    first = min(statements_reading(value, plan), key=lambda statement: plan.position[statement], default=None)
    if not isinstance(first, ops.ReduceOp) or first.parent is not op.parent:
        return None
    if not any(_by_element(operand, value, plan) for operand in first.operands):
        return None
    loads = [op, *_loads_made_anew(op, plan)] if isinstance(op, _LOADS) else _loads_made_anew(op, plan)
    return first if all(effects.may_wait(load, _pointer(load), first) for load in loads) else None


def _by_element(reader: SSAValue, value: SSAValue, plan: StoragePlan) -> bool:
    """Whether element i of a value that is made anew reads element i of a stored one."""
    seen: set[SSAValue] = set()
    pending = [reader]
    while pending:
        reader = pending.pop()
        if reader is value:
            return True
        if isinstance(reader.owner, ElementwiseOp) and reader not in plan.stored and reader not in seen:
            seen.add(reader)
            pending.extend(reader.owner.operands)
    return False


def _loads_made_anew(op: Operation, plan: StoragePlan) -> list[Operation]:
    """The loads that are carried out when an element of an op's result is made."""
    found: dict[Operation, None] = {}
    pending = list(op.operands)
    while pending:
        operand = pending.pop()
        inner = operand.owner
        if not isinstance(inner, _MADE_ANEW) or not types.is_tile(operand.type) or operand in plan.stored or inner in found:
            continue
        found[inner] = None
        pending.extend(inner.operands)
    return [inner for inner in found if isinstance(inner, _LOADS)]


def _pointer(load: Operation) -> SSAValue:
    return load.base if isinstance(load, ops.LoadBlockOp) else load.operands[0]


def _last_read(value: SSAValue, plan: StoragePlan) -> int:
    """The last position at which something reads a value, itself or through what is made anew of it. What a loop reads of outside
    it reads again in the next round."""
    last = plan.position.get(value.owner, 0) if isinstance(value.owner, Operation) else 0
    home = block_of(value)
    for reading in statements_reading(value, plan):
        statement = carried_out(reading, plan)
        outer = statement
        while outer.parent is not home:
            above = outer.parent_op()
            assert above is not None
            outer = above
        last = max(last, end_of(outer, plan) if outer is not statement else plan.position[statement])
    return last


def statements_reading(value: SSAValue, plan: StoragePlan) -> Iterable[Operation]:
    """The statements whose loops read a value's elements."""
    seen: set[SSAValue] = set()
    pending = [value]
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        for use in current.uses:
            op = use.operation
            made_anew = _is_made_anew(op)
            unstored = [result for result in op.results if types.is_tile(result.type) and result not in plan.stored]
            if made_anew and unstored:
                pending.extend(unstored)
            if not made_anew or len(unstored) < len(op.results):
                yield op


def end_of(op: Operation, plan: StoragePlan) -> int:
    """The position of the last op in a region, or of the op itself."""
    return max(plan.position[inner] for inner in nested_ops(op))


def consecutive_dim(value: SSAValue, plan: StoragePlan) -> int | None:
    """The dim along which what the elements of a value are made of is read from consecutive memory; None where none is known."""
    order = list(range(types.rank_of(value.type)))  # of the dims of what is looked at, those of the value
    made = value
    while True:
        op = value.owner
        if isinstance(op, ops.LoadBlockOp):
            return next((order[number] for number, dim in enumerate(access_of(op).dims or ()) if dim.unit), None)
        if (value is not made and value in plan.stored) or not isinstance(op, ElementwiseOp | ops.TransOp):
            return None
        if isinstance(op, ops.TransOp):
            moved = [0] * len(order)
            for dim, source in enumerate(op.order):
                moved[source] = order[dim]
            order, value = moved, op.source
            continue
        read = [operand for operand in op.operands if operand not in plan.stored and _reads_memory(operand)]
        if not read:
            return None
        value = read[0]


def _reads_memory(value: SSAValue) -> bool:
    """Whether a tile comes from a load, by way of rows and permutations along their first operands."""
    while isinstance(value.owner, ElementwiseOp | ops.TransOp) and types.is_tile(value.type):
        value = value.owner.operands[0]
    return isinstance(value.owner, ops.LoadBlockOp)
