"""Checks where products and engines' stores are waited for: each, and each write that one may read, is followed on every path.

A product's path ends at a wait that covers it, by the count of younger ones; before that nobody may read its result or overwrite
what it reads, no next iteration may compute its factors in registers anew, and the function may not end. A write's path ends at a
fence; before that no product or engine may read it, where it is a copy, once it has landed. A store's ends at the wait for it and
a barrier behind; before that nobody may overwrite what it reads, and the function may not end before the wait. Nothing here is
shared with the pass that places waits but which bytes overlap.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.scf import ConditionOp, ForOp, IfOp, WhileOp, YieldOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from tilefw.passes.rewriting import block_of
from tilefw.simt import lane
from tilefw.simt.lane.violation import violation
from tilefw.simt.shared_memory.buffer_accesses import BufferAccesses
from tilefw.simt.shared_memory.path_state import BufferAccess
from tilefw.tile.nested_ops import nested_ops

_MANY = 16  # of what is counted: more is as good


@dataclass(frozen=True)
class CheckProducts(ModulePass):
    """Raises InternalError for a wait or fence that is missing. `views`: units have a view of shared memory of their own."""

    name = "check-products"
    level: ClassVar[str] = "lane"
    views: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.body.block.ops:
            if isinstance(function, FuncOp):
                check_products(function, self.views)


def check_products(function: FuncOp, views: bool) -> None:
    """Follow all products and writes of one function."""
    inner = nested_ops(function)
    if not any(type(op) in (lane.AsyncAtomOp, lane.BulkCopyOp, lane.BulkStoreOp) for op in inner):
        return
    memory = BufferAccesses(function)
    for op in inner:
        if isinstance(op, lane.AsyncAtomOp):
            reads = frozenset(memory.read_by(op))
            held = op.part("a") is not None or op.part("b") is not None
            _follow(memory, op, _ProductPath(op.result, reads, held))
        elif isinstance(op, lane.BulkStoreOp):
            _follow(memory, op, _StorePath(memory.accessed(op), op.needed("when")))
        elif views and not isinstance(op, lane.BulkCopyOp) and (written := memory.written_by(op)) is not None:
            _follow(memory, op, _WritePath(written, isinstance(op, lane.CopyAsyncOp)))


@dataclass(frozen=True)
class _ProductPath:
    """What is known of a product at a point behind it: the value that is its result, None where none is any more; what it reads,
    whether from registers too, and how many products are younger."""

    result: SSAValue | None
    reads: frozenset[BufferAccess]
    held: bool
    younger: int = 0

    def at(self, op: Operation, memory: BufferAccesses) -> _ProductPath | None:
        """Behind an op; None where the product is done."""
        if isinstance(op, lane.AtomWaitOp):
            return None if self.younger >= op.pending else self
        if isinstance(op, ReturnOp):
            raise violation("the kernel ends while a product is under way", op)
        written = memory.written_by(op)
        if written is not None and any(memory.overlap(written, read) for read in self.reads):
            raise violation("shared memory is written while a matrix unit reads it", op)
        if isinstance(op, lane.AsyncAtomOp):
            if self.result is not None and any(value is self.result for value in op.operands if value is not op.acc):
                raise violation("a product reads the result of one that is under way", op)
            result = self.result
            if op.acc is result:
                if op.acc.has_more_than_one_use() or block_of(op.acc) is not op.parent:
                    raise violation("the sums of a product under way are copied", op)
                result = None  # it is the younger one's now
            return replace(self, result=result, younger=min(self.younger + 1, _MANY))
        if not isinstance(op, YieldOp) and self.result is not None and any(value is self.result for value in op.operands):
            raise violation("the result of a product is read before the wait for it", op)
        return self

    def over(self, last: Operation, onto: Block | Operation, memory: BufferAccesses) -> _ProductPath:
        """Behind the end of a region: in the loop's next iteration, or behind the op around it."""
        around = last.parent_op()
        again = isinstance(onto, Block)
        if again and self.held:
            raise violation("the next iteration computes anew what a product under way reads from registers", last)
        result = self.result
        if result is not None and any(value is result for value in last.operands):
            index = next(i for i, value in enumerate(last.operands) if value is result)
            if not isinstance(around, ForOp) or not _stays(around, index):
                raise violation("the sums of a product under way are copied", last)
            result = around.body.block.args[index + 1] if again else around.results[index]
        elif again:
            result = None
        assert around is not None
        change = memory.in_next_iteration if again else memory.after
        return replace(self, result=result, reads=frozenset(change(around, read) for read in self.reads))


