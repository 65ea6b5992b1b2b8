"""load, store, debug_barrier: shapes of pointer, mask and value, implicit casts, refusals."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import tilefw.language as tl
from tilefw.api.errors import CompileError
from tilefw.frontend import block_pointers
from tilefw.frontend.arithmetic import stretched
from tilefw.frontend.block_pointers import BlockPointer
from tilefw.frontend.builder import Builder, element_of
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.casts import cast, constant, to_value
from tilefw.frontend.semantics import broadcast_shapes, not_constexpr, number_type
from tilefw.frontend.values import RuntimeValue, describe, is_number, named

meaning = Meanings()

_LOAD_CACHE = ("", ".ca", ".cg", ".cs", ".cv")
_STORE_CACHE = ("", ".wb", ".cg", ".cs", ".wt")
_EVICTION = ("", "evict_first", "evict_last")


@meaning("load")
def load(
    b: Builder,
    pointer: Any,
    mask: Any,
    other: Any,
    cache_modifier: Any,
    eviction_policy: Any,
    volatile: Any,
    boundary_check: Any,
    padding_option: Any,
) -> RuntimeValue:
    cache = _one_of("cache_modifier", cache_modifier, _LOAD_CACHE)
    eviction = _one_of("eviction_policy", eviction_policy, _EVICTION)
    if isinstance(volatile, RuntimeValue):
        raise not_constexpr("volatile")
    if isinstance(pointer, BlockPointer):
        hints = {"cache": cache, "eviction": eviction, "volatile": bool(volatile)}
        return block_pointers.load(b, pointer, mask, other, boundary_check, padding_option, hints)
    block_pointers.refuse_checks(boundary_check, padding_option)
    pointer = checked_pointer(pointer, "load")
    if other is not None and mask is None:
        raise CompileError(
            "`other` has no meaning without `mask`", "TFW0207", help="give a mask, or leave `other` out: every element is loaded"
        )
    shape = pointer.shape
    for name, operand in (("mask", mask), ("other", other)):
        if isinstance(operand, RuntimeValue) and operand.is_tile:
            shape = _broadcast_shape(name, shape, operand)
    pointer = stretched(b, pointer, shape)
    mask = None if mask is None else fitted_mask(b, mask, shape)
    other = None if other is None else fitted(b, other, element_of(pointer), shape)
    return b.load(pointer, mask, other, cache, eviction, bool(volatile))


@meaning("store")
def store(
    b: Builder, pointer: Any, value: Any, mask: Any, cache_modifier: Any, eviction_policy: Any, boundary_check: Any
) -> None:
    cache = _one_of("cache_modifier", cache_modifier, _STORE_CACHE)
    eviction = _one_of("eviction_policy", eviction_policy, _EVICTION)
    if isinstance(pointer, BlockPointer):
        if pointer.base.dtype.is_const():
            raise read_only(pointer.base)
        block_pointers.store(b, pointer, value, mask, boundary_check, {"cache": cache, "eviction": eviction})
        return
    block_pointers.refuse_checks(boundary_check, None)
    pointer = checked_pointer(pointer, "store")
    if pointer.dtype.is_const():
        raise read_only(pointer)
    shape = shape_of_access(pointer, (("value", value), ("mask", mask)))
    if not isinstance(value, RuntimeValue) and not is_number(value):
        raise CompileError(f"store needs a number or a tensor to store, not {describe(value)}", "TFW0201")
    value = fitted(b, value, element_of(pointer), shape)
    b.store(pointer, value, None if mask is None else fitted_mask(b, mask, shape), cache, eviction)


@meaning("debug_barrier")
def debug_barrier(b: Builder) -> None:
    b.barrier()


def read_only(pointer: RuntimeValue) -> CompileError:
    """The refusal to write through a const pointer."""
    return CompileError(
        f"Cannot store to a constant pointer, a {pointer.dtype}", "TFW0211",
        note="the pointer is marked const: the kernel only reads through it"
    )


def shape_of_access(pointer: RuntimeValue, operands: Sequence[tuple[str, Any]]) -> tuple[int, ...]:
    """The pointers' shape, to which the named operands broadcast. Raises CompileError (TFW0202, TFW0207)."""
    shape = pointer.shape
    for name, operand in operands:
        if isinstance(operand, RuntimeValue) and operand.is_tile:
            shape = _broadcast_shape(name, shape, operand)
    if shape != pointer.shape:
        raise CompileError(
            f"a value or mask of shape {list(shape)} does not fit pointers of shape {list(pointer.shape)}",
            "TFW0202",
            note="values and masks broadcast to the pointers, pointers never to the values",
        )
    return shape


def checked_pointer(pointer: Any, function: str) -> RuntimeValue:
    """A pointer or a tile of pointers. Raises CompileError (TFW0206) for anything else."""
    if not isinstance(pointer, RuntimeValue) or not pointer.dtype.is_ptr():
        raise CompileError(
            f"tl.{function} needs a pointer or a tile of pointers, not {named(pointer)}",
            "TFW0206",
            help="pointers are parameters that get an array; add offsets to one: `x_ptr + offsets`",
        )
    return pointer


def _broadcast_shape(name: str, shape: tuple[int, ...], operand: RuntimeValue) -> tuple[int, ...]:
    if not shape:
        raise CompileError(
            f"the pointer is a scalar, but `{name}` is {named(operand)}",
            "TFW0207",
            help="add a tile of offsets to the pointer",
        )
    return broadcast_shapes(shape, operand.shape)


def fitted_mask(b: Builder, mask: Any, shape: tuple[int, ...]) -> RuntimeValue:
    """An int1 of the pointers' shape. Raises CompileError (TFW0207) for another type."""
    is_mask = mask.dtype.is_bool() if isinstance(mask, RuntimeValue) else isinstance(mask, bool)
    if not is_mask:
        raise CompileError(
            f"a mask is int1 (the result of a comparison), not {describe(mask)}", "TFW0207", help="write `mask=(x != 0)`"
        )
    return constant(b, mask, tl.int1, shape) if isinstance(mask, bool) else stretched(b, to_value(b, mask), shape)


def fitted(b: Builder, value: Any, element: tl.dtype, shape: tuple[int, ...]) -> RuntimeValue:
    """A value in the element type and shape of the pointers; a number converts from its own type, as a cast would."""
    if isinstance(value, RuntimeValue):
        return stretched(b, cast(b, value, element), shape)
    if element.is_standard_floating() and is_number(value):
        # The cast of a float32 constant, folded: 1.1 stored as float64 is the float32 nearest to 1.1, as in Triton.
        return b.constant(_as_float32(value) if isinstance(value, float) else value, element, shape)
    if element.is_int() and not element.is_bool() and isinstance(value, int):
        return b.constant(value, element, shape)
    own = number_type(value) if is_number(value) else to_value(b, value).dtype
    return cast(b, constant(b, value, own, shape), element)


def _as_float32(number: float) -> float:
    return struct.unpack("f", struct.pack("f", number))[0] if number_type(number) == tl.float32 else number


def _one_of(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    value = "" if value is None else value
    if isinstance(value, RuntimeValue) or value not in allowed:
        raise CompileError(f"{name} is one of {', '.join(map(repr, allowed))}, not {describe(value)}", "TFW0212")
    return str(value)
