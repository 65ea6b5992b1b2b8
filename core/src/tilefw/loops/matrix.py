"""Products on a matrix unit, whole or in tiles of its size, where the sizes and the types are the unit's; else as loops."""

from __future__ import annotations

from functools import partial

from xdsl.ir import SSAValue

from tilefw.api.dtypes import FLOATS
from tilefw.loops.access import element_name
from tilefw.loops.buffers import TileBuffer, bytes_of
from tilefw.loops.elements import code_of
from tilefw.loops.index import fixed
from tilefw.loops.index_map import Indices
from tilefw.loops.lowering import TileLowering
from tilefw.loops.machine import TileProduct, V, WholeProduct
from tilefw.loops.plan import consecutive_dim
from tilefw.loops.product import as_type, dot, product_as_loops, sums_of, type_of_sums, write_as
from tilefw.loops.tile_reader import LoweredTile
from tilefw.tile import types
from tilefw.tile.dialect.dot_op import DotOp
from tilefw.tile.dialect.ops import ConstantOp

_FLOATS = {dtype.ir: dtype for dtype in FLOATS}
_STORED = {"u8": "i8", "tf32": "f32", "bf16x3": "f32"}
"""What operands of a unit's type are in memory, where that is another one."""


def product(lowering: TileLowering[V], op: DotOp) -> None:
    """Write a product and what it is added to, on the matrix unit where it fits."""
    operand = _served(lowering, op)
    if operand is None:
        dot(lowering, op)
    elif lowering.machine.takes_whole:
        _whole(lowering, op, operand)
    else:
        _in_steps(lowering, op, operand)


def may_begin(lowering: TileLowering[V], op: DotOp) -> bool:
    """Whether a product can begin its sums itself, where they are of the type that is summed up."""
    summed = element_name(op.acc.type) == type_of_sums(op)
    return summed and lowering.machine.takes_whole and _served(lowering, op) is not None


def _served(lowering: TileLowering[V], op: DotOp) -> str | None:
    """The type in which the unit takes the operands of a product; None where it does not."""
    operand, tile = _operand_type(lowering, op, type_of_sums(op)), lowering.machine.matrix_tile
    _, m, n, k = op.sizes
    if tile is None or operand is None or any(size % part for size, part in zip((m, n, k), tile, strict=True)):
        return None
    return operand if lowering.machine.multiplies((m, n, k), operand) else None


def _in_steps(lowering: TileLowering[V], op: DotOp, operand: str) -> None:
    elements, tile = lowering.elements, lowering.machine.matrix_tile
    assert tile is not None
    stored = _STORED.get(operand, operand)
    a, b = (_operand(lowering, value, stored, op.unsigned) for value in (op.a, op.b))
    batches, *whole = op.sizes
    with sums_of(lowering, op) as c, lowering.counting(batches) as batch:
        front: Indices = (batch,) if len(c.shape) == 3 else ()
        with (
            lowering.counting(whole[0], tile[0]) as row, lowering.counting(whole[1], tile[1]) as column,
            lowering.counting(whole[2], tile[2]) as depth,
        ):
            lowering.machine.multiply(TileProduct(
                tile, elements.address(c, (*front, row, column)), elements.address(a, (*front, row, depth)),
                elements.address(b, (*front, depth, column)), _row_bytes(c), _row_bytes(a), _row_bytes(b), operand, c.element,
            ))


