"""Groups around contractions: views of their operands join the index maps, what is computed of each element of the result joins the
kernel.

A consumer joins where the contraction's result is read by it alone, element by element, at most through a reshape that splits no
dim. What else it reads comes through views; numbers stand in the kernel's text.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import AffineMapAttr, DenseArrayBase, ModuleOp, StringAttr, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from tilefw.graph.dialect.combining_ops import ContractOp
from tilefw.graph.dialect.elements import tensor
from tilefw.graph.dialect.grouping_ops import FusedOp
from tilefw.graph.dialect.moving_ops import GraphReshapeOp, ViewOp
from tilefw.graph.dialect.pointwise_ops import GraphConstantOp, MapOp, YieldOp
from tilefw.graph.dialect.served_nodes import hand_on
from tilefw.graph.fuse.paired import partner_of
from tilefw.graph.index_maps import composed, linear_map, merging_map, rows_of, stays_inside
from tilefw.graph.meaning import model_function
from tilefw.tile import types

KIND = "contract"  # what writes the kernels of these groups
_FEW_TERMS = 64


def fuse_contractions(module: ModuleOp) -> None:
    """Make a group of every contraction that `tl.dot` computes, in place."""
    block = model_function(module).body.block
    for op in list(block.ops):
        if op.parent is block and isinstance(op, ContractOp) and multiplied_by_dot(op) and not _is_narrow(op):
            _group(turned(with_views(op)))


def sides(op: ContractOp) -> tuple[list[int], list[int], list[int]]:
    """The dims of the result that both operands are walked along, or none; those of the left one alone; those of the right one."""
    walked = [
        {d for factors, _ in rows_of(map.data) for d, factor in enumerate(factors) if factor} for map in (op.left_map, op.right_map)
    ]
    kept = range(types.rank_of(op.result.type))
    left, right = ([d for d in kept if d in mine and d not in theirs] for mine, theirs in (walked, walked[::-1]))
    return [d for d in kept if d not in left and d not in right], left, right


def _is_narrow(op: ContractOp) -> bool:
    """Whether many small products have one row or column each, as in a convolution of each channel alone: they are no matrices, and
    a pointwise kernel adds up their few terms."""
    batch, *both = ([op.extents[d] for d in dims] for dims in sides(op))
    return min(map(prod, both)) == 1 < prod(batch) and prod(op.summed) <= _FEW_TERMS


def multiplied_by_dot(op: ContractOp) -> bool:
    """Whether a contraction's elements are ones that `tl.dot` multiplies, and adds up in its result's precision."""
    kind = types.dtype_of(op.left.type)
    result = types.dtype_of(op.result.type).bits
    return result <= max(kind.bits, 32) if kind.is_float else kind.bits == 8 and result <= 32


def with_views(op: ContractOp) -> ContractOp:
    """The contraction with the views that its operands are read through in its maps."""
    operands, maps = [op.left, op.right], [op.left_map.data, op.right_map.data]
    views: list[Operation] = []
    for side in range(2):
        while isinstance(view := operands[side].owner, ViewOp) and view.pad is None:
            if not stays_inside(maps[side], op.extents, types.shape_of(view.result.type)):
                break  # what is outside of the view reads 0, not what is outside of its source
            maps[side], operands[side] = composed(view.map.data, maps[side]), view.source
            views.append(view)
    if not views:
        return op
    made = ContractOp.create(
        operands=operands, result_types=[op.result.type],
        properties={"left_map": AffineMapAttr(maps[0]), "right_map": AffineMapAttr(maps[1]), "sizes": op.sizes},
    )
    hand_on(made, *views, op)
    return _replaced(op, made)


def turned(op: ContractOp) -> ContractOp:
    """The contraction with its result's dims in the order of the transpositions that alone read it."""
    readers = [use.operation for use in op.result.uses]
    if len(readers) != 1 or not isinstance(view := readers[0], ViewOp) or view.source is not op.result:
        return op
    order = _order(view)
    if order is None:
        return op
    kept, dims = len(order), len(op.extents)
    place = [order.index(d) if d < kept else d for d in range(dims)]  # where each dim goes
    sizes = [op.extents[order[d] if d < kept else d] for d in range(dims)]
    steps = linear_map([[int(place[d] == k) for k in range(dims)] for d in range(dims)], [0] * dims, dims)
    maps = [AffineMapAttr(composed(map.data, steps)) for map in (op.left_map, op.right_map)]
    made = ContractOp.create(
        operands=[op.left, op.right], result_types=[view.result.type],
        properties={"left_map": maps[0], "right_map": maps[1], "sizes": DenseArrayBase.from_list(i64, sizes)},
    )
    hand_on(made, op, view)
    _insert_before(made, op)
    view.result.replace_all_uses_with(made.result)
    _erase(view)
    _erase(op)
    return turned(made)  # a second transposition may follow


