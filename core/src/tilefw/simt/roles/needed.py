"""What some ops of a block need: all else is taken out, also values that loops carry for others.

A loop stays for what is inside it; of a loop, or of a branch, nothing is asked but its counter, bounds and condition.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.scf import ForOp, YieldOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from tilefw.passes.rewriting import rebuild_loop


def without_rest(block: Block, wanted: Callable[[Operation], bool]) -> None:
    """Take out of a block what no wanted op needs."""
    inside = [inner for outer in block.ops for inner in outer.walk()]
    needed = _Needed(frozenset(inside))
    for op in inside:
        if not op.regions and not isinstance(op, YieldOp) and wanted(op):
            needed.op(op)
    needed.run()
    _erase(block, needed)


class _Needed:
    """`ops` that stay, of those `inside` the block, and the `carried` values of loops, by the block argument."""

    def __init__(self, inside: frozenset[Operation]) -> None:
        self.inside = inside
        self.ops: set[Operation] = set()
        self.carried: set[SSAValue] = set()
        self._pending: list[SSAValue] = []

    def op(self, op: Operation) -> None:
        """An op, with all around it."""
        if op in self.ops or op not in self.inside:
            return
        self.ops.add(op)
        if isinstance(op, ForOp):
            self._pending += (op.lb, op.ub, op.step)
        else:
            self._pending += op.operands
            if op.regions:  # a branch or a loop without a counter: all that it gives
                for inner in op.walk():
                    self.op(inner)
        around = op.parent_op()
        if around is not None:
            self.op(around)

    def run(self) -> None:
        """Follow values to what makes them."""
        while self._pending:
            self._value(self._pending.pop())

    def _value(self, value: SSAValue) -> None:
        owner = value.owner
        if isinstance(value, OpResult) and isinstance(value.op, ForOp):
            self._carried(value.op, value.index)
        elif isinstance(owner, Operation):
            self.op(owner)
        elif isinstance(value, BlockArgument) and isinstance(loop := value.block.parent_op(), ForOp):
            self.op(loop)
            if value.index:
                self._carried(loop, value.index - 1)

    def _carried(self, loop: ForOp, index: int) -> None:
        argument = loop.body.block.args[index + 1]
        if argument in self.carried:
            return
        self.carried.add(argument)
        self.op(loop)
        last = loop.body.block.last_op
        assert last is not None
        self._pending += (loop.iter_args[index], last.operands[index])


def _erase(block: Block, needed: _Needed) -> None:
    for op in reversed(list(block.ops)):
        if isinstance(op, YieldOp):
            continue
        if op not in needed.ops:
            op.detach()
            op.erase(safe_erase=False)
        elif isinstance(op, ForOp):
            _narrow(op, needed)


def _narrow(loop: ForOp, needed: _Needed) -> None:
    """The loop without the carried values that nobody needs."""
    body = loop.body.block
    kept = [index for index, argument in enumerate(body.args[1:]) if argument in needed.carried]
    last = body.last_op
    assert last is not None
    last.operands = [last.operands[index] for index in kept]
    _erase(body, needed)
    for argument in reversed(body.args[1:]):
        if argument not in needed.carried:
            body.erase_arg(argument, safe_erase=False)
    new = rebuild_loop(loop, [loop.iter_args[index] for index in kept])
    for index, result in zip(kept, new.results, strict=True):
        result.name_hint = loop.results[index].name_hint
        loop.results[index].replace_all_uses_with(result)
    loop.detach()
    loop.erase(safe_erase=False)
