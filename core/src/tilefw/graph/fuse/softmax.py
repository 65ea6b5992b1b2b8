"""A softmax as models write it: exponentials of scores less their row's greatest, over their sum.

The quotient may be a product by a reciprocal; a cast may follow, and a choice of 0 where it is NaN, as exporters write for rows
whose scores are all masked.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from tilefw.graph.dialect.combining_ops import GraphReduceOp, numbers_of
from tilefw.graph.dialect.moving_ops import GraphReshapeOp, ViewOp
from tilefw.graph.dialect.pointwise_ops import GraphConstantOp, MapOp, YieldOp
from tilefw.graph.index_maps import rows_of
from tilefw.graph.meaning import only_row, results_of
from tilefw.tile import types
from tilefw.tile.dialect.elementwise_op import ElementwiseOp

_QUOTIENTS = ("divf", "div_rn")


@dataclass(frozen=True, slots=True)
class Softmax:
    """The softmax of `scores` along their dim `axis`; 0 where it is NaN, if `zero_for_nan`."""

    scores: SSAValue
    axis: int
    zero_for_nan: bool


def softmax_of(value: SSAValue) -> Softmax | None:
    """The softmax that a value is; None for another value."""
    zeroed = _without_nan(_uncast(value))
    value, zero = (value, False) if zeroed is None else (zeroed, True)
    value = _uncast(value)
    name, given = row_of(value)
    if name in _QUOTIENTS:
        top, bottom = given
    elif name == "mulf":
        top, bottom = given[0], _inverted(given[1])
    else:
        return None
    summed = None if bottom is None else _row_reduction(bottom, ("addf",))
    kind, inner = row_of(top)
    if summed is None or summed.operands[0] is not top or kind != "exp":
        return None
    kind, parts = row_of(inner[0])
    greatest = _row_reduction(parts[1], ("maxf", "maxf_nan")) if kind == "subf" else None
    if greatest is None or greatest.operands[0] is not parts[0] or greatest.axes != summed.axes:
        return None
    axes = numbers_of(summed.axes)
    return Softmax(parts[0], axes[0], zero) if len(axes) == 1 else None


def row_of(value: SSAValue) -> tuple[str, tuple[SSAValue, ...]]:
    """The row of the elementwise table that computes a value of others, and these; an empty name for another value."""
    op = value.owner
    if not isinstance(op, MapOp) or len(op.results) != 1:
        return "", ()
    first = op.body.block.first_op
    last = op.body.block.last_op
    if not isinstance(first, ElementwiseOp) or first.next_op is not last or not isinstance(last, YieldOp):
        return "", ()
    if list(last.operands) != list(first.results):
        return "", ()
    arguments: list[SSAValue] = list(op.body.block.args)
    if not all(operand in arguments for operand in first.operands):
        return "", ()
    places = [arguments.index(operand) for operand in first.operands]
    return first.row.name, tuple(op.operands[place] for place in places)


def _uncast(value: SSAValue) -> SSAValue:
    name, given = row_of(value)
    return given[0] if name == "castf" else value


def _without_nan(value: SSAValue) -> SSAValue | None:
    """What `select(isnan(x), 0, x)` chooses of."""
    name, given = row_of(value)
    if name != "select":
        return None
    test, asked = row_of(given[0])
    return given[2] if test == "isnan" and asked == (given[2],) and _number(given[1]) == 0 else None


def _number(value: SSAValue) -> float | None:
    """The one number that a value has everywhere, as far as it is seen here."""
    op = _source(value).owner
    if not isinstance(op, GraphConstantOp) or types.shape_of(op.result.type):
        return None
    return float(results_of(op, [])[0])


def _inverted(value: SSAValue) -> SSAValue | None:
    """What a value is 1 over, at most repeated along its rows."""
    source = _repeated(value)
    name, given = ("", None) if source is None else row_of(source)
    return given[1] if given and name in _QUOTIENTS and _number(given[0]) == 1 else None


def _source(value: SSAValue) -> SSAValue:
    """What a value is a view of, all of whose elements are of it."""
    while isinstance(op := value.owner, GraphReshapeOp) or (isinstance(op, ViewOp) and op.pad is None):
        value = op.source
    return value


def _repeated(value: SSAValue) -> SSAValue | None:
    """What a view repeats along dims of one element, another value itself; None for a view of another kind."""
    view, shape = value.owner, types.shape_of(value.type)
    if not isinstance(view, ViewOp):
        return value
    own = types.shape_of(view.source.type)
    if view.pad is not None or len(own) != len(shape):
        return None
    for dim, (factors, offset) in enumerate(rows_of(view.map.data)):
        if offset or (own[dim] > 1 and factors != tuple(int(d == dim) for d in range(len(shape)))):
            return None
    return view.source


def _row_reduction(value: SSAValue, rows: tuple[str, ...]) -> GraphReduceOp | None:
    """The reduction whose result a value is, the same along the axis that fell away."""
    held = _repeated(value)
    if held is None:
        return None
    op = held.owner.source.owner if isinstance(held.owner, GraphReshapeOp) else held.owner
    if not isinstance(op, GraphReduceOp) or only_row(op.body.block) not in rows or len(op.operands) != 1:
        return None
    axes = numbers_of(op.axes)
    kept = tuple(1 if dim in axes else extent for dim, extent in enumerate(types.shape_of(op.operands[0].type)))
    return op if types.shape_of(held.type) == kept else None
