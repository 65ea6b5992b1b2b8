"""The `other` value of a load that became a copy: the copy leaves masked-off elements zero, so the reader selects `other` for
them."""

from __future__ import annotations

import math

from xdsl.ir import Block, Operation, SSAValue

from tilefw.passes.fold import constant_of
from tilefw.simt.software_pipeline.address_slice import Load
from tilefw.simt.software_pipeline.emitter import Emitter
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.elementwise_op import build


def with_other_values(load: Load, value: SSAValue, emitter: Emitter) -> SSAValue:
    """`value`, which was copied for `load`, as the load itself would give it; made at the load's place."""
    if not fills(load):
        return value
    assert load.other is not None
    mask = load.mask if isinstance(load, ops.LoadOp) else _within_bounds(load, emitter)
    return value if mask is None else emitter.row("select", mask, value, load.other)


def fills(load: Load) -> bool:
    """Whether masked-off elements have values other than zero."""
    return load.other is not None and not _is_zero(load.other)


def _is_zero(value: SSAValue) -> bool:
    literal = constant_of(value)
    return literal is not None and literal == 0 and math.copysign(1, literal) > 0


def _within_bounds(load: ops.LoadBlockOp, emitter: Emitter) -> SSAValue | None:
    """Which elements of a block are within its bounds; what does not change in the loop is compared before it."""
    mask: SSAValue | None = None
    for dim, (offset, bound, check) in enumerate(zip(load.offsets, load.shape, load.checks, strict=True)):
        if bound is None:
            continue
        place = emitter.outer if _is_before(offset, load.parent) and _is_before(bound, load.parent) else emitter
        size = load.block[dim]
        index = place.value(ops.IotaOp(0, size))
        part = place.row("lts", index, place.value(ops.SplatOp(_limit(place, bound, offset, size), (size,))))
        if check == "both" and not _is_natural(offset):
            begin = _limit(place, place.constant(0, offset.type), offset, size)
            part = place.row("andi", part, place.row("ges", index, place.value(ops.SplatOp(begin, (size,)))))
        mask = emitter.both(mask, _broadcast_row(place, part, dim, load.block))
    return mask


def _is_before(value: SSAValue, body: Block | None) -> bool:
    """Whether a value that the body's ops may use is not one of the body's own."""
    owner = value.owner
    return (owner.parent if isinstance(owner, Operation) else owner) is not body


def _is_natural(offset: SSAValue) -> bool:
    literal = constant_of(offset)
    return literal is not None and literal >= 0


def _limit(place: Emitter, bound: SSAValue, offset: SSAValue, size: int) -> SSAValue:
    """bound - offset as far as a block of `size` can tell, an i32; taken in 64 bits, so that it does not wrap around."""
    if constant_of(offset) == 0 and bound.type == types.i32:
        return bound
    wide = [v if v.type == types.i64 else place.value(build("exts", v, result=types.i64)) for v in (bound, offset)]
    rest = place.row("maxs", place.row("subi", *wide), place.constant(0, types.i64))
    return place.value(build("trunci", place.row("mins", rest, place.constant(size, types.i64)), result=types.i32))


def _broadcast_row(place: Emitter, part: SSAValue, dim: int, shape: tuple[int, ...]) -> SSAValue:
    """A row of one dim over a whole block."""
    for axis in range(len(shape)):
        if axis != dim:
            part = place.value(ops.ExpandDimsOp(part, axis))
    return part if types.shape_of(part.type) == shape else place.value(ops.BroadcastOp(part, shape))
