"""Products of one tensor by several constants as one product: their constants stand behind each other, each result is a slice.

Queries, keys and values of attention are such siblings. A bias that each adds is merged with them. A reshape that splits the merged
dim goes before the slice, so that what reads it reads the merged result in place. Of a model of several ranks the constants may be
parts: the merged constant has each rank's parts behind each other, and is divided as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from xdsl.dialects.builtin import AffineMapAttr, DenseArrayBase, FunctionType, ModuleOp, TensorType, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineMap

from tilefw.graph.dialect.combining_ops import ContractOp
from tilefw.graph.dialect.elements import StoredElements, tensor
from tilefw.graph.dialect.moving_ops import GraphReshapeOp, ViewOp
from tilefw.graph.dialect.pointwise_ops import GraphConstantOp, MapOp
from tilefw.graph.dialect.rank_ops import PartOp
from tilefw.graph.dialect.served_nodes import hand_on
from tilefw.graph.fuse.choice import FEWEST_LAUNCHES, FusionChoice, part_of
from tilefw.graph.fuse.contract import with_views
from tilefw.graph.fuse.groups import fuse_as_written, is_read_in_place, values_read
from tilefw.graph.fuse.paired import are_paired, maps_behind_pair
from tilefw.graph.index_maps import linear_map, rows_of
from tilefw.graph.meaning import model_function, only_row
from tilefw.tile import types


@dataclass(frozen=True, slots=True)
class BiasAddition:
    """The one reader of a product, which adds a constant of the merged dim's extent."""

    op: MapOp
    view: ViewOp
    constant: GraphConstantOp


@dataclass(frozen=True, slots=True)
class SiblingProduct:
    """A product by a constant whose axis `axis` is walked by the result's last dim alone."""

    op: ContractOp
    constant: GraphConstantOp
    axis: int
    bias: BiasAddition | None
    part: PartOp | None = None  # that the product takes of the constant

    @property
    def key(self) -> tuple[object, ...]:
        """What siblings have in common."""
        shape = list(types.shape_of(self.op.right.type))
        shape[self.axis] = 0
        sizes = [0 if d == self.dim else size for d, size in enumerate(self.op.extents)]
        kinds = types.element_of(self.op.left.type), types.element_of(self.op.result.type)
        added = None if self.bias is None else self.bias.view.map
        divided = None if self.part is None else (self.part.axis, self.part.ranks)
        return (self.op.left, self.op.left_map, self.op.right_map, tuple(shape), tuple(sizes), kinds, self.axis, added, divided)

    @property
    def dim(self) -> int:
        return types.rank_of(self.op.result.type) - 1

    @property
    def ops(self) -> list[Operation]:
        """The product, its constant, and what adds a bias."""
        added = [] if self.bias is None else [self.bias.op, self.bias.view, self.bias.constant]
        return [self.op, self.constant, *([] if self.part is None else [self.part]), *added]

    @property
    def last(self) -> SSAValue:
        return self.op.result if self.bias is None else self.bias.op.results[0]


def merge_siblings(module: ModuleOp, choice: FusionChoice = FEWEST_LAUNCHES) -> None:
    """Merge all siblings of a module, in place, unless the choice is to leave those of a family apart."""
    for family in _families(module):
        merged, apart = _fuse_merged, fuse_as_written
        ways = (apart, merged) if _is_pair(family) else (merged, apart)
        if ways[choice.best(lambda one=family: _part(one), ways)] is merged:
            _merge(family)


def _families(module: ModuleOp) -> list[list[SiblingProduct]]:
    block = model_function(module).body.block
    families: dict[tuple[object, ...], list[SiblingProduct]] = {}
    for op in list(block.ops):
        if isinstance(op, ContractOp) and (found := _product(with_views(op))) is not None:
            families.setdefault(found.key, []).append(found)
    return [family for family in families.values() if len(family) > 1]


def _is_pair(family: Sequence[SiblingProduct]) -> bool:
    return len(family) == 2 and are_paired(family[0].op, family[1].op)


