"""Whether a copy engine surely makes the copies of a load of a loop, for matrix units that run by themselves."""

from __future__ import annotations

import math

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from tilefw.simt.assign.accesses import Accesses
from tilefw.simt.description import CopyEngine
from tilefw.simt.lower.described_array import array_of
from tilefw.simt.software_pipeline.address_slice import Load
from tilefw.simt.software_pipeline.unit_products import is_for_units
from tilefw.tile import types
from tilefw.tile.dialect.block_ops import LoadBlockOp


def is_the_engines(load: Load, engine: CopyEngine, accesses: Accesses) -> bool:
    """Whether it makes them, as far as is known before layouts are."""
    function: Operation | None = load
    while function is not None and not isinstance(function, FuncOp):
        function = function.parent_op()
    if function is None or not isinstance(load, LoadBlockOp):
        return False
    array = array_of(function, accesses.facts, load, engine)
    if array is None or not is_for_units(load, array.order[0], accesses.machine):
        return False
    shape, size = types.shape_of(load.result.type), types.dtype_of(load.result.type).storage_bits // 8
    return shape[array.order[1]] <= engine.extent and math.prod(shape) * size % engine.shared_alignment == 0
