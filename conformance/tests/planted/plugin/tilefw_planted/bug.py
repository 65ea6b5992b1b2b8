"""What a planted bug is, and the edits of tile IR that bugs are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from tilefw.passes.rewriting import insert
from tilefw.tile import types
from tilefw.tile.dialect.elementwise_op import ElementwiseOp, build
from tilefw.tile.dialect.ops import BroadcastOp, ConstantOp, IotaOp, ReshapeOp

Finds = Callable[[Any], bool]
Plants = Callable[[Any], None]


@dataclass(frozen=True, slots=True)
class Bug:
    """One mistake of a backend's author: what was done wrong, how it shows, at which ops, and the rewrite of such an op.

    `finds` is asked before anything is planted, and holds only where `plant` changes the op's meaning for some input. `checks` are
    those that see it beside the checks that are always on.
    """

    name: str
    mistake: str
    shows: str
    finds: Finds
    plant: Plants
    checks: frozenset[str] = frozenset()

    def sites(self, module: ModuleOp) -> list[Operation]:
        """The ops at which it is planted."""
        return [op for op in module.walk() if self.finds(op)]


def is_row(op: Operation, *names: str) -> bool:
    """Whether `op` is of one of these rows of the elementwise table."""
    return isinstance(op, ElementwiseOp) and op.row.name in names


def element(value: SSAValue) -> Attribute:
    """The type of one element."""
    return types.element_of(value.type)


def full(number: float, type: Attribute, before: Operation) -> SSAValue:
    """`number`, in every element of `type`."""
    return insert(ConstantOp(number, type), before)


def made(name: str, *operands: SSAValue, before: Operation, **how: Any) -> SSAValue:
    """The result of a new op of the row `name`."""
    return insert(build(name, *operands, **how), before)


def by_row(name: str, *operands: SSAValue, before: Operation, number: float) -> SSAValue:
    """The row `name` of the operands and, last, `number`."""
    return made(name, *operands, full(number, operands[-1].type, before), before=before)


def changed(op: Operation, change: Callable[[SSAValue, Operation], SSAValue], result: int = 0) -> None:
    """Everyone who reads a result of `op` reads what `change(result, next op)` makes of it."""
    value, following = op.results[result], op.next_op
    assert following is not None  # a terminator has no result
    readers = list(value.uses)
    instead = change(value, following)
    for use in readers:
        use.operation.operands[use.index] = instead


def operand_changed(op: Operation, index: int, change: Callable[[SSAValue, Operation], SSAValue]) -> None:
    """The operand at `index` is what `change(operand, op)` makes of it."""
    op.operands[index] = change(op.operands[index], op)


def swapped(op: Operation, left: int, right: int) -> None:
    """Two operands change places."""
    op.operands[left], op.operands[right] = op.operands[right], op.operands[left]


def index_along(type: Attribute, axis: int, before: Operation) -> SSAValue:
    """Of each element of a tile, its index along `axis`, as i32."""
    shape = types.shape_of(type)
    line = tuple(size if dim == axis else 1 for dim, size in enumerate(shape))
    lined = insert(ReshapeOp(insert(IotaOp(0, shape[axis]), before), types.tile(line, types.i32)), before)
    return insert(BroadcastOp(lined, types.tile(shape, types.i32)), before)


def put_at(value: SSAValue, axis: int, index: int, number: float, before: Operation) -> SSAValue:
    """The tile `value` with `number` wherever the index along `axis` is `index`."""
    there = by_row("eqi", index_along(value.type, axis, before), before=before, number=index)
    return made("select", there, full(number, value.type, before), value, before=before)


def through(name: str, value: SSAValue, before: Operation) -> SSAValue:
    """A float as the IR type called `name`, then rounded to its own type again."""
    narrow = types.with_element(value.type, getattr(types, name))
    return made("castf", made("castf", value, before=before, result=narrow), before=before, result=value.type)
