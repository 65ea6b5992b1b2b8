"""Views that are a stretch of their source's memory: whoever reads one gets an address, and none is copied or computed again.

A step of a sequence is one, and so is a part of a tensor along its first dim. Kernels that differ in where such a part begins are
one kernel.
"""

from __future__ import annotations

from math import prod

from xdsl.ir import SSAValue

from tilefw.graph.dialect.moving_ops import GraphReshapeOp, ViewOp
from tilefw.graph.emit.access import access, row_major
from tilefw.kernels.formats import array_dtype
from tilefw.tile import types

_ALIGNED = 16  # bytes: at a multiple of which kernels are compiled to read whole vectors


def first_byte(view: ViewOp) -> int | None:
    """Where in the source's memory the elements of a view begin that lie there as in a tensor of their own; None for others."""
    shape, source = types.shape_of(view.result.type), types.shape_of(view.source.type)
    if view.pad is not None or not prod(shape):
        return None
    found = access(view.map.data, shape, source)
    walked = zip(shape, found.factors, row_major(shape), strict=True)
    if found.guards or any(factor != stride for extent, factor, stride in walked if extent > 1):
        return None
    begin = found.offset * array_dtype(types.dtype_of(view.source.type).name).itemsize
    return None if begin % _ALIGNED else begin


def in_memory(value: SSAValue) -> SSAValue:
    """The value whose memory a value has: reshapes have that of their source, and so have views that are a stretch of it."""
    while isinstance(op := value.owner, GraphReshapeOp | ViewOp):
        if isinstance(op, ViewOp) and first_byte(op) is None:
            break
        value = op.source
    return value
