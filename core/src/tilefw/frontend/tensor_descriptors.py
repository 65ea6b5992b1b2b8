"""Tensor descriptors: a base, the array's shape and strides, the extents of a block and what lies out of bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tilefw.language as tl
from tilefw.api.errors import CompileError
from tilefw.frontend.builder import Builder, element_of
from tilefw.frontend.casts import cast
from tilefw.frontend.strided_blocks import checked_base, checked_block, checked_padding, listed, scalars
from tilefw.frontend.values import CompositeValue, RuntimeValue, named, tile_type

CODE = "TFW0223"
_MOST_AXES = 5
_ALIGNMENT = 16  # bytes, of the base, the strides and the least row of a block
_METHODS = (
    "load", "store", "atomic_add", "atomic_min", "atomic_max", "atomic_and", "atomic_or", "atomic_xor", "gather", "scatter",
)


@dataclass(frozen=True, slots=True, eq=False)
class DescriptorValue(CompositeValue, tl.tensor_descriptor):
    """An array whose element 0 is at `base`, rows along the last axis; `block` is accessed at once.

    `leading` are the strides of all axes but the last, which is 1. `rounds` says that loads round float32 to 10 bits of mantissa.
    """

    base: RuntimeValue
    extents: tuple[RuntimeValue, ...]
    leading: tuple[RuntimeValue, ...]
    block: tuple[int, ...]
    padding: str
    rounds: bool = False

    @property
    def parts(self) -> tuple[Any, ...]:
        return self.base, self.extents, self.leading

    @property
    def kind(self) -> object:
        return self.block, self.padding, self.rounds

    def with_parts(self, parts: tuple[Any, ...]) -> DescriptorValue:
        base, extents, leading = parts
        return replace(self, base=base, extents=extents, leading=leading)

    def attributes(self) -> Mapping[str, Any]:
        block_type = tile_type(element_of(self.base), self.block)
        types = [tuple(value.dtype for value in values) for values in (self.extents, self.leading)]
        assert isinstance(block_type, tl.block_type)
        return {
            "dtype": element_of(self.base), "shape": self.extents, "strides": (*self.leading, 1), "block_shape": self.block,
            "block_type": block_type, "type": tl.tensor_descriptor_type(block_type, *types),
            **{name: getattr(tl.tensor_descriptor, name) for name in _METHODS},
        }

    def all_strides(self, b: Builder) -> tuple[RuntimeValue, ...]:
        """The strides of all axes as run-time values."""
        return (*self.leading, b.constant(1, tl.int64))

    def __str__(self) -> str:
        return f"tensor descriptor of {element_of(self.base)}{list(self.block)}"


def made(
    b: Builder, base: Any, shape: Any, strides: Any, block_shape: Any, padding_option: Any, *, rounds: bool = False
) -> DescriptorValue:
    """A descriptor. Raises CompileError (TFW0223, TFW0203, TFW0204) for what Triton refuses as well."""
    base = checked_base(base, "make_tensor_descriptor", CODE)
    shape, strides = listed(shape), listed(strides)
    if not 1 <= len(shape) <= _MOST_AXES:
        raise CompileError(f"a tensor descriptor has 1 to {_MOST_AXES} axes, not {len(shape)}", CODE)
    block = checked_block(block_shape, "make_tensor_descriptor", CODE, (("shape", shape), ("strides", strides)))
    element = element_of(base)
    size = element.primitive_bitwidth // 8
    if block[-1] * size < _ALIGNMENT:
        raise CompileError(
            f"the last axis of the block has {block[-1]} elements of {size} bytes, fewer than {_ALIGNMENT} bytes", CODE,
            help=f"make it {_ALIGNMENT // size} elements or more" if size else "descriptors have no elements below a byte",
        ) from ValueError(f"Descriptor block shape must have at least {_ALIGNMENT} bytes in the last dimension")  # Triton's
    if isinstance(strides[-1], RuntimeValue) or strides[-1] != 1:
        raise CompileError(
            f"the last stride of a tensor descriptor is the compile-time number 1, not {named(strides[-1])}", CODE,
            help="write it as `strides=[N, 1]`; a block pointer or pointers take any strides",
        )
    _check_alignment(strides[:-1], size)
    extents = scalars(b, shape, "shape", CODE, wide=False)
    leading = tuple(cast(b, stride, tl.int64) for stride in scalars(b, strides[:-1], "strides", CODE, wide=True))
    return DescriptorValue(base, extents, leading, block, checked_padding(padding_option, element, CODE), rounds)


def checked_descriptor(value: Any, function: str) -> DescriptorValue:
    """A descriptor. Raises CompileError (TFW0223) for anything else."""
    if not isinstance(value, DescriptorValue):
        raise CompileError(f"tl.{function} needs a tensor descriptor, not {named(value)}", CODE)
    return value


def checked_offsets(b: Builder, descriptor: DescriptorValue, offsets: Any) -> tuple[RuntimeValue, ...]:
    """One 32-bit offset an axis. Raises CompileError (TFW0223)."""
    offsets = listed(offsets)
    if len(offsets) != len(descriptor.block):
        raise CompileError(f"a descriptor of {len(descriptor.block)} axes takes as many offsets, not {len(offsets)}", CODE)
    return scalars(b, offsets, "offsets", CODE, wide=False)


def _check_alignment(strides: Sequence[Any], size: int) -> None:
    for axis, stride in enumerate(strides):
        if isinstance(stride, int) and stride * size % _ALIGNMENT:
            raise CompileError(
                f"strides[{axis}] of a tensor descriptor is {stride} elements, {stride * size} bytes, and not a multiple of "
                f"{_ALIGNMENT} bytes", CODE, help="pad the rows of the array, or use a block pointer",
            )
