"""make_tensor_descriptor, and the methods of a descriptor: load, store, atomics, gather, scatter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tilefw.language as tl
from tilefw.api.errors import CompileError
from tilefw.frontend.arithmetic import BINARY, compare, offset, stretched
from tilefw.frontend.builder import Builder, element_of
from tilefw.frontend.builtins.atomics import kind_of
from tilefw.frontend.builtins.memory import read_only
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.casts import bitcast, cast
from tilefw.frontend.strided_blocks import fill, matching_value, scalars
from tilefw.frontend.tensor_descriptors import CODE, DescriptorValue, checked_descriptor, checked_offsets, made
from tilefw.frontend.values import RuntimeValue, named, tile_type

meaning = Meanings()

_WORDS = (tl.uint32, tl.int32, tl.uint64, tl.int64)
# Triton's element types of each atomic; its 16-bit minima and maxima need a unit that no target has.
_ATOMICS = {
    "atomic_add": (tl.uint32, tl.int32, tl.uint64, tl.float32, tl.float16, tl.bfloat16),
    **dict.fromkeys(("atomic_min", "atomic_max", "atomic_and", "atomic_or", "atomic_xor"), _WORDS),
}
_LEAST_ROWS, _LEAST_ROW_BITS = 8, 256


@meaning("make_tensor_descriptor")
def make_tensor_descriptor(b: Builder, base: Any, shape: Any, strides: Any, block_shape: Any, padding_option: Any) -> Any:
    return made(b, base, shape, strides, block_shape, padding_option)


@meaning("tensor_descriptor.load")
def load(b: Builder, descriptor: Any, offsets: Any) -> RuntimeValue:
    descriptor = checked_descriptor(descriptor, "tensor_descriptor.load")
    begin, element = checked_offsets(b, descriptor, offsets), element_of(descriptor.base)
    other = fill(b, descriptor.padding, element, descriptor.block)
    loaded = b.load_block(descriptor.base, begin, descriptor.all_strides(b), descriptor.extents, descriptor.block, other)
    return _rounded(b, descriptor, loaded)


@meaning("load_tensor_descriptor")
def load_tensor_descriptor(b: Builder, desc: Any, offsets: Any) -> RuntimeValue:
    return load(b, desc, offsets)


@meaning("tensor_descriptor.store")
def store(b: Builder, descriptor: Any, offsets: Any, value: Any) -> None:
    descriptor = _writable(descriptor, "store")
    begin = checked_offsets(b, descriptor, offsets)
    value = _tile(b, descriptor, value, descriptor.block)
    b.store_block(descriptor.base, value, begin, descriptor.all_strides(b), descriptor.extents)


@meaning("store_tensor_descriptor")
def store_tensor_descriptor(b: Builder, desc: Any, offsets: Any, value: Any) -> None:
    store(b, desc, offsets, value)


def _atomic(function: str) -> Callable[..., None]:
    def build(b: Builder, descriptor: Any, offsets: Any, value: Any) -> None:
        descriptor = _writable(descriptor, function)
        begin = checked_offsets(b, descriptor, offsets)
        element = element_of(descriptor.base)
        if element not in _ATOMICS[function]:
            served = ", ".join(str(served) for served in _ATOMICS[function])
            raise CompileError(f"{function} of a descriptor is not there for {element}", CODE, note=f"it is there for {served}")
        value = _tile(b, descriptor, value, descriptor.block)
        indices = [BINARY["+"](b, start, b.iota(0, extent)) for start, extent in zip(begin, descriptor.block, strict=True)]
        pointers, inside = _elements(b, descriptor, indices)
        b.atomic_rmw(kind_of(function, element), pointers, value, inside, "relaxed", "device")

    return build


for _name in _ATOMICS:
    meaning(f"tensor_descriptor.{_name}")(_atomic(_name))


@meaning("tensor_descriptor.gather")
def gather(b: Builder, descriptor: Any, x_offsets: Any, y_offset: Any) -> RuntimeValue:
    descriptor = checked_descriptor(descriptor, "tensor_descriptor.gather")
    pointers, inside = _rows(b, descriptor, x_offsets, y_offset, "gather")
    other = fill(b, descriptor.padding, element_of(descriptor.base), pointers.shape)
    return _rounded(b, descriptor, b.load(pointers, inside, other, "", "", False))


@meaning("tensor_descriptor.scatter")
def scatter(b: Builder, descriptor: Any, value: Any, x_offsets: Any, y_offset: Any) -> None:
    descriptor = _writable(descriptor, "scatter")
    pointers, inside = _rows(b, descriptor, x_offsets, y_offset, "scatter")
    b.store(pointers, _tile(b, descriptor, value, pointers.shape), inside, "", "")


def _rows(
    b: Builder, descriptor: DescriptorValue, x_offsets: Any, y_offset: Any, function: str
) -> tuple[RuntimeValue, RuntimeValue]:
    """Pointers to whole rows of a descriptor's block, and which of them are in bounds. Raises CompileError (TFW0223)."""
    if len(descriptor.block) != 2 or descriptor.block[0] != 1:
        raise CompileError(
            f"{function} needs a descriptor with blocks of one row, not {list(descriptor.block)}", CODE,
            help="make it with block_shape=[1, N]",
        )
    if not isinstance(x_offsets, RuntimeValue) or len(x_offsets.shape) != 1 or x_offsets.dtype not in (tl.int16, tl.int32):
        raise CompileError(f"the rows of {function} are a tile of int16 or int32 with one axis, not {named(x_offsets)}", CODE)
    if x_offsets.numel < _LEAST_ROWS:
        raise CompileError(f"{function} takes {_LEAST_ROWS} rows or more, not {x_offsets.numel}", CODE)
    least = _LEAST_ROW_BITS // element_of(descriptor.base).primitive_bitwidth
    if descriptor.block[1] < least:
        raise CompileError(
            f"{function} of {element_of(descriptor.base)} takes rows of {least} elements or more, not {descriptor.block[1]}", CODE
        )
    (begin,) = scalars(b, (y_offset,), "y_offset", CODE, wide=False)
    columns = BINARY["+"](b, begin, b.iota(0, descriptor.block[1]))
    return _elements(b, descriptor, [cast(b, x_offsets, tl.int32), columns])


