"""Dead code: ops without effect whose results nobody uses, and loop and branch results nobody reads."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from tilefw.passes.rewriting import erase, rebuild_loop
from tilefw.passes.side_effects import is_side_effect_free
from tilefw.tile.dialect.block_ops import LoadBlockOp
from tilefw.tile.dialect.combine_op import CombineOp
from tilefw.tile.dialect.memory_ops import LoadOp


class DcePass(ModulePass):
    """Removes ops whose results nothing reads.

    One walk backwards erases what is dead; repeated while a carried value of a loop fell away.
    """

    name = "dce"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        while erase_dead(op):
            pass


def erase_dead(root: Operation) -> bool:
    """Erase dead ops below `root`; gives whether a loop lost a carried value, which can make more dead."""
    shrunk = False
    for region in root.regions:
        for block in region.blocks:
            shrunk |= _erase_in(block)
    return shrunk


def _erase_in(block: Block) -> bool:
    shrunk = False
    op = block.last_op
    while op is not None:
        previous = op.prev_op
        if op.regions:
            shrunk |= erase_dead(op)
        if is_dead(op):
            erase(op)
        elif op.regions and isinstance(op, scf.ForOp):
            shrunk |= _drop_unread_carried(op)
        op = previous
    return shrunk


def is_dead(op: Operation) -> bool:
    """Whether nobody reads the op's results and it changes nothing. A load that is not volatile changes nothing."""
    if not op.results and not op.regions:
        return False
    for result in op.results:  # a loop, as this is asked of every op by every sweep
        if result.first_use is not None:
            return False
    if isinstance(op, LoadOp | LoadBlockOp):
        return not op.volatile
    if op.regions and isinstance(op, scf.WhileOp):  # it may never end, and that must stay visible to the budget of an executor
        return False
    return is_side_effect_free(op)


def _drop_unread_carried(loop: scf.ForOp) -> bool:
    """Remove the carried values that nobody reads but the chain that computes them for the next round."""
    block = loop.body.block
    yielded = block.last_op
    assert isinstance(yielded, scf.YieldOp)
    keep = [
        index for index, (result, argument) in enumerate(zip(loop.results, block.args[1:], strict=True))
        if result.first_use is not None or not _only_feeds_itself(argument, yielded, index)
    ]
    if len(keep) == len(loop.results):
        return False
    _rebuild_with(loop, yielded, keep)
    return True


def _only_feeds_itself(argument: SSAValue, yielded: Operation, index: int) -> bool:
    """Whether every path of uses of the argument ends at its own place in the yield, within the loop's own block."""
    seen: set[Operation] = set()
    pending = [argument]
    while pending:
        for use in pending.pop().uses:
            op = use.operation
            if op is yielded:
                if use.index != index:
                    return False
            elif op not in seen:
                if (op.regions and not isinstance(op, CombineOp)) or op.parent is not yielded.parent:
                    return False
                if not op.results or not is_side_effect_free(op):
                    return False
                seen.add(op)
                pending.extend(op.results)
    return True


def _rebuild_with(loop: scf.ForOp, yielded: scf.YieldOp, keep: list[int]) -> None:
    block = loop.body.block
    carried = list(loop.iter_args)
    dropped = [i for i in range(len(carried)) if i not in keep]
    yielded.operands = [yielded.operands[i] for i in keep]
    for index in dropped:
        block.args[1 + index].replace_all_uses_with(carried[index])
    for index in reversed(dropped):
        block.erase_arg(block.args[1 + index])
    new = rebuild_loop(loop, [carried[i] for i in keep])
    for index, result in zip(keep, new.results, strict=True):
        result.name_hint = loop.results[index].name_hint
        loop.results[index].replace_all_uses_with(result)
    erase(loop)
