"""A copy engine in the lane interpreter: the block of an array that a descriptor tells of, as it lies in shared memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from tilefw.api.device import DescribedArray, Scalar
from tilefw.copy_descriptors import CopyDescriptor
from tilefw.simt.description import CopyEngine
from tilefw.testing.lane_barriers import LandingCopy
from tilefw.testing.lane_memory import LaneFault, LaneGlobalMemory, LaneSharedMemory
from tilefw.testing.lane_products import swizzled
from tilefw.tile.dialect.kernel_info import argument_attributes, hidden_of
from tilefw.tile.reference.value import Array


def descriptors(
    function: FuncOp, arguments: Sequence[Array | int | float], memory: LaneGlobalMemory
) -> dict[SSAValue, tuple[CopyDescriptor, DescribedArray]]:
    """What a launch makes for the hidden parameters of a function; its own come first."""
    arrays = [argument for argument in arguments if isinstance(argument, np.ndarray)]
    scalars = [Scalar(0 if isinstance(value, np.ndarray) else value, "int64") for value in arguments]
    found: dict[SSAValue, tuple[CopyDescriptor, DescribedArray]] = {}
    for parameter in function.body.block.args:
        recipe = CopyDescriptor.of(hidden_of(argument_attributes(function, parameter.index)))
        if recipe is not None:
            base = next(i for i, each in enumerate(arrays) if each is arguments[recipe.base])
            found[parameter] = recipe, recipe.described(memory.address(base), scalars, function.sym_name.data)
    return found


def started(
    engine: CopyEngine | None, array: DescribedArray, element_bytes: int, memory: LaneGlobalMemory, shared: LaneSharedMemory,
    address: int, at: Sequence[int],
) -> LandingCopy:
    """The copy of the block at these places, innermost dim first, to `address`; it is under way from here on."""
    if engine is None:
        raise LaneFault("the chip has no copy engine")
    form = next((each for each in engine.forms if each.row_bytes == array.row_bytes), None)
    aligned = engine.shared_alignment if form is None else form.pattern_bytes
    if address % aligned:
        raise LaneFault(f"an engine's copy to shared byte {address}, no multiple of {aligned}")
    if array.row_bytes and form is None:
        raise LaneFault(f"the engine exchanges no pieces of rows of {array.row_bytes} bytes")
    index = np.indices(tuple(reversed(array.extents)))[::-1].reshape(len(array.extents), -1)  # innermost dim first
    places = index + np.array(at)[:, None]
    inside = ((places >= 0) & (places < np.array(array.sizes)[:, None])).all(axis=0)
    strides = np.array([element_bytes, *array.strides])
    data = np.zeros((index.shape[1], element_bytes), np.uint8)
    if inside.any():
        data[inside] = memory.read(array.base + (places[:, inside] * strides[:, None]).sum(axis=0), element_bytes)
    targets = address + np.arange(index.shape[1]) * element_bytes
    targets = targets if form is None else swizzled(targets, form)
    bytes_at = targets[:, None] + np.arange(element_bytes)
    unfenced = bytes_at[shared.unfenced[bytes_at]]
    if unfenced.size:
        raise LaneFault(f"an engine copies over shared byte {int(unfenced[0])}, written without a fence behind")
    shared.begin_copy(targets, element_bytes, np.zeros(len(targets), np.int64))
    return LandingCopy(bytes_at, data)
