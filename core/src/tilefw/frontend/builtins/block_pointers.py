"""make_block_ptr, advance."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import tilefw.language as tl
from tilefw.api.errors import CompileError
from tilefw.frontend.arithmetic import add
from tilefw.frontend.block_pointers import CODE, BlockPointer
from tilefw.frontend.builder import Builder, element_of
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.casts import cast
from tilefw.frontend.semantics import not_constexpr
from tilefw.frontend.strided_blocks import checked_base, checked_block, listed, scalars
from tilefw.frontend.values import RuntimeValue, describe, named

meaning = Meanings()


@meaning("make_block_ptr")
def make_block_ptr(
    b: Builder, base: Any, shape: Any, strides: Any, offsets: Any, block_shape: Any, order: Any
) -> BlockPointer:
    base = checked_base(base, "make_block_ptr", CODE)
    shape, strides, offsets, order = (listed(value) for value in (shape, strides, offsets, order))
    ranks = (("shape", shape), ("strides", strides), ("offsets", offsets), ("order", order))
    block = checked_block(block_shape, "make_block_ptr", CODE, ranks)
    _check_order(order)
    if element_of(base).is_bool():  # as in Triton: a block of an array of bools has int8 elements
        base = cast(b, base, tl.pointer_type(tl.int8, const=base.dtype.is_const()))
    return BlockPointer(
        base,
        scalars(b, shape, "shape", CODE, wide=True),
        scalars(b, strides, "strides", CODE, wide=True),
        scalars(b, offsets, "offsets", CODE, wide=False),
        block,
    )


@meaning("advance")
def advance(b: Builder, base: Any, offsets: Any) -> BlockPointer:
    if not isinstance(base, BlockPointer):
        raise CompileError(
            f"tl.advance moves a block pointer, not {named(base)}", CODE, help="add offsets to a pointer: `ptrs + distance`"
        )
    offsets = listed(offsets)
    if len(offsets) != len(base.block):
        raise CompileError(f"tl.advance got {len(offsets)} offsets for a block of {len(base.block)} axes", CODE)
    # A constant 0 moves nothing: an axis along which a loop does not advance is then seen to stay where it is.
    distances = scalars(b, offsets, "offsets", CODE, wide=False)
    stays = [isinstance(distance, int) and distance == 0 for distance in offsets]
    moves = zip(base.offsets, distances, stays, strict=True)
    moved = tuple(offset if still else add(b, offset, distance) for offset, distance, still in moves)
    return replace(base, offsets=moved)


def _check_order(order: tuple[Any, ...]) -> None:
    """The order of the axes in memory is a hint, which strides say better; Triton's rules for it hold all the same."""
    for axis in order:
        if isinstance(axis, RuntimeValue):
            raise not_constexpr("an axis of order")
    if sorted(order, key=repr) != sorted(range(len(order)), key=repr):
        raise CompileError(
            f"order names each axis once, the fastest in memory first, not {describe(order)}", CODE,
            help=f"for rows in memory write order={tuple(reversed(range(len(order))))}",
        )
