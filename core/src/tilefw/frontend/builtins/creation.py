"""program_id, num_programs, arange, full, zeros, zeros_like, to_tensor."""

from __future__ import annotations

from typing import Any

import tilefw.language as tl
from tilefw.api.errors import CompileError
from tilefw.frontend.builder import Builder, power_of_two
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.casts import cast, constant, to_value
from tilefw.frontend.semantics import checked_shape, not_constexpr
from tilefw.frontend.values import RuntimeValue, describe, is_number, named

meaning = Meanings()


@meaning("program_id")
def program_id(b: Builder, axis: Any) -> RuntimeValue:
    return b.program_id(_grid_axis(axis))


@meaning("num_programs")
def num_programs(b: Builder, axis: Any) -> RuntimeValue:
    return b.num_programs(_grid_axis(axis))


def _grid_axis(axis: Any) -> int:
    if isinstance(axis, RuntimeValue):
        raise not_constexpr("the axis of a grid")
    if axis not in (0, 1, 2):
        cause = ValueError(f"program_id axis must be 0, 1, or 2 but got {axis}")  # Triton's, which programs read
        raise CompileError(f"a grid has the axes 0, 1 and 2; there is no axis {axis!r}", "TFW0212") from cause
    return int(axis)


@meaning("arange")
def arange(b: Builder, start: Any, end: Any) -> RuntimeValue:
    for name, bound in (("start", start), ("end", end)):
        if isinstance(bound, RuntimeValue):
            raise not_constexpr(f"arange's {name}")
        if not isinstance(bound, int):
            raise CompileError(f"arange's {name} must be an int, not {describe(bound)}", "TFW0212")
        if not -(2**31) <= bound < 2**31:
            raise CompileError(f"arange's {name} {bound} does not fit int32", "TFW0208")
    length = end - start
    if length <= 0:
        raise CompileError(f"arange({start}, {end}) is empty: its end must be above its start", "TFW0212")
    if not power_of_two(length):
        raise CompileError(
            f"arange({start}, {end}) has {length} elements, which is not a power of two",
            "TFW0203",
            help=f"use arange({start}, {start + (1 << (length - 1).bit_length())}) and mask the elements beyond {end}",
        )
    checked_shape((length,))
    return b.iota(int(start), int(end))


@meaning("full")
def full(b: Builder, shape: Any, value: Any, dtype: Any) -> RuntimeValue:
    extents = checked_shape(shape if isinstance(shape, tuple) else (shape,))
    if not isinstance(dtype, tl.dtype):
        raise CompileError(f"full needs a dtype such as tl.float32, not {describe(dtype)}", "TFW0205")
    if is_number(value):
        return constant(b, value, dtype, extents)
    scalar = cast(b, _single(b, to_value(b, value)), dtype)
    return b.splat(scalar, extents) if extents else scalar


def _single(b: Builder, value: RuntimeValue) -> RuntimeValue:
    if value.numel != 1:
        raise CompileError(f"full takes a number or a scalar, not {named(value)}", "TFW0202")
    return b.reshape(value, ()) if value.is_tile else value


@meaning("zeros")
def zeros(b: Builder, shape: Any, dtype: Any) -> RuntimeValue:
    return full(b, shape, 0, dtype)


@meaning("zeros_like")
def zeros_like(b: Builder, input: Any) -> RuntimeValue:
    value = to_value(b, input)
    return constant(b, 0, value.dtype, value.shape)


@meaning("to_tensor")
def to_tensor(b: Builder, x: Any) -> RuntimeValue:
    return to_value(b, x)
