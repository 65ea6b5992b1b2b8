"""Which reads of shared memory a dot makes itself, k step by k step, so that one step of an operand at a time holds registers."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation

from tilefw.passes.side_effects import is_side_effect_free
from tilefw.simt.description import ChipDescription
from tilefw.simt.layout import LinearLayout
from tilefw.simt.layout.atoms import DotLayouts
from tilefw.tile.dialect.combine_op import CombineOp
from tilefw.tile.dialect.dot_op import DotOp
from tilefw.tile.dialect.shared_ops import LoadSharedOp


@dataclass(frozen=True)
class Steps:
    """The operand that a read is for: the layout of one step, and what is XORed to its elements in each."""

    layout: LinearLayout
    offsets: tuple[int, ...]


def dot_of(op: LoadSharedOp) -> DotOp | None:
    """The dot that may make this read: in the same block, the only user, and nothing between them can write what is read."""
    uses = list(op.results[0].uses)
    if len(uses) != 1 or not isinstance(uses[0].operation, DotOp) or uses[0].index > 1:
        return None
    return uses[0].operation if undisturbed(op, uses[0].operation) else None


def undisturbed(op: LoadSharedOp, user: Operation) -> bool:
    """Whether an op behind a read, in the same block, might make it as well: nothing between them can write what is read."""
    between = op.next_op
    while between is not None and between is not user:
        if not isinstance(between, LoadSharedOp | CombineOp) and (between.regions or not is_side_effect_free(between)):
            return False
        between = between.next_op
    return between is user


def steps_of(op: LoadSharedOp, dot: DotOp, layouts: DotLayouts) -> Steps:
    """The steps of the operand that `op` reads for `dot`."""
    left = dot.a is op.results[0]
    layout, offset = (layouts.a_step, layouts.a_offset) if left else (layouts.b_step, layouts.b_offset)
    return Steps(layout, tuple(offset(step) for step in range(layouts.steps)))


def operand_of(op: LoadSharedOp, dot: DotOp, layouts: DotLayouts, chip: ChipDescription) -> LinearLayout:
    """What a buffer's layout is chosen for: all steps, as each is read; fragment loads are matched with one of them."""
    if chip.fragment_loads:
        return steps_of(op, dot, layouts).layout
    return layouts.a if dot.a is op.results[0] else layouts.b
