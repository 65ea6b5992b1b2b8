"""How layouts pass through ops that move elements: backward to the operands, and forward to the results."""

from __future__ import annotations

from functools import lru_cache
from math import prod

from xdsl.ir import Operation, SSAValue

from tilefw.api.errors import UnsupportedError
from tilefw.simt.layout import LinearLayout, f2
from tilefw.tile import types
from tilefw.tile.dialect.combine_op import ReduceOp
from tilefw.tile.dialect.shape_ops import JoinOp, SplitOp
from tilefw.tile.dialect.structural_op import StructuralOp, index_map
from tilefw.tile.text.source_location import place_of


def pull(op: Operation, layout: LinearLayout) -> tuple[LinearLayout, tuple[int, ...]] | None:
    """What the operand of an op has whose result has `layout`, and for each register of the result the operand's that holds it.

    The pulled layout has the same lanes and waves: the result is the operand's registers, picked, after an exchange with the
    element at the index XOR `index_map(op).constant`. None for ops other than structural ones from one tile to one tile.
    Raises UnsupportedError (TFW0612) where the elements' indices are not linear over their bits.
    """
    moved = index_map(op)
    if moved is None:
        if isinstance(op, StructuralOp) and len(op.operands) == len(op.results) == 1 and _between_tiles(op):
            raise UnsupportedError(
                f"{op.name} moves elements to places that are not linear over the bits of their indices", code="TFW0612",
                place=place_of(op), note="lanes hold powers of two of elements, and exchange those at the index XOR a constant",
            )
        return None
    return layout.projected(types.shape_of(op.operands[0].type), moved.matrix)


def keeps_layout(op: Operation) -> bool:
    """Whether a structural op takes and gives one layout, as the elements keep their index but for a constant."""
    moved = index_map(op)
    return moved is not None and moved.in_place and op.operands[0].type == op.results[0].type


def moves_layout(op: Operation) -> bool:
    """Whether the layouts of an op's operands and results follow from each other, and differ."""
    return isinstance(op, JoinOp | SplitOp) or (_unmoved(op) is not None and not keeps_layout(op))


def _between_tiles(op: Operation) -> bool:
    return types.is_tile(op.operands[0].type) and types.is_tile(op.results[0].type)


def _unmoved(op: Operation) -> tuple[int, ...] | None:
    """The inverse of a structural op's map of indices; None where it is not a bijection."""
    moved = index_map(op)
    return None if moved is None else _inverse(moved.matrix, prod(types.shape_of(op.operands[0].type)))


@lru_cache(maxsize=1024)
def _inverse(matrix: tuple[int, ...], elements: int) -> tuple[int, ...] | None:
    bijective = 1 << len(matrix) == elements and f2.rank(matrix) == len(matrix)
    return f2.invert(matrix) if bijective else None


def operand_layouts(op: Operation, layout: LinearLayout) -> list[tuple[SSAValue, LinearLayout]]:
    """The tiles that an op needs, each with its layout, to give its result in `layout`."""
    pulled = pull(op, layout)
    if pulled is not None:
        return [(op.operands[0], pulled[0])]
    if isinstance(op, JoinOp):
        half = joined_half(layout)
        return [(operand, half) for operand in op.operands]
    if isinstance(op, SplitOp):
        return [(op.operands[0], layout.before_split()[0])]
    return [(operand, layout) for operand in op.operands if types.is_tile(operand.type)]


def joined_half(layout: LinearLayout) -> LinearLayout:
    """What both operands of a join have; where threads differ in the last dim, each has the elements of both operands."""
    return layout.slice(len(layout.shape) - 1)[0]


def push(op: Operation, layout: LinearLayout) -> LinearLayout | None:
    """What the result has when the (first) operand has `layout`, register for register; None where that does not decide it."""
    if isinstance(op, ReduceOp):
        return layout.slice(op.axis)[0]
    unmoved = _unmoved(op)
    if unmoved is not None:
        return layout.mapped(types.shape_of(op.results[0].type), unmoved)
    if isinstance(op, JoinOp):
        return layout.after_join()[0]
    if isinstance(op, SplitOp):
        return layout.slice(len(layout.shape) - 1)[0]
    return None
