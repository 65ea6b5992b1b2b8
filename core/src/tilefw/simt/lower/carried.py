"""Sums with what a loop carries are carried themselves: one addition before the loop in place of one in every iteration.

Where the body of a loop only advances a carried scalar, and adds the same invariant to it wherever else it takes it (the rest of an
address to a base that moves on), the scalar starts with the invariant in it. That is right with integers, which wrap around.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, SSAValue

from tilefw.simt import lane
from tilefw.simt.lane.builder import LaneBuilder

_Add = lane.ELEMENTWISE["addi"]


def start_with_invariants(builder: LaneBuilder, body: Block, inits: Sequence[SSAValue], wanted: Sequence[bool]) -> list[SSAValue]:
    """What a loop starts with, `inits` or sums of them made where the builder stands; the body is changed to go with it.

    body: the loop's finished block, whose arguments behind the first are carried. wanted: for each of these whether something
    behind the loop takes its last value, which therefore stays as it is.
    """
    starts = list(inits)
    for index, argument in enumerate(body.args[1:]):
        sums = [] if wanted[index] else _sums(body, index, argument)
        if not sums:
            continue
        starts[index] = builder.op("addi", starts[index], _other(sums[0], argument))
        for op in sums:
            op.results[0].replace_all_uses_with(argument)
            op.detach()
            op.erase()
    return starts


def _sums(body: Block, index: int, argument: SSAValue) -> list[Operation]:
    """The sums of a carried scalar and one invariant, if the body takes it for nothing else but what the next iteration gets."""
    assert body.last_op is not None
    following = body.last_op.operands[index]
    advance = following.owner
    if not isinstance(advance, _Add) or argument not in advance.operands or len(list(following.uses)) != 1:
        return []
    sums = [use.operation for use in argument.uses if use.operation is not advance]
    if not all(isinstance(op, _Add) for op in sums):
        return []
    added = {_other(op, argument) for op in (advance, *sums)}
    terms = {_other(op, argument) for op in sums}
    invariant = argument not in added and all(_before(term, body) for term in terms)
    return sums if len(terms) == 1 and invariant else []


def _other(add: Operation, operand: SSAValue) -> SSAValue:
    """What a sum adds to one of its operands."""
    a, b = add.operands
    return b if a is operand else a


def _before(value: SSAValue, body: Block) -> bool:
    """Whether a value is made outside of a block and all that it contains."""
    owner = value.owner
    block = owner if isinstance(owner, Block) else owner.parent
    while block is not None and block is not body:
        block = block.parent_block()
    return block is None