def _part(family: Sequence[SiblingProduct]) -> ModuleOp:
    """The products of a family with their constants, and where they are a pair what is computed where they meet."""
    members: set[Operation] = {op for one in family for op in one.ops}
    outputs = [one.last for one in family]
    if _is_pair(family):
        met = maps_behind_pair(family[0].op, family[1].op)
        members |= met
        outputs = [value for op in met for value in op.results if any(use.operation not in met for use in value.uses)]
    return part_of(values_read(outputs, lambda op, _: op in members or is_read_in_place(op)), outputs)


def _fuse_merged(part: ModuleOp) -> None:
    """Fuse a part whose siblings are one product. Its slices are read in place by who wants them: the part gives it whole."""
    for family in _families(part):
        _merge(family)
    function = model_function(part)
    given = function.body.block.last_op
    assert given is not None
    given.operands = list(dict.fromkeys(_whole(value) for value in given.operands))
    types = [argument.type for argument in function.body.block.args], [value.type for value in given.operands]
    function.function_type = FunctionType.from_lists(*types)
    fuse_as_written(part)


def _whole(value: SSAValue) -> SSAValue:
    """What a value is a slice of."""
    while isinstance(value.owner, ViewOp | GraphReshapeOp):
        value = value.owner.source
    return value


def _product(op: ContractOp) -> SiblingProduct | None:
    """The contraction as one that may have siblings; None for another."""
    right, last = op.right.owner, types.rank_of(op.result.type) - 1
    part = right if isinstance(right, PartOp) else None
    constant = right if part is None else part.source.owner
    if not isinstance(constant, GraphConstantOp) or last < 0 or any(factors[last] for factors, _ in rows_of(op.left_map.data)):
        return None
    walked = [(k, factors, offset) for k, (factors, offset) in enumerate(rows_of(op.right_map.data)) if factors[last]]
    if len(walked) != 1:
        return None
    axis, factors, offset = walked[0]
    alone = not offset and factors[last] == 1 and sum(map(bool, factors)) == 1
    if not alone or types.shape_of(op.right.type)[axis] != op.extents[last]:
        return None
    return SiblingProduct(op, constant, axis, _bias(op, last), part)


def _bias(op: ContractOp, last: int) -> BiasAddition | None:
    readers = {use.operation for use in op.result.uses}
    if len(readers) != 1:
        return None
    (added,) = readers
    if not isinstance(added, MapOp) or only_row(added.body.block) != "addf" or added.operands[0] is not op.result:
        return None
    view = added.operands[1].owner
    if not isinstance(view, ViewOp) or not isinstance(constant := view.source.owner, GraphConstantOp) or view.pad is not None:
        return None
    along = linear_map([[int(d == last) for d in range(last + 1)]], [0], last + 1)
    fits = types.shape_of(constant.result.type) == (op.extents[last],) and rows_of(view.map.data) == rows_of(along)
    return BiasAddition(added, view, constant) if fits else None


def _merge(family: Sequence[SiblingProduct]) -> None:
    """One product, and one addition, where the first of the family stands."""
    first = family[0]
    start = first.op
    widths = [one.op.extents[first.dim] for one in family]
    sizes = [sum(widths) if d == first.dim else size for d, size in enumerate(first.op.extents)]
    weights = _weights(family, start)
    shape = tuple(sizes[: first.dim + 1])
    product = ContractOp.create(
        operands=[first.op.left, weights], result_types=[_typed(shape, first.op.result)],
        properties={**first.op.properties, "sizes": DenseArrayBase.from_list(i64, sizes)},
    )
    hand_on(product, *(one.op for one in family))
    made = _before(start, product)
    if first.bias is not None:
        bias = _before(start, _joined([one.bias.constant for one in family if one.bias is not None], 0))
        spread = _before(start, ViewOp.build(
            operands=[bias, None], properties={"map": first.bias.view.map}, result_types=[_typed(shape, bias)]
        ))
        body = first.bias.op.body.clone()
        added = MapOp.create(operands=[made, spread], result_types=[made.type], regions=[body])
        hand_on(added, *(one.bias.op for one in family if one.bias is not None))
        made = _before(start, added)
    offset, splits = 0, dict[tuple[int, ...], SSAValue]()
    for one, width in zip(family, widths, strict=True):
        _slice(made, one, (offset, width), start, splits)
        offset += width
    for one in family:
        if one.bias is not None:
            _erase(one.bias.op)
        _erase(one.op)