def _order(view: ViewOp) -> list[int] | None:
    """For each dim of a transposition's result the source's dim; None for another view."""
    shape, source = types.shape_of(view.result.type), types.shape_of(view.source.type)
    found: dict[int, int] = {}
    for k, (factors, offset) in enumerate(rows_of(view.map.data)):
        walked = [d for d, factor in enumerate(factors) if factor]
        if offset or len(walked) != 1 or factors[walked[0]] != 1 or walked[0] in found or shape[walked[0]] != source[k]:
            return None
        found[walked[0]] = k
    return [found[d] for d in range(len(shape))] if len(found) == len(shape) else None


def _group(root: ContractOp) -> None:
    """Make a group of a contraction and the ops behind it that join: as many as leave one value that others read."""
    partner = partner_of(root)
    members: list[Operation] = [root]
    inside: set[SSAValue] = {root.result}
    kept, last = 1, root.result
    op = root.next_op
    while op is not None:
        if op is partner or (any(value in inside for value in op.operands) and _joins(op)):
            members.append(op)
            inside.update(op.results)
            escaping = [value for value in inside if any(use.operation not in members for use in value.uses)]
            if len(escaping) == 1 and escaping[0] in op.results:
                kept, last = len(members), escaping[0]
        op = op.next_op
    del members[kept:]
    while len(members) > 1 and isinstance(members[-1], GraphReshapeOp):  # a new shape alone costs nothing outside
        last = members.pop().operands[0]
    _close(members, last)


def _joins(op: Operation) -> bool:
    """Whether an op computes each element of its results from one element of the values in the group."""
    if isinstance(op, GraphReshapeOp):
        return merging_map(types.shape_of(op.source.type), types.shape_of(op.result.type)) is not None
    return isinstance(op, MapOp)


def _close(members: list[Operation], last: SSAValue) -> None:
    """Move the members, with what they read through views and as numbers, into a group where the last of them stands."""
    known: dict[SSAValue, SSAValue] = {}
    inputs: list[SSAValue] = []
    block = Block()
    for op in members:
        for value in op.operands:
            _bring(value, known, inputs, block, views=not isinstance(op, ContractOp))
        copy = op.clone(known)
        block.add_op(copy)
    block.add_op(YieldOp.create(operands=[known[last]]))
    group = FusedOp.create(
        operands=inputs, result_types=[tensor(types.shape_of(last.type), types.element_of(last.type))],
        properties={"kind": StringAttr(KIND)}, regions=[Region(block)],
    )
    _insert_before(group, members[-1])
    last.replace_all_uses_with(group.results[0])
    for op in reversed(members):
        _erase(op)


def _bring(value: SSAValue, known: dict[SSAValue, SSAValue], inputs: list[SSAValue], block: Block, views: bool) -> None:
    """Make an operand known in a group: with `views`, views and numbers come along; another tensor is an argument. Those of the
    root do not: what a view is still left there for is that its outside reads 0."""
    if value in known:
        return
    op = value.owner
    number = isinstance(op, GraphConstantOp) and prod(types.shape_of(value.type)) == 1
    if views and isinstance(op, ViewOp) and op.pad is None:
        _bring(op.source, known, inputs, block, views)
    elif not (views and number):
        inputs.append(value)
        known[value] = block.insert_arg(value.type, len(block.args))
        return
    assert isinstance(op, Operation)
    block.add_op(op.clone(known))


def _replaced(op: ContractOp, made: ContractOp) -> ContractOp:
    _insert_before(made, op)
    op.result.replace_all_uses_with(made.result)
    _erase(op)
    return made


def _insert_before(made: Operation, op: Operation) -> None:
    block = op.parent
    assert block is not None
    block.insert_op_before(made, op)


def _erase(op: Operation) -> None:
    """Remove an op that nothing reads."""
    op.detach()
    op.erase()
