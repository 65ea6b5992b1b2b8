"""Conversions between types, as Triton defines them, in the rows of the elementwise table; and numbers as constants."""

from __future__ import annotations

from typing import Any

import tilefw.language as tl
from tilefw.api.errors import CompileError
from tilefw.frontend.builder import Builder
from tilefw.frontend.semantics import number_type
from tilefw.frontend.values import RuntimeValue, describe, is_number, lowered


def constant(b: Builder, number: float | int | bool, element: tl.dtype, shape: tuple[int, ...] = ()) -> RuntimeValue:
    """A number as `element`: integers wrap to their width, floats round to nearest even; narrow floats as `castf` does."""
    if element.is_narrow_float():
        return b.cast("castf", b.constant(number, tl.float32, shape), element)
    if element.is_int():
        number = _whole(number, element)
    elif not element.is_floating():
        raise CompileError(f"{number!r} cannot be a constant of type {element}", "TFW0205")
    return b.constant(number, element, shape)


def _whole(number: float | int | bool, element: tl.dtype) -> int:
    if isinstance(number, float) and number != 0.0:
        raise CompileError(
            f"{number} is not an integer, but the type is {element}", "TFW0208", help="use a float type, or int(…) on the number"
        )
    low, high = (0, 2**64) if element.is_int_unsigned() and not element.is_bool() else (-(2**63), 2**63)
    if not low <= number < high:
        raise CompileError(f"{number} cannot be written as {element}", "TFW0208")
    return int(number)


def to_value(b: Builder, value: Any) -> RuntimeValue:
    """A run-time value: as it is, or a Python number as a constant of its own type."""
    if isinstance(value, RuntimeValue):
        return value
    if is_number(value):
        return constant(b, value, number_type(value))
    raise CompileError(f"a number or a tensor is needed here, not {describe(value)}", "TFW0201")


def cast(b: Builder, value: RuntimeValue, target: tl.dtype, rounding: Any = None) -> RuntimeValue:
    """`value` converted to the element type `target`, keeping its shape."""
    source, target = value.dtype, _element(target)
    narrows = source.is_floating() and target.is_floating() and target.primitive_bitwidth < source.primitive_bitwidth
    if rounding not in (None, "rtne", "rtz"):
        raise CompileError(f"fp_downcast_rounding is 'rtne' or 'rtz', not {rounding!r}", "TFW0212")
    if source == target:
        return value
    if rounding is not None and not narrows:
        raise CompileError(
            f"fp_downcast_rounding={rounding!r} is for float to narrower float only, not {source} to {target}", "TFW0205"
        )
    if source.is_ptr() or target.is_ptr():
        return _cast_pointer(b, value, target)
    if source.is_floating() and target.is_floating():
        return b.cast("castf", value, target, rounding)
    if (source.is_narrow_float() or target.is_narrow_float()) and source.is_int() != target.is_int():
        raise _impossible(source, target, f"cast through float32: `x.to(tl.float32).to(tl.{target.codegen_name()})`")
    if source in (tl.float16, tl.bfloat16):
        value, source = b.cast("castf", value, tl.float32), tl.float32
    if target.is_bool():
        zero = constant(b, 0, source, value.shape)
        return b.compare("nef" if source.is_floating() else "nei", value, zero)
    if source.is_int() and target.is_int():
        return _cast_integer(b, value, target)
    if source.is_int():
        return b.cast("s2f" if source.is_int_signed() else "u2f", value, target)
    return b.cast("f2s" if target.is_int_signed() else "f2u", value, target)


def bitcast(b: Builder, value: RuntimeValue, target: tl.dtype) -> RuntimeValue:
    """The bits of `value` read as `target` of the same width; pointers convert as in `cast`."""
    source, target = value.dtype, _element(target)
    if source == target:
        return value
    if source.is_ptr() or target.is_ptr():
        return cast(b, value, target)
    if source.primitive_bitwidth != target.primitive_bitwidth:
        raise CompileError(
            f"{source} has {source.primitive_bitwidth} bits and {target} {target.primitive_bitwidth}: bitcast needs equal widths",
            "TFW0205",
        )
    if lowered(source) == lowered(target):
        return b.retyped(value, target)
    return b.cast("bitcast", value, target)


def _cast_integer(b: Builder, value: RuntimeValue, target: tl.dtype) -> RuntimeValue:
    source = value.dtype
    if source.int_bitwidth == target.int_bitwidth:
        return b.retyped(value, target)
    if source.int_bitwidth > target.int_bitwidth:
        return b.cast("trunci", value, target)
    return b.cast("exts" if source.is_int_signed() else "extu", value, target)


def _cast_pointer(b: Builder, value: RuntimeValue, target: tl.dtype) -> RuntimeValue:
    source = value.dtype
    if source.is_ptr() and target.is_ptr():
        return b.retyped(value, target) if lowered(source) == lowered(target) else b.cast("bitcast", value, target)
    if target.is_ptr() and source.is_int():
        return b.cast("int_to_ptr", cast(b, value, tl.int64), target)
    if source.is_ptr() and target.is_int() and target.int_bitwidth == 64:
        return b.cast("ptr_to_int", value, target)
    if source.is_ptr() and target.is_bool():
        return cast(b, b.cast("ptr_to_int", value, tl.int64), target)
    raise _impossible(source, target, "a pointer converts to int64, uint64, int1 and other pointers")


def _impossible(source: tl.dtype, target: tl.dtype, help: str) -> CompileError:
    return CompileError(f"{source} cannot be cast to {target}", "TFW0205", help=help)


def _element(target: Any) -> tl.dtype:
    if not isinstance(target, tl.dtype):
        raise CompileError(
            f"a cast needs an element type such as tl.float32, not {describe(target)}",
            "TFW0205",
            help="for a pointer's element type write `ptr.dtype.element_ty`",
        )
    return target.scalar