def _whole(lowering: TileLowering[V], op: DotOp, operand: str) -> None:
    """A product of which the unit reads factors, and what it is added to, as it wants them: only loops have factors in memory."""
    elements, machine = lowering.elements, lowering.machine
    stored, computed = _STORED.get(operand, operand), type_of_sums(op)
    batches, *whole = op.sizes
    sizes = (whole[0], whole[1], whole[2])
    needed = machine.matrix_workspace(sizes, operand)
    workspace = lowering.temporary((needed,), "i8") if needed else None
    turned = [_turned(lowering, value, stored, op.unsigned) for value in (op.a, op.b)]
    variable = lowering.unbegun.get(op.result)
    unbegun = None if variable is None else machine.read(variable)
    with sums_of(lowering, op, begun=False) as total, lowering.counting(batches) as batch:
        front: Indices = (batch,) if len(total.shape) == 3 else ()
        left, right = (
            LoweredTile(lowering, value, front, partial(as_type, lowering, to=stored, unsigned=op.unsigned), buffer)
            for value, buffer in zip((op.a, op.b), turned, strict=True)
        )
        there = elements.buffers.get(op.acc) is total
        onto = LoweredTile(lowering, op.acc, front, partial(as_type, lowering, to=computed, unsigned=False))
        undone = machine.multiply_whole(WholeProduct(
            sizes, elements.address(total, (*front, fixed(0), fixed(0))), _row_bytes(total), left, right, operand, computed,
            is_zero(op.acc) if unbegun is None else unbegun, None if there else onto,
            None if workspace is None else elements.address(workspace),
        ))
        if undone is not None:
            with machine.branch(undone), lowering.region():
                a, b = (
                    buffer or _operand(lowering, value, stored, op.unsigned)
                    for value, buffer in zip((op.a, op.b), turned, strict=True)
                )
                product_as_loops(lowering, op, sizes, front, a, b, total, unbegun)
    if variable is not None:
        machine.assign(variable, machine.const(0, "i1"))


def is_zero(value: SSAValue) -> bool:
    """Whether a tile is zeros: +0, or integers."""
    return isinstance(value.owner, ConstantOp) and code_of(value.owner) == 0


def _turned(lowering: TileLowering[V], value: SSAValue, element: str, unsigned: bool) -> TileBuffer | None:
    """A factor in memory, where it has to be turned on the way from memory: rows of it cannot be read one by one."""
    if value in lowering.elements.buffers or not lowering.machine.transposes:
        return None
    along = consecutive_dim(value, lowering.plan)
    return None if along in (None, types.rank_of(value.type) - 1) else _operand(lowering, value, element, unsigned)


def _operand_type(lowering: TileLowering[V], op: DotOp, computed: str) -> str | None:
    """The type in which the unit takes the operands: that of their precision, their own, else a float that has all their numbers,
    else that of the sums."""
    own = {"u8" if op.unsigned else element_name(value.type) for value in (op.a, op.b)}
    served = [taken for taken, sums in sorted(lowering.machine.matrix_types) if sums == computed]
    if op.input_precision in served:
        return op.input_precision
    if len(own) == 1 and own <= set(served):
        return own.pop()
    wider = [taken for taken in served if all(_has_numbers(taken, each) for each in own)]
    return next(iter(wider), computed if computed in served else None)


def _has_numbers(wide: str, narrow: str) -> bool:
    """Whether a type has all numbers of another, the smaller floats' subnormals among its normals."""
    if wide == narrow or not {wide, narrow} <= set(_FLOATS):
        return wide == narrow
    a, b = _FLOATS[wide], _FLOATS[narrow]
    least = 1 - b.bias - b.mantissa_bits
    most = (1 << b.exponent_bits) - 1 - b.bias
    return a.mantissa_bits >= b.mantissa_bits and 1 - a.bias <= least and most < (1 << a.exponent_bits) - 1 - a.bias


def _operand(lowering: TileLowering[V], value: SSAValue, element: str, unsigned: bool) -> TileBuffer:
    stored = lowering.elements.buffers.get(value)
    if stored is not None and stored.element == element and not stored.panel:
        return stored
    made = lowering.temporary(types.shape_of(value.type), element)
    write_as(lowering, value, made, unsigned)
    return made


def _row_bytes(buffer: TileBuffer) -> int:
    return buffer.shape[-1] * bytes_of(buffer.element)
