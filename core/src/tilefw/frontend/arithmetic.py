"""Operators on run-time values: promotion, implicit casts, broadcasting, then one row of the elementwise table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tilefw.language as tl
from tilefw.api.errors import CompileError, UnsupportedError
from tilefw.frontend.builder import Builder
from tilefw.frontend.casts import bitcast, cast, constant, to_value
from tilefw.frontend.semantics import broadcast_shapes, checked_number, number_type, promote
from tilefw.frontend.values import RuntimeValue, describe, is_number


def element_type(value: Any) -> tl.dtype:
    """The element type of an operand: its own, or that of a Python number."""
    if isinstance(value, RuntimeValue):
        return value.dtype
    if is_number(value):
        return number_type(value)
    raise CompileError(f"arithmetic needs numbers and tensors, not {describe(value)}", "TFW0201")


def promoted(b: Builder, left: Any, right: Any, division: bool = False) -> tuple[RuntimeValue, RuntimeValue]:
    """Both operands in their common type and shape; pointers are refused."""
    types = element_type(left), element_type(right)
    if types[0].is_ptr() or types[1].is_ptr():
        raise _pointer_mistake(*types)
    common = promote(types[0], is_number(left), types[1], is_number(right), division)
    first, second = in_type(b, common, left, right)
    return first, second


def in_type(b: Builder, element: tl.dtype, *operands: Any) -> tuple[RuntimeValue, ...]:
    """Operands cast to `element` and broadcast against each other; numbers become constants of the common shape at once."""
    tiles = [cast(b, operand, element) if isinstance(operand, RuntimeValue) else operand for operand in operands]
    shape: tuple[int, ...] = ()
    for tile in tiles:
        if isinstance(tile, RuntimeValue):
            shape = broadcast_shapes(shape, tile.shape) if shape and tile.shape else shape or tile.shape
    for tile in tiles:
        if not isinstance(tile, RuntimeValue):
            checked_number(tile, element)
    return tuple(
        stretched(b, tile, shape) if isinstance(tile, RuntimeValue) else constant(b, tile, element, shape) for tile in tiles
    )


def together(b: Builder, values: Sequence[RuntimeValue]) -> list[RuntimeValue]:
    """Values broadcast to one shape."""
    shape: tuple[int, ...] = ()
    for value in values:
        shape = broadcast_shapes(shape, value.shape)
    return [stretched(b, value, shape) for value in values]


def stretched(b: Builder, value: RuntimeValue, shape: tuple[int, ...]) -> RuntimeValue:
    """A value brought to a shape with which it broadcasts."""
    if value.shape == shape:
        return value
    if not value.shape:
        return b.splat(value, shape)
    while len(value.shape) < len(shape):
        value = b.expand_dims(value, 0)
    return value if value.shape == shape else b.broadcast(value, shape)


def _pointer_mistake(left: tl.dtype, right: tl.dtype) -> CompileError:
    return CompileError(
        f"this operator does not take {left} and {right}",
        "TFW0201",
        note="a pointer takes `+` and `-` with an integer offset, counted in elements; nothing else",
        help="cast to tl.int64 to compute with an address",
    )


def refuse_narrow(element: tl.dtype) -> None:
    """Floats below 16 bits are for storage and casts; no target has arithmetic on them."""
    if element.is_narrow_float():
        raise UnsupportedError(
            f"there is no arithmetic on {element}", "TFW0210", help="cast first: `x.to(tl.float32)`, and back when storing"
        )


def by_type(float_row: str | None, signed_row: str, unsigned_row: str | None = None) -> Callable[[tl.dtype], str]:
    """A choice of row by element type; raises where floats have none."""

    def row(element: tl.dtype) -> str:
        refuse_narrow(element)
        if element.is_floating():
            if float_row is None:
                raise CompileError(f"invalid operands of type {element}: this operator takes integers", "TFW0201")
            return float_row
        return signed_row if element.is_int_signed() or unsigned_row is None else unsigned_row

    return row


_ADD, _SUB, _MUL = by_type("addf", "addi"), by_type("subf", "subi"), by_type("mulf", "muli")
_FLOORDIV, _MOD = by_type(None, "divs", "divu"), by_type("remf", "rems", "remu")
_AND, _OR, _XOR, _SHL = by_type(None, "andi"), by_type(None, "ori"), by_type(None, "xori"), by_type(None, "shl")
COMPARISONS = {
    "==": by_type("eqf", "eqi"), "!=": by_type("nef", "nei"),
    "<": by_type("ltf", "lts", "ltu"), "<=": by_type("lef", "les", "leu"),
    ">": by_type("gtf", "gts", "gtu"), ">=": by_type("gef", "ges", "geu"),
}


def _simple(rows: Callable[[tl.dtype], str], division: bool = False) -> Callable[[Builder, Any, Any], RuntimeValue]:
    def compute(b: Builder, left: Any, right: Any) -> RuntimeValue:
        x, y = promoted(b, left, right, division)
        return b.row(rows(x.dtype), x, y)

    return compute


def add(b: Builder, left: Any, right: Any) -> RuntimeValue:
    """left + right; a pointer takes an integer on either side."""
    if isinstance(right, RuntimeValue) and right.dtype.is_ptr() and not element_type(left).is_ptr():
        left, right = right, left
    if isinstance(left, RuntimeValue) and left.dtype.is_ptr():
        return offset(b, left, right)
    return _simple(_ADD)(b, left, right)


def subtract(b: Builder, left: Any, right: Any) -> RuntimeValue:
    """left - right; pointer minus integer moves the pointer down."""
    if isinstance(left, RuntimeValue) and left.dtype.is_ptr():
        if isinstance(right, RuntimeValue) and right.dtype.is_ptr():
            raise _pointer_mistake(left.dtype, right.dtype)
        back = -right if is_number(right) else negate(b, _signed_offset(b, to_value(b, right)))
        return offset(b, left, back)
    return _simple(_SUB)(b, left, right)


def offset(b: Builder, pointer: RuntimeValue, distance: Any) -> RuntimeValue:
    """The pointer moved by an integer number of elements; unsigned distances are never read as negative."""
    element = element_type(distance)
    if not element.is_int():
        raise _pointer_mistake(pointer.dtype, element)
    moved = _signed_offset(b, to_value(b, distance))
    shape = broadcast_shapes(pointer.shape, moved.shape) if pointer.shape and moved.shape else pointer.shape or moved.shape
    return b.add_pointer(stretched(b, pointer, shape), stretched(b, moved, shape))


def _signed_offset(b: Builder, value: RuntimeValue) -> RuntimeValue:
    if value.dtype.is_int_unsigned() and value.dtype.int_bitwidth < 64:
        return cast(b, value, tl.int64)
    return value


def true_divide(b: Builder, left: Any, right: Any) -> RuntimeValue:
    """left / right: two integers give float32, fp16 and bf16 are divided in float32."""
    x, y = promoted(b, left, right, division=True)
    if x.dtype.is_int():
        x, y = cast(b, x, tl.float32), cast(b, y, tl.float32)
    return b.row("divf", x, y)


def shift_right(b: Builder, left: Any, right: Any) -> RuntimeValue:
    """left >> right: arithmetic when the tile that decides is signed, the left one unless it is a number."""
    decides = left if isinstance(left, RuntimeValue) else right
    row = "shrs" if decides.dtype.is_int_signed() else "shru"
    return _simple(by_type(None, row))(b, left, right)


def compare(b: Builder, operator: str, left: Any, right: Any) -> RuntimeValue:
    x, y = promoted(b, left, right)
    return b.compare(COMPARISONS[operator](x.dtype), x, y)


def negate(b: Builder, value: RuntimeValue) -> RuntimeValue:
    if value.dtype.is_ptr():
        raise CompileError(f"unary - does not take {value.dtype}", "TFW0201")
    refuse_narrow(value.dtype)
    if value.dtype.is_floating():
        return b.row("negf", value)
    return b.row("subi", constant(b, 0, value.dtype, value.shape), value)


def invert(b: Builder, value: RuntimeValue) -> RuntimeValue:
    """~value: all bits flipped; on int1 it is `not`."""
    if not value.dtype.is_int():
        raise CompileError(f"unary ~ takes integers, not {value.dtype}", "TFW0201")
    ones = b.constant(1 if value.dtype.is_bool() else -1, value.dtype, value.shape)
    return b.row("xori", value, ones)


def truth(b: Builder, value: RuntimeValue, operator: str) -> RuntimeValue:
    """An operand of `and`, `or`, `not`: int1, or a pointer, which is true unless null."""
    if value.dtype.is_int1():
        return value
    if value.dtype.primitive_bitwidth != 1 and not value.dtype.is_ptr():
        raise CompileError(
            f"`{operator}` takes int1 values, not {value.dtype}",
            "TFW0201",
            help="compare first, e.g. `(x != 0)`; for bits use & | ~",
        )
    return bitcast(b, value, tl.int1)


def logical(b: Builder, operator: str, left: RuntimeValue, right: RuntimeValue) -> RuntimeValue:
    x, y = in_type(b, tl.int1, truth(b, left, operator), truth(b, right, operator))
    return b.row("andi" if operator == "and" else "ori", x, y)


BINARY: dict[str, Callable[[Builder, Any, Any], RuntimeValue]] = {
    "+": add,
    "-": subtract,
    "*": _simple(_MUL),
    "/": true_divide,
    "//": _simple(_FLOORDIV, division=True),
    "%": _simple(_MOD, division=True),
    "&": _simple(_AND),
    "|": _simple(_OR),
    "^": _simple(_XOR),
    "<<": _simple(_SHL),
    ">>": shift_right,
    **{symbol: lambda b, left, right, symbol=symbol: compare(b, symbol, left, right) for symbol in COMPARISONS},
}