def _elements(b: Builder, descriptor: DescriptorValue, indices: list[RuntimeValue]) -> tuple[RuntimeValue, RuntimeValue]:
    """Pointers to the elements at all combinations of the indices, one tile an axis, and which are in bounds."""
    shape = tuple(index.numel for index in indices)
    pointers, inside = descriptor.base, None
    for axis, (index, stride, extent) in enumerate(zip(indices, descriptor.all_strides(b), descriptor.extents, strict=True)):
        for other in range(len(shape)):
            index = index if other == axis else b.expand_dims(index, other)
        checked = BINARY["&"](b, compare(b, ">=", index, 0), compare(b, "<", index, extent))
        inside = checked if inside is None else BINARY["&"](b, inside, checked)
        last = axis == len(shape) - 1
        pointers = offset(b, pointers, index if last else BINARY["*"](b, cast(b, index, tl.int64), stride))
    assert inside is not None
    return stretched(b, pointers, shape), stretched(b, inside, shape)


def _writable(descriptor: Any, function: str) -> DescriptorValue:
    descriptor = checked_descriptor(descriptor, f"tensor_descriptor.{function}")
    if descriptor.base.dtype.is_const():
        raise read_only(descriptor.base)
    return descriptor


def _tile(b: Builder, descriptor: DescriptorValue, value: Any, shape: tuple[int, ...]) -> RuntimeValue:
    """A tile of the accessed elements' shape, cast to their type. Raises CompileError (TFW0223) for another shape."""
    if not isinstance(value, RuntimeValue) or value.shape != shape:
        raise CompileError(
            f"the value is a tile of shape {list(shape)}, not {named(value)}", CODE,
            help=f"make it one: `tl.full({list(shape)}, …)`, `tl.broadcast_to(value, …)`, `tl.reshape(value, …)`",
        )
    return matching_value(b, value, descriptor.base, shape, CODE, casts=True)


def _rounded(b: Builder, descriptor: DescriptorValue, value: RuntimeValue) -> RuntimeValue:
    """Loaded float32 rounded to the nearest number of 10 bits of mantissa, ties to even, where the host asked for it."""
    if not descriptor.rounds:
        return value
    bits = bitcast(b, value, tl.uint32)
    odd = BINARY["&"](b, BINARY[">>"](b, bits, 13), 1)
    nearest = BINARY["&"](b, BINARY["+"](b, bits, BINARY["+"](b, odd, 0xFFF)), 0xFFFFE000)
    finite = compare(b, "!=", BINARY["&"](b, bits, 0x7F800000), 0x7F800000)
    return bitcast(b, b.row("select", finite, nearest, bits, type=tile_type(tl.uint32, value.shape)), tl.float32)
