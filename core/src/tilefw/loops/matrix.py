"""Products on a matrix unit: tiles of its size, one after another, where the sizes and the types are the unit's; else as loops."""

from __future__ import annotations

from xdsl.ir import SSAValue

from tilefw.loops.access import element_name
from tilefw.loops.buffers import TileBuffer, bytes_of
from tilefw.loops.index_map import Indices
from tilefw.loops.lowering import TileLowering
from tilefw.loops.machine import TileProduct, V
from tilefw.loops.product import dot, sums_of, type_of_sums, write_as
from tilefw.tile import types
from tilefw.tile.dialect.dot_op import DotOp


def product(lowering: TileLowering[V], op: DotOp) -> None:
    """Write a product and what it is added to, on the matrix unit where it fits."""
    computed = type_of_sums(op)
    operand = _operand_type(lowering, op, computed)
    tile = lowering.machine.matrix_tile
    if tile is None or operand is None or any(size % part for size, part in zip(op.sizes[1:], tile, strict=True)):
        dot(lowering, op)
        return
    left, right = (_operand(lowering, value, operand, op.unsigned) for value in (op.a, op.b))
    with sums_of(lowering, op) as total:
        _multiply(lowering, left, right, total, op.sizes, tile)


def _operand_type(lowering: TileLowering[V], op: DotOp, computed: str) -> str | None:
    """The type in which the unit takes the operands: their own, else that of the sums."""
    # The unit reads bytes with a sign.
    own: set[str] = set() if op.unsigned else {element_name(value.type) for value in (op.a, op.b)}
    served = [type_ for type_ in (*(own if len(own) == 1 else ()), computed) if (type_, computed) in lowering.machine.matrix_types]
    return served[0] if served else None


def _operand(lowering: TileLowering[V], value: SSAValue, element: str, unsigned: bool) -> TileBuffer:
    stored = lowering.elements.buffers.get(value)
    if stored is not None and stored.element == element and not stored.panel:
        return stored
    made = lowering.temporary(types.shape_of(value.type), element)
    write_as(lowering, value, made, unsigned)
    return made


def _multiply(
    lowering: TileLowering[V], a: TileBuffer, b: TileBuffer, c: TileBuffer, sizes: tuple[int, int, int, int],
    tile: tuple[int, int, int],
) -> None:
    batches, *whole = sizes
    with lowering.counting(batches) as batch:
        front: Indices = (batch,) if len(c.shape) == 3 else ()
        with (
            lowering.counting(whole[0], tile[0]) as row, lowering.counting(whole[1], tile[1]) as column,
            lowering.counting(whole[2], tile[2]) as depth,
        ):
            place = lowering.elements.address
            lowering.machine.multiply(TileProduct(
                tile, place(c, (*front, row, column)), place(a, (*front, row, depth)), place(b, (*front, depth, column)),
                _row_bytes(c), _row_bytes(a), _row_bytes(b), a.element, c.element,
            ))


def _row_bytes(buffer: TileBuffer) -> int:
    return buffer.shape[-1] * bytes_of(buffer.element)
