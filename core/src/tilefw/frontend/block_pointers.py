"""Block pointers: a base, the array's shape and strides, and where in it a block begins; loads and stores through them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import tilefw.language as tl
from tilefw.api.errors import CompileError
from tilefw.frontend.builder import Builder, element_of
from tilefw.frontend.semantics import not_constexpr
from tilefw.frontend.strided_blocks import checked_padding, fill, listed, matching_value
from tilefw.frontend.values import CompositeValue, RuntimeValue, describe

CODE = "TFW0222"


@dataclass(frozen=True, slots=True, eq=False)
class BlockPointer(CompositeValue):
    """The block at `offsets` of an array whose element 0 is at `base`; `shape` and `strides` are the array's, in elements."""

    base: RuntimeValue
    shape: tuple[RuntimeValue, ...]
    strides: tuple[RuntimeValue, ...]
    offsets: tuple[RuntimeValue, ...]
    block: tuple[int, ...]

    @property
    def parts(self) -> tuple[Any, ...]:
        return self.base, self.shape, self.strides, self.offsets

    @property
    def kind(self) -> object:
        return self.block

    def with_parts(self, parts: tuple[Any, ...]) -> BlockPointer:
        base, shape, strides, offsets = parts
        return replace(self, base=base, shape=shape, strides=strides, offsets=offsets)

    def attributes(self) -> Mapping[str, Any]:
        return {"dtype": self.base.dtype, "type": self.base.dtype, "advance": tl.advance, "store": tl.store}

    def __str__(self) -> str:
        return f"block pointer to {element_of(self.base)}{list(self.block)}"


def load(
    b: Builder, pointer: BlockPointer, mask: Any, other: Any, boundary_check: Any, padding_option: Any, hints: Mapping[str, Any]
) -> RuntimeValue:
    """The block; what lies out of bounds along the axes of `boundary_check` is zero or NaN. Raises CompileError (TFW0222)."""
    if mask is not None or other is not None:
        raise _no_mask("mask" if mask is not None else "other")
    element = element_of(pointer.base)
    padding = checked_padding(padding_option, element, CODE)
    bounds = _bounds(pointer, boundary_check)
    # Elements out of bounds of a block that is checked nowhere are an error of the kernel, and have no value.
    filled = fill(b, padding, element, pointer.block) if any(bound is not None for bound in bounds) else None
    return b.load_block(pointer.base, pointer.offsets, pointer.strides, bounds, pointer.block, filled, **hints)


def store(
    b: Builder, pointer: BlockPointer, value: Any, mask: Any, boundary_check: Any, hints: Mapping[str, Any]
) -> None:
    """Store a block; nothing is written out of bounds along the axes of `boundary_check`. Raises CompileError (TFW0222)."""
    if mask is not None:
        raise _no_mask("mask")
    bounds = _bounds(pointer, boundary_check)
    value = matching_value(b, value, pointer.base, pointer.block, CODE, casts=False)
    b.store_block(pointer.base, value, pointer.offsets, pointer.strides, bounds, **hints)


def refuse_checks(boundary_check: Any, padding_option: Any) -> None:
    """Raise CompileError (TFW0222) where a plain pointer is accessed with the options of block pointers."""
    for name, value in (("boundary_check", boundary_check), ("padding_option", padding_option)):
        if value:
            raise CompileError(
                f"{name} is for block pointers, and this is a pointer or a tile of pointers", CODE,
                help="use a mask: `mask=offsets < n`, with `other` for what lies beyond",
            )


def _bounds(pointer: BlockPointer, boundary_check: Any) -> list[RuntimeValue | None]:
    """The upper bound of each axis that is checked."""
    axes = listed(boundary_check) if boundary_check is not None and boundary_check != () else ()
    for axis in axes:
        if isinstance(axis, RuntimeValue):
            raise not_constexpr("an axis of boundary_check")
        if isinstance(axis, bool) or not isinstance(axis, int) or not 0 <= axis < len(pointer.block):
            raise CompileError(
                f"boundary_check names axes 0 to {len(pointer.block) - 1} of the block, not {describe(axis)}", CODE,
            )
    if len(set(axes)) != len(axes):
        raise CompileError(f"boundary_check names an axis twice: {list(axes)}", CODE)
    return [bound if axis in axes else None for axis, bound in enumerate(pointer.shape)]


def _no_mask(name: str) -> CompileError:
    return CompileError(
        f"`{name}` has no meaning for a block pointer", CODE,
        help="name the axes to check: `boundary_check=(0, 1)`, and `padding_option` for what lies beyond",
    )
