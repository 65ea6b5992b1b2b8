"""What a kernel's names stand for while it is compiled: run-time values with a type, or plain Python objects.

A compile-time value (a constexpr) is the Python object itself, never IR. A Python tuple holds any mix of both, and a
`CompositeValue` (a block pointer, a tensor descriptor, an aggregate) has run-time parts; `flatten` and `rebuild` take the run-time
leaves apart and put them together again, for loops, branches and returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from xdsl.ir import Attribute, SSAValue

import tilefw.language as tl
from tilefw.api.dtypes import DTYPES
from tilefw.language.composite import CompositeValue
from tilefw.tile import types


class RuntimeValue(tl.tensor):
    """A run-time value: its SSA value and its type in the language, which also knows signedness."""

    __slots__ = ("dtype", "numel", "shape", "ssa", "type")

    def __init__(self, ssa: SSAValue, type: tl.dtype) -> None:
        self.ssa = ssa
        self.type = type
        self.dtype = type.scalar
        self.shape: tuple[int, ...] = type.shape if isinstance(type, tl.block_type) else ()
        self.numel: int = type.numel if isinstance(type, tl.block_type) else 1

    @property
    def is_tile(self) -> bool:
        return bool(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"

    __repr__ = __str__


def tile_type(element: tl.dtype, shape: tuple[int, ...]) -> tl.dtype:
    """The language's type of a tile; the element type itself for the shape ()."""
    return tl.block_type(element, shape) if shape else element


@cache
def lowered(type: tl.dtype) -> Attribute:
    """The type of tile IR that spells a type of the language; integers lose their sign there."""
    if isinstance(type, tl.block_type):
        return types.tile(type.shape, lowered(type.element_ty))
    if isinstance(type, tl.pointer_type):
        return types.pointer(lowered(type.element_ty), type.address_space)
    return types.ir_type(DTYPES[type.name])


def is_number(value: object) -> bool:
    """Whether this is a compile-time number that arithmetic accepts."""
    return isinstance(value, bool | int | float)


def leaves(value: Any) -> Iterator[Any]:
    """The leaves of nested tuples and composite values, left to right; any other value is its own leaf."""
    if isinstance(value, CompositeValue):
        yield from leaves(value.parts)
    elif isinstance(value, tuple):
        for item in value:
            yield from leaves(item)
    else:
        yield value


def flatten(value: Any) -> list[RuntimeValue]:
    """The run-time leaves of a value."""
    return [leaf for leaf in leaves(value) if isinstance(leaf, RuntimeValue)]


def transform(value: Any, function: Callable[[Any], Any]) -> Any:
    """The value with every leaf replaced; tuples keep their class, named ones too, and composite values theirs."""
    if isinstance(value, CompositeValue):
        return value.with_parts(transform(value.parts, function))
    if not isinstance(value, tuple):
        return function(value)
    items = [transform(item, function) for item in value]
    return type(value)(*items) if hasattr(value, "_fields") else tuple(items)


def rebuild(template: Any, ssas: Iterator[SSAValue]) -> Any:
    """The template with its run-time leaves standing for `ssas`, in order."""
    return transform(template, lambda leaf: RuntimeValue(next(ssas), leaf.type) if isinstance(leaf, RuntimeValue) else leaf)


def describe(value: Any) -> str:
    """A value in words of the language, for messages: its type when it is a run-time value, itself when it is not."""
    if isinstance(value, RuntimeValue):
        return f"{value.dtype} tile of shape {list(value.shape)}" if value.is_tile else f"{value.dtype} scalar"
    if isinstance(value, CompositeValue):
        return str(value)
    if isinstance(value, tuple):
        return "(" + ", ".join(describe(item) for item in value) + ")"
    return f"constexpr {value!r}"


def named(value: Any) -> str:
    """`describe` with its article: "an int32 scalar", "an fp32 tile of shape [4]", "a uint8 scalar"."""
    words = describe(value)
    return words if words.startswith("(") else f"{'an' if words.startswith(('int', 'fp')) else 'a'} {words}"


def same_type(left: Any, right: Any) -> bool:
    """Whether two values may share one name after a branch or round a loop: equal types, equal compile-time parts."""
    if isinstance(left, CompositeValue) and isinstance(right, CompositeValue):
        return type(left) is type(right) and left.kind == right.kind and same_type(left.parts, right.parts)
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(same_type, left, right))
    if isinstance(left, RuntimeValue) and isinstance(right, RuntimeValue):
        return left.type == right.type
    if isinstance(left, RuntimeValue | CompositeValue | tuple) or isinstance(right, RuntimeValue | CompositeValue | tuple):
        return False
    return left is right or (type(left) is type(right) and left == right)
