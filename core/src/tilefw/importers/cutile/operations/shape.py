"""Operations that move elements: reshape, broadcast, permute, cat, extract."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import tilefw.language as tl
from tilefw.frontend.arithmetic import BINARY
from tilefw.frontend.builtins.rearrange import cat
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.casts import cast
from tilefw.frontend.values import RuntimeValue
from tilefw.importers.cutile.bytecode_types import TileType
from tilefw.tile.dialect.ops import ConstantOp

if TYPE_CHECKING:
    from tilefw.frontend.builder import Builder
    from tilefw.importers.cutile.bytecode_translation import BytecodeTranslation
    from tilefw.importers.cutile.bytecode_tree import BytecodeOperation

meaning = Meanings()


def shape_of_result(op: BytecodeOperation) -> tuple[int, ...]:
    (type,) = op.types
    assert isinstance(type, TileType)
    return type.shape


@meaning("broadcast")
def broadcast(t: BytecodeTranslation, op: BytecodeOperation) -> RuntimeValue:
    value, shape = t.tile(op, "source"), shape_of_result(op)
    return t.b.broadcast(value, shape) if value.is_tile else reshaped(t.b, value, shape)


@meaning("reshape")
def reshape(t: BytecodeTranslation, op: BytecodeOperation) -> RuntimeValue:
    return reshaped(t.b, t.tile(op, "source"), shape_of_result(op))


def reshaped(b: Builder, value: RuntimeValue, shape: tuple[int, ...]) -> RuntimeValue:
    """The same elements in the same order; a scalar is a tile of no axes."""
    if value.shape == shape:
        return value
    if math.prod(shape) != math.prod(value.shape):
        raise ValueError(f"{value} has not as many elements as {list(shape)}")
    return b.reshape(value, shape) if value.is_tile else b.splat(value, shape)


@meaning("permute")
def permute(t: BytecodeTranslation, op: BytecodeOperation) -> RuntimeValue:
    value, order = t.tile(op, "source"), op.attributes["permutation"]
    if sorted(order) != list(range(len(value.shape))):
        raise ValueError(f"{list(order)} is no order of the axes of {value}")
    return t.b.transpose(value, order)


@meaning("cat")
def concatenate(t: BytecodeTranslation, op: BytecodeOperation) -> RuntimeValue:
    first, second = t.tile(op, "lhs"), t.tile(op, "rhs")
    if first.shape != second.shape:
        raise t.refusal(op, f"cat of {first} and {second} is not imported", note="both tiles have one shape")
    return cat(t.b, first, second, False, op.attributes["dim"])


@meaning("extract")
def extract(t: BytecodeTranslation, op: BytecodeOperation) -> RuntimeValue:
    """The part of a tile at indices that count parts. A constant index chooses halves; any other one gathers."""
    value, *indices = t.listed(op)
    shape = shape_of_result(op)
    if len(indices) != len(value.shape) or len(shape) != len(value.shape):
        raise ValueError(f"{len(indices)} indices are given for {value}")
    for axis, (index, extent) in enumerate(zip(indices, shape, strict=True)):
        if extent != value.shape[axis]:
            owner = index.ssa.owner
            if isinstance(owner, ConstantOp):
                value = _part(t.b, value, axis, extent, int(owner.value))
            else:
                value = _gathered(t.b, value, axis, extent, index)
    return value


def _part(b: Builder, value: RuntimeValue, axis: int, extent: int, index: int) -> RuntimeValue:
    """Part `index` of those of `extent` along an axis: bit by bit of the index, halves of what is left, the highest first."""
    parts = value.shape[axis] // extent
    if not 0 <= index < parts:
        raise ValueError(f"there is no part {index} of {parts}")
    for bit in reversed(range(parts.bit_length() - 1)):
        before, size, behind = value.shape[:axis], value.shape[axis] // 2, value.shape[axis + 1 :]
        halves = b.reshape(value, (*before, 2, size, *behind))
        rank = len(halves.shape)
        order = [*(a for a in range(rank) if a != axis), axis]
        value = b.split(b.transpose(halves, tuple(order)))[index >> bit & 1]
    return value


def _gathered(b: Builder, value: RuntimeValue, axis: int, extent: int, index: RuntimeValue) -> RuntimeValue:
    start = BINARY["*"](b, cast(b, index, tl.int32), extent)
    places = BINARY["+"](b, start, b.iota(0, extent))
    return b.gather(value, along(b, places, axis, (*value.shape[:axis], extent, *value.shape[axis + 1 :])), axis)


def along(b: Builder, places: RuntimeValue, axis: int, shape: Sequence[int]) -> RuntimeValue:
    """A tile of one axis laid along one of several, repeated along the others."""
    spread = b.reshape(places, tuple(extent if a == axis else 1 for a, extent in enumerate(shape)))
    return b.broadcast(spread, tuple(shape)) if spread.shape != tuple(shape) else spread
