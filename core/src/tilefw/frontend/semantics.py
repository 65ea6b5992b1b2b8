"""The rules of types and shapes, as pure functions: promotion, the types of numbers, broadcasting, legal shapes.

They are Triton 3.9's. Promotion follows C for integers (rank and signedness) and PyTorch for Python numbers: a number whose
kind (bool < int < float) is not above the tile's takes the tile's type.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tilefw.language as tl
from tilefw.api.errors import CompileError

# The range in which a Python float is a float32; subnormals and what lies beyond are float64, zero, infinities and NaN float32.
_FLOAT32_MIN, _FLOAT32_MAX = 2.0**-126, (2 - 2.0**-23) * 2.0**127


def number_type(number: float | int | bool) -> tl.dtype:
    """The type of a Python number on its own: int1; the first of int32, uint32, int64, uint64 that holds it; float32, float64."""
    if isinstance(number, bool):
        return tl.int1
    if isinstance(number, float):
        fits = number == 0.0 or not math.isfinite(number) or _FLOAT32_MIN <= abs(number) <= _FLOAT32_MAX
        return tl.float32 if fits else tl.float64
    for type in (tl.int32, tl.uint32, tl.int64, tl.uint64):
        if type.get_int_min_value() <= number <= type.get_int_max_value():
            return type
    raise CompileError(f"the integer {number} does not fit 64 bits", "TFW0208")


def promote_integers(left: tl.dtype, right: tl.dtype) -> tl.dtype:
    """The usual arithmetic conversions of C: the wider of equal signedness; unsigned when it is not the narrower."""
    if left.int_signedness == right.int_signedness:
        return left if left.int_bitwidth > right.int_bitwidth else right
    unsigned, signed = (left, right) if left.is_int_unsigned() else (right, left)
    return unsigned if unsigned.int_bitwidth >= signed.int_bitwidth else signed


def promote(left: tl.dtype, left_is_number: bool, right: tl.dtype, right_is_number: bool, division: bool = False) -> tl.dtype:
    """The type in which two operands are computed; `division` stands for /, // and %."""
    if left_is_number != right_is_number:
        number, tile = (left, right) if left_is_number else (right, left)
        if number.kind().value <= tile.kind().value:
            left = right = tile
    if left.is_floating() or right.is_floating():
        return _promote_floats(left, right, division)
    if division and left.int_signedness != right.int_signedness:
        raise CompileError(
            f"Cannot use /, // or % with {left} and {right} because they have different signedness",
            "TFW0213",
            note="one of them would be read with the wrong sign",
            help="cast one to the other's type, e.g. `y.to(tl.int32)`",
        )
    return promote_integers(left, right)


def _promote_floats(left: tl.dtype, right: tl.dtype, division: bool) -> tl.dtype:
    pair = (left, right)
    if tl.float64 in pair:
        return tl.float64
    if division or tl.float32 in pair:
        return tl.float32
    if tl.float16 in pair:
        return tl.float16
    if tl.bfloat16 in pair:
        return tl.bfloat16 if left == right else tl.float32
    if left.is_narrow_float() and right.is_narrow_float():
        return left if left == right else tl.float16
    raise CompileError(
        f"{left} and {right} have no common type",
        "TFW0201",
        note="floats below 16 bits do not promote with integers",
        help="cast them first, e.g. `x.to(tl.float32)`",
    )


def broadcast_shapes(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    """The common shape of two tiles: leading axes of extent 1 are added, extents of 1 stretch."""
    rank = max(len(left), len(right))
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in (left, right)]
    common: list[int] = []
    for axis, (a, b) in enumerate(zip(*padded, strict=True)):
        if a != b and 1 not in (a, b):
            raise CompileError(
                f"shapes {list(left)} and {list(right)} do not broadcast",
                "TFW0202",
                note=f"axis {axis} has extent {a} on the left and {b} on the right; they must be equal, or one of them 1",
                help="insert axes with `x[:, None]` or `x[None, :]` so that equal extents face each other",
            )
        common.append(b if a == 1 else a)
    _check_count(common)
    return tuple(common)


def checked_shape(shape: Any) -> tuple[int, ...]:
    """A shape given by the kernel: compile-time powers of two, at most TRITON_MAX_TENSOR_NUMEL elements."""
    if not isinstance(shape, tuple):
        raise CompileError(f"a shape is a tuple of constexpr ints, not {_shown(shape)}", "TFW0204")
    for axis, extent in enumerate(shape):
        if isinstance(extent, tl.tensor):
            raise not_constexpr(f"extent {axis} of a shape")
        if not isinstance(extent, int):
            raise CompileError(f"extent {axis} of a shape is {_shown(extent)}, not an int", "TFW0204")
        if extent <= 0 or extent & (extent - 1):
            raise CompileError(
                f"extent {axis} of the shape {list(shape)} is {extent}, which is not a power of two",
                "TFW0203",
                help=f"use {1 << max(0, extent - 1).bit_length()} and mask the elements beyond {extent}",
            )
    _check_count(shape)
    return tuple(int(extent) for extent in shape)


def _check_count(shape: Sequence[int]) -> None:
    if (count := math.prod(shape)) > tl.TRITON_MAX_TENSOR_NUMEL:
        raise CompileError(
            f"a tile of shape {list(shape)} has {count} elements; at most {tl.TRITON_MAX_TENSOR_NUMEL} are allowed", "TFW0204"
        )


def checked_axis(axis: Any, rank: int) -> int:
    """An axis counted from the end if negative, made non-negative; it must be below `rank`."""
    if isinstance(axis, tl.tensor):
        raise not_constexpr("an axis")
    if not isinstance(axis, int) or not -rank <= axis < rank:
        words = f"there is no axis {_shown(axis)}; axes go from {-rank} to {rank - 1}"
        raise CompileError(words, "TFW0212") from ValueError(f"invalid axis {_shown(axis)}")  # Triton's, which programs read
    return axis % rank


def checked_flag(flag: Any, what: str) -> bool:
    """A choice that is made at compile time."""
    if isinstance(flag, tl.tensor):
        raise not_constexpr(what)
    return bool(flag)


def checked_number(number: float | int | bool, element: tl.dtype) -> None:
    """Raise unless a number met by a tile of `element` in arithmetic keeps its value there."""
    if not element.is_int():
        return
    if not element.get_int_min_value() <= number <= element.get_int_max_value():
        raise CompileError(
            f"{number} is out of range for {element}",
            "TFW0208",
            note=f"a Python number takes the type of the tile that it is combined with; {element} holds "
            f"{element.get_int_min_value()} to {element.get_int_max_value()}",
            help="cast the tile to a wider type first",
        )


def not_constexpr(what: str) -> CompileError:
    return CompileError(
        f"{what} must be known at compile time, but is a run-time value",
        "TFW0106",
        note="a plain assignment of a number makes a run-time scalar, and an unannotated parameter is one",
        help="annotate it: `BLOCK: tl.constexpr` in the parameters, `x: tl.constexpr = …` for a local",
    )


def _shown(value: object) -> str:
    return str(value) if isinstance(value, tl.tensor) else repr(value)
