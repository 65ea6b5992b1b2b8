"""Groups of two products and what is computed of the rows of scores between them: attention.

A product joins the next one where all that is computed of its result is read by the next one alone. With them are computed, where
they are read: views, what is known without reading a tensor, and maps of a few sums and products that nobody else reads.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from tilefw.graph.dialect.combining_ops import ContractOp, GraphReduceOp
from tilefw.graph.dialect.grouping_ops import FusedOp
from tilefw.graph.dialect.moving_ops import GraphConcatOp, GraphReshapeOp, ViewOp
from tilefw.graph.dialect.pointwise_ops import GraphConstantOp, MapOp, YieldOp
from tilefw.graph.emit.attention import AttentionText, products_behind
from tilefw.graph.emit.tile_text import NotOneKernelError
from tilefw.graph.fuse.choice import FEWEST_LAUNCHES, FusionChoice, part_of
from tilefw.graph.fuse.contract import multiplied_by_dot, turned
from tilefw.graph.fuse.groups import fuse_as_written, values_read
from tilefw.graph.meaning import model_function
from tilefw.tile import types
from tilefw.tile.dialect.elementwise_op import ElementwiseOp

KIND = "attention"  # what writes the kernels of these groups
_BETWEEN = (MapOp, GraphReduceOp, ViewOp, GraphReshapeOp)
_MOVES = (ViewOp, GraphReshapeOp, GraphConcatOp)
_MOST_ROWS = 4  # of the elementwise table, in a map that is computed for each block of rows again
_FUNCTIONS = frozenset({"sin", "cos", "tan", "exp", "exp2", "log", "log2", "pow", "erf", "tanh", "log1p", "expm1"})


def fuse_attention(module: ModuleOp, choice: FusionChoice = FEWEST_LAUNCHES) -> None:
    """Make a group of every product that reads weights made of another product's result, in place, unless the choice is to have a
    launch for each product."""
    block = model_function(module).body.block
    if not any(isinstance(op, GraphReduceOp) for op in block.ops):  # weights are made by one; others need not be looked for
        return
    for op in list(block.ops):
        if op.parent is block and isinstance(op, ContractOp) and multiplied_by_dot(op):
            _try(op, choice)


def _try(product: ContractOp, choice: FusionChoice) -> None:
    found = _first_product(product)
    if found is None:
        return
    scores, between = found
    product = turned(product)
    members = {product, scores, *between}
    for operand in (*product.operands, *(operand for op in (scores, *between) for operand in op.operands)):
        _pull(operand, members)
    inputs = values_read(product.results, lambda op, _: op in members)
    try:
        AttentionText(KIND, inputs, [product.result], product)
    except NotOneKernelError:
        return
    if choice.best(lambda: part_of(inputs, product.results), (fuse_attention, fuse_as_written)) == 0:
        _close(product, inputs, members)


def _first_product(product: ContractOp) -> tuple[ContractOp, set[Operation]] | None:
    """The product that one operand, and that one alone, is computed of by a reduction at least, and the ops between them."""
    behind = [one for value in product.operands for one in products_behind(value) if multiplied_by_dot(one)]
    joined = [(one, _between(product, one)) for one in behind]
    found = [(one, between) for one, between in joined if any(isinstance(op, GraphReduceOp) for op in between)]
    return found[0] if len(found) == 1 else None


def _between(product: ContractOp, scores: ContractOp) -> set[Operation]:
    """The ops that the first product's result goes through to the second; none where it goes elsewhere too."""
    found: set[Operation] = set()
    work: list[SSAValue] = [scores.result]
    while work:
        for use in work.pop().uses:
            op = use.operation
            if op is product or op in found:
                continue
            if not isinstance(op, _BETWEEN):
                return set()
            found.add(op)
            work += op.results
    return found


def _pull(value: SSAValue, members: set[Operation]) -> None:
    """Let what computes an operand join, and its own operands, where it may."""
    op = value.owner
    if not isinstance(op, Operation) or op in members or not _joins(op, members):
        return
    members.add(op)
    for operand in op.operands:
        _pull(operand, members)


def _joins(op: Operation, members: set[Operation]) -> bool:
    if isinstance(op, GraphConstantOp):
        return prod(types.shape_of(op.result.type)) == 1
    if isinstance(op, _MOVES) or _is_free(op):
        return True
    return isinstance(op, MapOp) and _is_read_within(op, members) and _is_cheap(op)


def _is_free(op: Operation) -> bool:
    """Whether an op is computed of no tensor: of places and of numbers."""
    if isinstance(op, GraphConstantOp):
        return prod(types.shape_of(op.result.type)) == 1
    if not isinstance(op, (MapOp, *_MOVES)):
        return False
    return all(isinstance(operand.owner, Operation) and _is_free(operand.owner) for operand in op.operands)


def _is_read_within(op: Operation, members: set[Operation]) -> bool:
    """Whether only the group reads the op's results, be it through moves."""
    work = [use.operation for result in op.results for use in result.uses]
    while work:
        reader = work.pop()
        if reader in members:
            continue
        if not isinstance(reader, _MOVES):
            return False
        work += [use.operation for use in reader.results[0].uses]
    return True


def _is_cheap(op: MapOp) -> bool:
    """Whether an element costs a few instructions."""
    names = [one.row.name for one in op.body.block.ops if isinstance(one, ElementwiseOp)]
    return len(names) <= _MOST_ROWS and not _FUNCTIONS.intersection(names)


def _close(product: ContractOp, inputs: list[SSAValue], members: set[Operation]) -> None:
    """Put the members into a group where the product stands."""
    outer = product.parent
    assert outer is not None
    block = Block(arg_types=[value.type for value in inputs])
    known: dict[SSAValue, SSAValue] = dict(zip(inputs, block.args, strict=True))
    ordered = [op for op in outer.ops if op in members]
    for op in ordered:
        if all(operand in known for operand in op.operands):
            block.add_op(op.clone(known))
    block.add_op(YieldOp.create(operands=[known[product.result]]))
    group = FusedOp.create(
        operands=inputs, result_types=[product.result.type], properties={"kind": StringAttr(KIND)}, regions=[Region(block)]
    )
    outer.insert_op_before(group, product)
    product.result.replace_all_uses_with(group.results[0])
    for op in reversed(ordered):
        if not any(result.uses.get_length() for result in op.results):
            op.detach()
            op.erase()
