"""Products on a matrix unit: tiles of its size, one after another, where the sizes and the types are the unit's; else as loops."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from tilefw.api.dtypes import FLOATS
from tilefw.loops.access import element_name
from tilefw.loops.buffers import TileBuffer, bytes_of
from tilefw.loops.index_map import Indices
from tilefw.loops.lowering import TileLowering
from tilefw.loops.machine import TileProduct, V
from tilefw.loops.product import add_as_loops, dot, sums_of, type_of_sums, write_as
from tilefw.tile import types
from tilefw.tile.dialect.dot_op import DotOp

_FLOATS = {dtype.ir: dtype for dtype in FLOATS}
_STORED = {"u8": "i8", "tf32": "f32", "bf16x3": "f32"}
"""What operands of a unit's type are in memory, where that is another one."""


def product(lowering: TileLowering[V], op: DotOp) -> None:
    """Write a product and what it is added to, on the matrix unit where it fits."""
    computed = type_of_sums(op)
    operand = _operand_type(lowering, op, computed)
    tile = lowering.machine.matrix_tile
    _, m, n, k = op.sizes
    if tile is None or operand is None or any(size % part for size, part in zip((m, n, k), tile, strict=True)) or (
        not lowering.machine.multiplies((m, n, k), operand)
    ):
        dot(lowering, op)
        return
    stored = _STORED.get(operand, operand)
    left, right = (_operand(lowering, value, stored, op.unsigned) for value in (op.a, op.b))
    steps = (m, n, k) if lowering.machine.takes_whole else tile
    needed = lowering.machine.matrix_workspace(steps, operand)
    workspace = lowering.temporary((needed,), "i8") if needed else None
    with sums_of(lowering, op) as total:
        _multiply(lowering, op, _UnitWork(steps, operand, left, right, total, workspace))


@dataclass(frozen=True, slots=True)
class _UnitWork:
    """What the unit works on: factors and sums, one step's `sizes` and type of factors."""

    sizes: tuple[int, int, int]
    operand: str
    left: TileBuffer
    right: TileBuffer
    sums: TileBuffer
    workspace: TileBuffer | None


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


def _multiply(lowering: TileLowering[V], op: DotOp, unit: _UnitWork) -> None:
    elements, machine = lowering.elements, lowering.machine
    batches, *whole = op.sizes
    a, b, c = unit.left, unit.right, unit.sums
    with lowering.counting(batches) as batch:
        front: Indices = (batch,) if len(c.shape) == 3 else ()
        with (
            lowering.counting(whole[0], unit.sizes[0]) as row, lowering.counting(whole[1], unit.sizes[1]) as column,
            lowering.counting(whole[2], unit.sizes[2]) as depth,
        ):
            undone = machine.multiply(TileProduct(
                unit.sizes, elements.address(c, (*front, row, column)), elements.address(a, (*front, row, depth)),
                elements.address(b, (*front, depth, column)), _row_bytes(c), _row_bytes(a), _row_bytes(b), unit.operand, c.element,
                None if unit.workspace is None else elements.address(unit.workspace),
            ))
            if undone is None:
                return
            assert machine.takes_whole, "a unit that leaves steps undone takes products whole"
            with machine.branch(undone), lowering.region():
                add_as_loops(lowering, op, unit.sizes, front, a, b, c)


def _row_bytes(buffer: TileBuffer) -> int:
    return buffer.shape[-1] * bytes_of(buffer.element)
