"""Blocks of strided arrays, as block pointers and tensor descriptors name them: their scalars, checked, and accesses to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tilefw.language as tl
from tilefw.api.errors import CompileError
from tilefw.frontend.builder import Builder, element_of
from tilefw.frontend.casts import cast, constant
from tilefw.frontend.semantics import checked_shape
from tilefw.frontend.values import RuntimeValue, named

PADDINGS = ("", "zero", "nan")


def listed(value: Any) -> tuple[Any, ...]:
    """A tuple as it is; a value that is none stands for a tuple of one, as in Triton."""
    return value if isinstance(value, tuple) else (value,)


def checked_base(base: Any, function: str, code: str) -> RuntimeValue:
    """The scalar pointer to element 0 of an array. Raises CompileError (`code`) for anything else."""
    if not isinstance(base, RuntimeValue) or not base.dtype.is_ptr() or base.is_tile:
        raise CompileError(
            f"the base of tl.{function} is a pointer to the first element, not {named(base)}", code,
            help="give the parameter that got the array; a scalar offset may be added to it",
        )
    return base


def checked_block(block_shape: Any, function: str, code: str, ranks: Sequence[tuple[str, tuple[Any, ...]]]) -> tuple[int, ...]:
    """The block's extents, with as many axes as each of the named tuples has. Raises CompileError (`code`, TFW0203, TFW0204)."""
    block = checked_shape(listed(block_shape))
    if not block:
        raise CompileError(
            f"tl.{function} got a block_shape of no axes", code, help="one element is read and written through a pointer to it"
        )
    for name, items in ranks:
        if len(items) != len(block):
            raise CompileError(
                f"tl.{function} got a block_shape of {len(block)} axes and {name} of {len(items)}", code,
                help="shape, strides and the rest say one thing of each axis of the array, in one order",
            )
    return block


def scalars(b: Builder, values: Sequence[Any], name: str, code: str, *, wide: bool) -> tuple[RuntimeValue, ...]:
    """Signed integer scalars of 32 bits, or of 64 where they need it and may be `wide`. Raises CompileError (`code`)."""
    return tuple(_scalar(b, value, f"{name}[{axis}]", code, wide) for axis, value in enumerate(values))


def _scalar(b: Builder, value: Any, name: str, code: str, wide: bool) -> RuntimeValue:
    if isinstance(value, int):
        narrow = -(2**31) <= value < 2**31
        if not narrow and not (wide and -(2**63) <= value < 2**63):
            raise CompileError(f"{name} is {value}, which does not fit {64 if wide else 32} bits", code)
        return constant(b, int(value), tl.int32 if narrow else tl.int64)
    if not isinstance(value, RuntimeValue) or value.numel != 1 or not value.dtype.is_int():
        raise CompileError(f"{name} is an integer scalar, not {named(value)}", code)
    value = b.reshape(value, ()) if value.is_tile else value
    bits = value.dtype.int_bitwidth
    if bits == 64 and not wide:
        raise CompileError(
            f"{name} is {named(value)}, and offsets of blocks have 32 bits", code,
            help="write `.to(tl.int32)`, or add the distance to the base: `ptr + batch * stride`",
        )
    # An unsigned 32-bit extent or stride keeps its value; an offset is read as signed, as in Triton.
    return cast(b, value, tl.int64 if bits == 64 or (wide and bits == 32 and value.dtype.is_int_unsigned()) else tl.int32)


def checked_padding(padding: Any, element: tl.dtype, code: str) -> str:
    """What elements out of bounds are: `zero` or `nan`; `zero` where nothing is said. Raises CompileError (`code`)."""
    padding = "" if padding is None else padding
    if isinstance(padding, RuntimeValue) or padding not in PADDINGS:
        raise CompileError(f"padding_option is one of {', '.join(map(repr, PADDINGS))}, not {padding!r}", code)
    if padding == "nan" and not element.is_floating():
        raise CompileError(f"padding_option='nan' is for floats: {element} has no NaN", code, help='use padding_option="zero"')
    return padding or "zero"


def fill(b: Builder, padding: str, element: tl.dtype, shape: tuple[int, ...]) -> RuntimeValue:
    """A tile of what elements out of bounds are; a null pointer stands for zero."""
    if element.is_ptr():
        return cast(b, constant(b, 0, tl.int64, shape), element)
    return constant(b, float("nan") if padding == "nan" else 0, element, shape)


def matching_value(
    b: Builder, value: Any, base: RuntimeValue, block: tuple[int, ...], code: str, *, casts: bool
) -> RuntimeValue:
    """What is stored to a block: a tile of its shape, or a scalar for every element.

    A run-time value of another element type is cast where `casts` says so, and refused else. Raises CompileError (`code`).
    """
    element = element_of(base)
    if isinstance(value, bool | int | float):
        return constant(b, value, element, block)
    if not isinstance(value, RuntimeValue):
        raise CompileError(f"a store needs a number or a tensor to store, not {named(value)}", "TFW0201")
    if value.is_tile and value.shape != block:
        raise CompileError(
            f"a value of shape {list(value.shape)} does not fit a block of shape {list(block)}", code,
            help="bring it to the block's shape first: `tl.broadcast_to(value, …)`",
        )
    if value.dtype != element and not casts:
        raise CompileError(
            f"{named(value)} cannot be stored through a block pointer to {element}", code,
            help="cast it: `value.to(pointer.dtype.element_ty)`",
        )
    value = cast(b, value, element)
    return value if value.is_tile else b.splat(value, block)