def _weights(family: Sequence[SiblingProduct], start: Operation) -> SSAValue:
    """The constants of a family as one, of parts a part."""
    first, constants = family[0], [one.constant for one in family]
    if first.part is None:
        return _before(start, _joined(constants, first.axis))
    along = first.part.axis.value.data == first.axis
    whole = _before(start, _joined(constants, first.axis, first.part.ranks.value.data if along else 1))
    shape = list(types.shape_of(first.op.right.type))
    shape[first.axis] = sum(one.op.extents[first.dim] for one in family)
    return _before(start, PartOp.create(
        operands=[whole], properties=dict(first.part.properties), result_types=[_typed(tuple(shape), whole)]
    ))


def _slice(
    merged: SSAValue, one: SiblingProduct, part: tuple[int, int], before: Operation, splits: dict[tuple[int, ...], SSAValue]
) -> None:
    """Let what reads a sibling read its slice, `part`. `splits` has the reshapes of the merged result that there are."""
    offset, width = part
    lead = types.shape_of(merged.type)[:-1]
    for use in list(one.last.uses):
        op = use.operation
        if not isinstance(op, GraphReshapeOp):
            continue
        shape = types.shape_of(op.result.type)
        rest = shape[len(lead) + 1 :]
        inner = prod(rest)
        if shape[: len(lead)] != lead or not inner or not rest or offset % inner or types.shape_of(merged.type)[-1] % inner:
            continue
        wide = (*lead, types.shape_of(merged.type)[-1] // inner, *rest)
        if wide not in splits:
            splits[wide] = _before(before, GraphReshapeOp.create(operands=[merged], result_types=[_typed(wide, merged)]))
        op.result.replace_all_uses_with(_window(splits[wide], len(lead), offset // inner, shape, before))
        _erase(op)
    if one.last.uses:
        one.last.replace_all_uses_with(_window(merged, len(lead), offset, (*lead, width), before))


def _window(source: SSAValue, dim: int, offset: int, shape: tuple[int, ...], before: Operation) -> SSAValue:
    rank = len(shape)
    rows = [[int(d == k) for d in range(rank)] for k in range(rank)]
    map: AffineMap = linear_map(rows, [offset if k == dim else 0 for k in range(rank)], rank)
    made = ViewOp.build(operands=[source, None], properties={"map": AffineMapAttr(map)}, result_types=[_typed(shape, source)])
    return _before(before, made)


def _joined(constants: Sequence[GraphConstantOp], axis: int, ranks: int = 1) -> GraphConstantOp:
    """Constants behind each other along an axis, the parts of each rank before those of the next."""
    size = types.dtype_of(constants[0].result.type).storage_bits // 8
    arrays = [np.frombuffer(one.value.data, np.uint8).reshape(*types.shape_of(one.result.type), size) for one in constants]
    parts = [np.split(array, ranks, axis) for array in arrays]
    joined = np.ascontiguousarray(np.concatenate([own[rank] for rank in range(ranks) for own in parts], axis))
    joined.flags.writeable = False
    type = _typed(joined.shape[:-1], constants[0].result)
    return GraphConstantOp.create(properties={"value": StoredElements(joined.reshape(-1).data)}, result_types=[type])


def _typed(shape: tuple[int, ...], like: SSAValue) -> TensorType[Attribute]:
    return tensor(tuple(shape), types.element_of(like.type))


def _before(op: Operation, made: Operation) -> SSAValue:
    block = op.parent
    assert block is not None
    block.insert_op_before(made, op)
    return made.results[0]


def _erase(op: Operation) -> None:
    op.detach()
    op.erase()