@dataclass(frozen=True)
class _WritePath:
    """What is known of a write behind it: where it went, whether it is a copy that may not have landed, and the commits since."""

    written: BufferAccess
    pending: bool
    commits: int = 0

    def at(self, op: Operation, memory: BufferAccesses) -> _WritePath | None:
        """Behind an op; None where a fence has shown the write."""
        if isinstance(op, lane.FenceViewOp):
            return self if self.pending else None
        if isinstance(op, lane.CommitOp):
            return replace(self, commits=min(self.commits + 1, _MANY))
        if isinstance(op, lane.WaitOp) and self.commits > op.pending:
            return replace(self, pending=False, commits=0)
        read = memory.read_by(op) if isinstance(op, lane.AsyncAtomOp | lane.BulkStoreOp) and not self.pending else ()
        if any(memory.overlap(self.written, each) for each in read):
            who = "an engine" if isinstance(op, lane.BulkStoreOp) else "a product"
            raise violation(f"{who} reads shared memory that was written without a fence behind", op)
        again = memory.written_by(op)
        if isinstance(op, lane.BulkCopyOp) and again is not None and memory.overlap(self.written, again):
            raise violation("an engine copies over shared memory that was written without a fence behind", op)
        return None if again == self.written and not self.pending else self  # which is followed from there

    def over(self, last: Operation, onto: Block | Operation, memory: BufferAccesses) -> _WritePath:
        """Behind the end of a region."""
        around = last.parent_op()
        assert around is not None
        change = memory.in_next_iteration if isinstance(onto, Block) else memory.after
        return replace(self, written=change(around, self.written))


@dataclass(frozen=True)
class _StorePath:
    """What is known of an engine's store behind it: what it reads, for whom, and whether that thread has waited since: others then
    meet it at a barrier before they write there."""

    read: BufferAccess
    when: SSAValue
    waited: bool = False

    def at(self, op: Operation, memory: BufferAccesses) -> _StorePath | None:
        """Behind an op; None where all know that the store has read."""
        if isinstance(op, lane.BarrierOp) and self.waited:
            return None
        if isinstance(op, ReturnOp) and not self.waited:
            raise violation("the kernel ends while an engine reads its shared memory", op)
        written = memory.written_by(op)
        if written is not None and memory.overlap(written, self.read):
            raise violation("shared memory is written while an engine may still read it", op)
        if isinstance(op, lane.BulkStoreWaitOp) and _is_among(op.when, self.when) and op.buffer == self.read[0]:
            return replace(self, waited=True)
        return self

    def over(self, last: Operation, onto: Block | Operation, memory: BufferAccesses) -> _StorePath:
        """Behind the end of a region."""
        around = last.parent_op()
        assert around is not None
        change = memory.in_next_iteration if isinstance(onto, Block) else memory.after
        return replace(self, read=change(around, self.read))


def _is_among(wider: SSAValue, condition: SSAValue) -> bool:
    """Whether a condition holds wherever the other, of which it is one of several that must hold, does."""
    if wider is condition:
        return True
    owner = condition.owner
    return isinstance(owner, lane.ELEMENTWISE["andi"]) and any(_is_among(wider, operand) for operand in owner.operands)


_Path = _ProductPath | _WritePath | _StorePath


def _follow(memory: BufferAccesses, start: Operation, path: _Path) -> None:
    """Go all ways from behind an op to where its path ends."""
    seen: set[tuple[Operation, _Path]] = set()
    todo: list[tuple[Operation, _Path]] = list(_behind(start, path))
    while todo:
        op, path = todo.pop()
        if (op, path) in seen:
            continue
        seen.add((op, path))
        found = path.at(op, memory)
        if found is None:
            continue
        if isinstance(op, YieldOp | ConditionOp):
            todo += _from_end(op, found, memory)
            continue
        for region in op.regions[:1] if isinstance(op, WhileOp) else op.regions:
            todo += [(first, found) for block in region.blocks if (first := block.first_op) is not None]
        skipped = isinstance(op, ForOp) or (isinstance(op, IfOp) and not all(region.blocks for region in op.regions))
        if not op.regions or skipped:
            todo += _behind(op, found)


def _behind(op: Operation, path: _Path) -> Iterator[tuple[Operation, _Path]]:
    if op.next_op is not None:
        yield op.next_op, path


def _from_end(op: Operation, path: _Path, memory: BufferAccesses) -> Iterator[tuple[Operation, _Path]]:
    """What follows a region's last op."""
    around = op.parent_op()
    assert around is not None
    if isinstance(op, ConditionOp):
        assert isinstance(around, WhileOp)
        yield from ((first, path) for first in [around.after_region.block.first_op] if first is not None)
        yield from _behind(around, path.over(op, around, memory))
    elif isinstance(around, ForOp | WhileOp):
        block = around.body.block if isinstance(around, ForOp) else around.before_region.block
        yield from ((first, path.over(op, block, memory)) for first in [block.first_op] if first is not None)
        if isinstance(around, ForOp):
            yield from _behind(around, path.over(op, around, memory))
    else:
        yield from _behind(around, path.over(op, around, memory))


def _stays(loop: ForOp, index: int) -> bool:
    """Whether a carried value goes from atom to atom, each its only reader, to the end of the loop's body, where it is carried."""
    last = loop.body.block.last_op
    value: SSAValue = loop.body.block.args[index + 1]
    while True:
        uses = [use for use in value.uses if not isinstance(use.operation, lane.AtomWaitOp)]
        if len(uses) == 1 and uses[0].operation is last:
            return uses[0].index == index
        if value.has_more_than_one_use() or not uses:
            return False
        user = uses[0].operation
        if not isinstance(user, lane.AsyncAtomOp) or user.parent is not loop.body.block or user.acc is not value:
            return False
        value = user.result
