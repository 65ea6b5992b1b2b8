"""Places the waits for products that matrix units make by themselves, and the fences before they read what lanes wrote.

A wait stands right before the first op that it is needed for: one that reads a result, writes shared memory that a product still
reads, or ends an iteration that computed a product's operands in registers, which the next one overwrites. It leaves younger
products under way. It names the results that may be read behind it, and the registers that products have read by then. A result
stays under way where it is only added to: by the next product, also over a loop's back edge, whose carried value is then the same
registers. A fence stands right before a product of which lanes, or copies of theirs that have landed, wrote an operand since the
last one, before an engine's copy over bytes that lanes wrote since, and before an engine's store of such.

State at an op: the products under way, oldest first, joined over all ways there; loops are followed until nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.scf import ConditionOp, ForOp, IfOp, WhileOp, YieldOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from tilefw.api.errors import InternalError
from tilefw.passes.rewriting import block_of
from tilefw.simt import lane
from tilefw.simt.shared_memory.buffer_accesses import BufferAccesses
from tilefw.simt.shared_memory.path_state import BufferAccess
from tilefw.tile.dialect.base import integer_attr
from tilefw.tile.nested_ops import nested_ops


@dataclass(frozen=True)
class PlaceAtomWaits(ModulePass):
    """Puts waits and fences where asynchronous atoms need them. Runs on functions whose shared memory is placed."""

    name = "place-atom-waits"
    level: ClassVar[str] = "lane"
    views: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.body.block.ops:
            if isinstance(function, FuncOp):
                place_atom_waits(function, self.views)


def place_atom_waits(function: FuncOp, views: bool) -> None:
    """Insert what one function lacks; fences only where the chip's units have a view of their own."""
    if not any(type(op) in (lane.AsyncAtomOp, lane.BulkCopyOp, lane.BulkStoreOp) for op in nested_ops(function)):
        return
    analysis = _Waits(function)
    analysis.run()
    for op, wait in analysis.waits.items():
        numbers = {"pending": wait.pending, "factors": len(wait.factors)}
        properties = {name: integer_attr(number) for name, number in numbers.items()}
        _insert(lane.AtomWaitOp.create(operands=[*wait.results, *wait.factors], properties=properties), op)
    for op in analysis.fences if views else ():
        _insert(lane.FenceViewOp.create(), op)


def _insert(made: Operation, before: Operation) -> None:
    made.location = before.location
    assert before.parent is not None
    before.parent.insert_op_before(made, before)


@dataclass(frozen=True)
class _ProductUnderWay:
    """A product under way: what it reads from shared memory, the values that are its result now, and registers that it reads."""

    reads: frozenset[BufferAccess]
    results: frozenset[SSAValue]
    factors: frozenset[SSAValue] = frozenset()

    def __or__(self, other: _ProductUnderWay) -> _ProductUnderWay:
        return _ProductUnderWay(self.reads | other.reads, self.results | other.results, self.factors | other.factors)


_NOTHING = _ProductUnderWay(frozenset(), frozenset())


@dataclass(frozen=True)
class _State:
    """Products under way, oldest first; what was `written` since the last fence; where copies go that may not have landed."""

    products: tuple[_ProductUnderWay, ...] = ()
    written: frozenset[BufferAccess] = frozenset()
    copied: frozenset[BufferAccess] = frozenset()

    def join(self, other: _State) -> _State:
        """What one way or the other may have left: waits count from the youngest."""
        short, long = sorted((self.products, other.products), key=len)
        short = (_NOTHING,) * (len(long) - len(short)) + short
        products = tuple(a | b for a, b in zip(short, long, strict=True))
        return _State(products, self.written | other.written, self.copied | other.copied)


@dataclass(frozen=True)
class _Wait:
    pending: int
    results: tuple[SSAValue, ...]
    factors: tuple[SSAValue, ...]


_MOST = 4  # products under way that are told apart: older ones count as one, the last of which a wait would be for


