"""One load for a later iteration: as a copy into a slot, or as a load that is masked off where there is no such iteration."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Operation, SSAValue

from tilefw.simt.software_pipeline.address_slice import Load
from tilefw.simt.software_pipeline.emitter import Emitter, always
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.elementwise_op import build
from tilefw.tile.dialect.shared_ops import CopyBlockOp, CopyOp

Values = dict[SSAValue, SSAValue]


def copy(load: Load, view: SSAValue, values: Values, when: SSAValue | None) -> Operation:
    """The copy of what `load` reads, its operands replaced by `values`, into `view`."""
    hints = {"cache": load.cache or None, "eviction": load.eviction or None}
    at = _mapping(values)
    if isinstance(load, ops.LoadOp):
        return CopyOp(view, at(load.pointer), _optional(load.offsets, values), _optional(load.mask, values), when, **hints)
    return CopyBlockOp(
        view, at(load.base), [_optional(bound, values) for bound in load.shape], [at(s) for s in load.strides],
        [at(o) for o in load.offsets], when, lower=[check == "both" for check in load.checks], **hints,
    )


def guarded(load: Load, emitter: Emitter, values: Values, when: SSAValue | None) -> SSAValue:
    """The load on other operands, with nothing accessed where `when` is false; what it gives then is not used."""
    when = None if always(when) else when
    if isinstance(load, ops.LoadOp):
        new: Operation = _guarded_load(load, emitter, values, when)
    else:
        new = _guarded_block(load, emitter, values, when)
    result = emitter.insert(new, load.location).results[0]
    result.name_hint = load.result.name_hint
    return result


def _guarded_load(load: ops.LoadOp, emitter: Emitter, values: Values, when: SSAValue | None) -> ops.LoadOp:
    mask = emitter.both(_optional(load.mask, values), when)
    shape = types.shape_of(load.result.type)
    if mask is not None and types.shape_of(mask.type) != shape:
        mask = emitter.value(ops.SplatOp(mask, shape))
    return ops.LoadOp(
        values.get(load.pointer, load.pointer), _optional(load.offsets, values), mask, _optional(load.other, values),
        cache=load.cache or None, eviction=load.eviction or None,
    )


def _guarded_block(load: ops.LoadBlockOp, emitter: Emitter, values: Values, when: SSAValue | None) -> ops.LoadBlockOp:
    at = _mapping(values)
    offsets = [at(offset) for offset in load.offsets]
    bounds = [_optional(bound, values) for bound in load.shape]
    if when is not None:
        # A block that ends where it begins accesses nothing; of the dims that have a bound any will do.
        dim = next((d for d, bound in enumerate(bounds) if bound is not None), 0)
        bounds[dim] = _bound_when(emitter, when, offsets[dim], bounds[dim], load.block[dim])
    return ops.LoadBlockOp(
        at(load.base), bounds, [at(s) for s in load.strides], offsets, load.block, _optional(load.other, values),
        lower=[check == "both" for check in load.checks], cache=load.cache or None, eviction=load.eviction or None,
    )


def _bound_when(emitter: Emitter, when: SSAValue, offset: SSAValue, bound: SSAValue | None, size: int) -> SSAValue:
    """The bound of a dim when the block is wanted, its offset when not, in the wider type of the two."""
    if bound is None:
        bound = emitter.row("addi", offset, emitter.constant(size, offset.type))
    wide = max((offset.type, bound.type), key=lambda type: types.dtype_of(type).bits)
    ends = [v if v.type == wide else emitter.value(build("exts", v, result=wide)) for v in (bound, offset)]
    return emitter.row("select", when, *ends)


def _mapping(values: Values) -> Callable[[SSAValue], SSAValue]:
    return lambda value: values.get(value, value)


def _optional(value: SSAValue | None, values: Values) -> SSAValue | None:
    return None if value is None else values.get(value, value)
