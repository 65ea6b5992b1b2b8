"""Where masks end along a dim: which conditions of the form index < limit there are, and what is the same for all elements beyond.

A loop along the dim is written in two parts by it, the first for vectors that lie below all limits and need no mask.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from tilefw.loops.access import AccessDim, TileAccess, access_of
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.elementwise_op import ElementwiseOp

Limits = tuple["MaskLimit", ...]


@dataclass(frozen=True, slots=True)
class MaskLimit:
    """A condition of elements: `offset` and their index along a dim together lie below `bound`."""

    bound: SSAValue
    offset: SSAValue | int


def limit_of_dim(dim: AccessDim) -> MaskLimit | None:
    """The limit of a block's dim that is accessed below a bound alone."""
    return None if dim.bound is None or dim.lower else MaskLimit(dim.bound, dim.offset)


def limit_of_row(value: SSAValue) -> MaskLimit | None:
    """The limit that a comparison of counted numbers with one number is."""
    op = value.owner
    if not isinstance(op, ElementwiseOp) or op.row.name != "lts":
        return None
    counted, bound = (operand.owner for operand in op.operands)
    if not isinstance(counted, ops.IotaOp) or not isinstance(bound, ops.SplatOp):
        return None
    return MaskLimit(bound.source, counted.start)


def limits_along(values: Iterable[SSAValue], dim: int, stored: Collection[SSAValue] = ()) -> Limits:
    """The limits along a dim of what the elements of values are made of; of what is `stored` none counts."""
    found: dict[MaskLimit, None] = {}
    seen: set[tuple[SSAValue, int]] = set()
    pending = [(value, dim) for value in values]
    while pending:
        value, at = pending.pop()
        if (value, at) in seen or value in stored or not types.is_tile(value.type) or not isinstance(value.owner, Operation):
            continue
        seen.add((value, at))
        limit, operands = _limited_by(value, at)
        if limit is not None:
            found[limit] = None
        pending += operands
    return tuple(found)


def limits_of_access(access: TileAccess, dim: int, stored: Collection[SSAValue]) -> Limits:
    """The limits along a dim of what an access masks off."""
    if access.dims is None:
        return () if access.mask is None else limits_along((access.mask,), dim, stored)
    limit = limit_of_dim(access.dims[dim])
    return () if limit is None else (limit,)


def _limited_by(value: SSAValue, dim: int) -> tuple[MaskLimit | None, list[tuple[SSAValue, int]]]:
    """The limit of a value's own op along a dim; and its operands, each with its dim, that may have more."""
    op = value.owner
    if isinstance(op, ops.LoadBlockOp | ops.LoadOp):
        access = access_of(op)
        limit = None if access.dims is None else limit_of_dim(access.dims[dim])
        return limit, [(operand, dim) for operand in (access.mask, access.other) if operand is not None]
    if isinstance(op, ElementwiseOp):
        limit = limit_of_row(value)
        return limit, [] if limit is not None else [(operand, dim) for operand in op.operands]
    source = _dim_of_source(op, dim)
    return None, [] if source is None else [(op.operands[0], source)]  # type: ignore[union-attr]  # an op has operands


def _dim_of_source(op: object, dim: int) -> int | None:
    """Which dim of its operand a dim of a shape op's result is; None where it is none."""
    if isinstance(op, ops.BroadcastOp):
        return dim if types.shape_of(op.source.type)[dim] == types.shape_of(op.result.type)[dim] else None
    if isinstance(op, ops.ExpandDimsOp):
        return None if dim == op.axis else dim - (dim > op.axis)
    return op.order[dim] if isinstance(op, ops.TransOp) else None


def reads_end(value: SSAValue, dim: int, limit: MaskLimit, stored: Collection[SSAValue]) -> bool:
    """Whether all loads that are carried out for the elements of a value end at a limit along a dim: who leaves out the elements
    beyond leaves out no access, which a check may have to find. What is `stored` is loaded already."""
    seen: set[tuple[SSAValue, int | None]] = set()
    pending: list[tuple[SSAValue, int | None]] = [(value, dim)]
    while pending:
        value, at = pending.pop()
        op = value.owner
        if (value, at) in seen or value in stored or not types.is_tile(value.type) or not isinstance(op, Operation):
            continue
        seen.add((value, at))
        if isinstance(op, ops.LoadBlockOp | ops.LoadOp) and (at is None or _limited_by(value, at)[0] != limit):
            return False
        same = isinstance(op, ElementwiseOp | ops.LoadBlockOp | ops.LoadOp)
        source = at if same or at is None else _dim_of_source(op, at)
        pending += [(operand, source) for operand in op.operands]
    return True


def uniform_beyond(value: SSAValue, dim: int, limits: Limits) -> bool:
    """Whether all elements of a value, whose index along a dim no limit lets through, differ by their other indices alone."""
    op = value.owner
    if not types.is_tile(value.type):
        return True
    if isinstance(op, ops.ConstantOp | ops.SplatOp):
        return True
    if isinstance(op, ops.LoadBlockOp | ops.LoadOp):
        masked = not op.volatile and _false_beyond_load(op, dim, limits)
        return masked and (op.other is None or uniform_beyond(op.other, dim, limits))
    if isinstance(op, ElementwiseOp):
        if _false_beyond(value, limits):
            return True
        if op.row.name == "select" and _false_beyond(op.operands[0], limits):
            return uniform_beyond(op.operands[2], dim, limits)
        return all(uniform_beyond(operand, dim, limits) for operand in op.operands)
    if isinstance(op, ops.BroadcastOp | ops.ExpandDimsOp):
        source = _dim_of_source(op, dim)
        return source is None or uniform_beyond(op.source, source, limits)
    return False


def _false_beyond(value: SSAValue, limits: Limits) -> bool:
    """Whether a tile of one dim is false beyond the limits."""
    op = value.owner
    if isinstance(op, ElementwiseOp) and op.row.name == "andi":
        return any(_false_beyond(operand, limits) for operand in op.operands)
    return limit_of_row(value) in limits


def _false_beyond_load(op: ops.LoadBlockOp | ops.LoadOp, dim: int, limits: Limits) -> bool:
    access = access_of(op)
    if access.dims is not None:
        return limit_of_dim(access.dims[dim]) in limits
    return access.mask is not None and _false_beyond(access.mask, limits)