class _Waits:
    """The analysis of one function: `waits` and `fences` are the ops that need one in front."""

    def __init__(self, function: FuncOp) -> None:
        self.function = function
        self.memory = BufferAccesses(function)
        self.waits: dict[Operation, _Wait] = {}
        self.fences: dict[Operation, None] = {}

    def run(self) -> None:
        known = None
        while known != (self.waits, self.fences):
            known = dict(self.waits), dict(self.fences)
            self.block(self.function.body.block, _State())

    def block(self, block: Block, state: _State) -> _State:
        for op in block.ops:
            state = self.op(op, state)
        return state

    def op(self, op: Operation, state: _State) -> _State:
        state = self.waited(op, state)
        if isinstance(op, lane.AsyncAtomOp):
            return self.product(op, state)
        if isinstance(op, ForOp):
            return self.for_loop(op, state)
        if isinstance(op, WhileOp):
            return self.while_loop(op, state)
        if isinstance(op, IfOp):
            # What a branch yields is copied, so that it was waited for there.
            ends = [self.block(region.block, state) if region.blocks else state for region in op.regions]
            return ends[0].join(ends[1])
        if op.regions:
            raise InternalError(f"no rule for products under way in {op.name}")
        return self.access(op, state)

    # -- one op

    def access(self, op: Operation, state: _State) -> _State:
        """What is written: by a copy from a wait on, which may be the one for it."""
        written = self.memory.written_by(op)
        if isinstance(op, lane.BulkStoreOp):
            return replace(state, written=self.shown(op, state))
        if isinstance(op, lane.WaitOp):
            return replace(state, written=state.written | state.copied, copied=state.copied if op.pending else frozenset())
        if written is None:
            return state
        if isinstance(op, lane.BulkCopyOp):
            # Engines write in the units' view; over what lanes wrote, behind a fence as well.
            if any(self.memory.overlap(written, each) for each in state.written):
                self.fences[op] = None
            return replace(state, written=frozenset()) if op in self.fences else state
        if isinstance(op, lane.CopyAsyncOp):
            return replace(state, copied=state.copied | {written})
        return replace(state, written=state.written | {written})

    def waited(self, op: Operation, state: _State) -> _State:
        """The state in front of an op, behind the wait that it needs."""
        needed = max((i + 1 for i, product in enumerate(state.products) if self.conflicts(op, product)), default=0)
        if isinstance(op, lane.ArriveOp) and op.products is not None:
            needed = max(needed, len(state.products) - op.products)
        known = self.waits.get(op)
        if known is None:
            if not needed:
                return state
            known = _Wait(len(state.products) - needed, (), ())
        pending = min(known.pending, len(state.products) - needed) if needed else known.pending
        count = max(0, len(state.products) - pending)
        done = state.products[:count]  # more than are needed, where another way here needs more
        results = dict.fromkeys((*known.results, *self.results(op, done)))
        factors = dict.fromkeys((*known.factors, *(v for each in done for v in each.factors if _is_visible(v, op))))
        self.waits[op] = _Wait(pending, tuple(results), tuple(factors))
        return replace(state, products=state.products[count:])

    def results(self, op: Operation, products: Sequence[_ProductUnderWay]) -> Iterator[SSAValue]:
        """The results of products that may be named before an op; not those that a product adds to in place."""
        for product in products:
            for value in product.results:
                added_to = any(isinstance(use.operation, lane.AsyncAtomOp) and _in_place(use.operation) for use in value.uses)
                if not added_to and _is_visible(value, op):
                    yield value

    def conflicts(self, op: Operation, product: _ProductUnderWay) -> bool:
        if isinstance(op, ReturnOp):
            return True
        written = self.memory.written_by(op)
        if written is not None and any(self.memory.overlap(written, read) for read in product.reads):
            return True
        return any(value in product.results for value in self.read(op)) or self.overwrites(op, product)

    def read(self, op: Operation) -> Iterator[SSAValue]:
        """What an op reads of its operands, or copies to other registers."""
        if isinstance(op, lane.AsyncAtomOp):
            yield from (value for value in op.operands if value is not op.acc or not _in_place(op))
        elif isinstance(op, YieldOp):
            yield from (value for i, value in enumerate(op.operands) if not _carried_in_place(op, i))
        else:
            yield from op.operands

    def overwrites(self, op: Operation, product: _ProductUnderWay) -> bool:
        """Whether what follows is the next iteration, which computes anew what a product reads from registers, or is behind the
        branch where that was computed, so that no wait can name it."""
        if not isinstance(op, YieldOp | ConditionOp):
            return False
        return any(not isinstance(op.parent_op(), IfOp) or block_of(value) is op.parent for value in product.factors)

    def product(self, op: lane.AsyncAtomOp, state: _State) -> _State:
        reads, written = frozenset(self.memory.read_by(op)), self.shown(op, state)
        factors = frozenset(value for value in (op.part("a"), op.part("b")) if value is not None)
        made = _ProductUnderWay(reads, frozenset(op.results), factors)
        products = (*state.products, made)
        surplus = max(0, len(products) - _MOST)
        oldest = _NOTHING
        for product in products[: surplus + 1]:
            oldest |= product
        return _State((oldest, *products[surplus + 1 :]), written, state.copied)

    def shown(self, op: lane.AsyncAtomOp | lane.BulkStoreOp, state: _State) -> frozenset[BufferAccess]:
        """What no fence has shown to what reads for an op, which has one in front where it needs it."""
        if any(self.memory.overlap(a, b) for a in self.memory.read_by(op) for b in state.written):
            self.fences[op] = None
        return frozenset() if op in self.fences else state.written

    # -- control flow

    def for_loop(self, op: ForOp, state: _State) -> _State:
        body = op.body.block
        last = body.last_op
        assert last is not None
        into = state
        while True:
            end = self.block(body, into)
            again = self.renamed(self.next_iteration(op, end), dict(zip(last.operands, body.args[1:], strict=True)))
            following = into.join(self.clipped(again))
            if following == into:
                break
            into = following
        leaving = self.renamed(self.outside(op, end), dict(zip(last.operands, op.results, strict=True)))
        return state.join(self.clipped(leaving))

    def while_loop(self, op: WhileOp, state: _State) -> _State:
        into = state
        while True:
            checked = self.block(op.before_region.block, into)
            following = into.join(self.clipped(self.next_iteration(op, self.block(op.after_region.block, checked))))
            if following == into:
                return self.outside(op, checked)
            into = following

    def clipped(self, state: _State) -> _State:
        return replace(state, products=state.products[-_MOST:])

    def renamed(self, state: _State, names: Mapping[SSAValue, SSAValue]) -> _State:
        """Results by the names that they have from here on."""
        def name(product: _ProductUnderWay) -> _ProductUnderWay:
            return replace(product, results=frozenset(names[value] for value in product.results if value in names))

        return replace(state, products=tuple(map(name, state.products)))

    def next_iteration(self, op: Operation, state: _State) -> _State:
        return self.mapped(state, lambda access: self.memory.in_next_iteration(op, access))

    def outside(self, op: Operation, state: _State) -> _State:
        return self.mapped(state, lambda access: self.memory.after(op, access))

    def mapped(self, state: _State, change: Callable[[BufferAccess], BufferAccess]) -> _State:
        products = tuple(replace(product, reads=frozenset(map(change, product.reads))) for product in state.products)
        return _State(products, frozenset(map(change, state.written)), frozenset(map(change, state.copied)))


def _is_visible(value: SSAValue, op: Operation) -> bool:
    """Whether an op may name a value that was defined before it."""
    block, here = block_of(value), op.parent
    while here is not None and here is not block:
        around = here.parent_op()
        here = None if around is None else around.parent
    return here is not None


def _in_place(op: lane.AsyncAtomOp) -> bool:
    """Whether an atom adds to the registers that its accumulator is in: nobody else reads it, and it is a loop's own value or the
    result of another atom, in the same block."""
    acc = op.acc
    if acc.has_more_than_one_use():
        return False
    owner = acc.owner
    if isinstance(owner, Block):
        return owner is op.parent and isinstance(owner.parent_op(), ForOp | WhileOp)
    return isinstance(owner, lane.AsyncAtomOp | ForOp) and owner.parent is op.parent


def _carried_in_place(op: YieldOp, index: int) -> bool:
    """Whether a loop hands on a value in the registers that it came in: atoms in its body have added to it in place."""
    loop, value = op.parent_op(), op.operands[index]
    if not isinstance(loop, ForOp) or value.has_more_than_one_use():
        return False
    while isinstance(value.owner, lane.AsyncAtomOp) and _in_place(value.owner):
        value = value.owner.acc
    return value is loop.body.block.args[index + 1]
