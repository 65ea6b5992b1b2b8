"""Lowers a dot to atoms: operands brought to the atom's types and parts, then one `lane.atom` a k step with all repeats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from xdsl.ir import Attribute, SSAValue

from tilefw.api.dtypes import DTYPES
from tilefw.simt import lane
from tilefw.simt.description import ChipDescription, LaneMachine
from tilefw.simt.lane.builder import LaneBuilder
from tilefw.simt.layout import LinearLayout
from tilefw.simt.layout.atoms import DotLayouts, DotTypes, serves_scaled
from tilefw.tile import types
from tilefw.tile.dialect.base import dense_i64, string_attr
from tilefw.tile.dialect.dot_op import DotOp
from tilefw.tile.dialect.dot_scaled_op import DotScaledOp

Operand = SSAValue | Callable[[int], SSAValue]
"""An operand's lane value in its whole layout; or what gives its value of one k step, in the layout of a step. The second is
asked step after step, right before the step's atom: reads that stand there never hold more than one step in registers."""


class DotContext(Protocol):
    """What of the lowering is needed."""

    @property
    def builder(self) -> LaneBuilder: ...

    @property
    def machine(self) -> LaneMachine: ...


_PAIR = DTYPES["fp4e2m1"].ir
_ONE = 127  # the code of 2^0
_TF32_BITS = -(1 << 13)  # all but the 13 bits of f32's mantissa that tf32 has not
ELEMENTS: dict[str, Attribute] = {d.ir: types.ir_type(d) for d in DTYPES.values()}


def types_of(op: DotOp) -> DotTypes:
    """The element types of a dot and how it is to be computed."""
    a, b, acc = (types.dtype_of(v.type).ir for v in (op.a, op.b, op.acc))
    if isinstance(op, DotScaledOp):
        return DotTypes(op.left.format.ir, op.right.format.ir, acc, group=op.sizes[-1] // op.groups)
    return DotTypes(a, b, acc, op.input_precision, op.unsigned, imprecise=op.imprecise)


def shape_of(op: DotOp) -> tuple[int, ...]:
    """[b,] m, n, k: what `atoms.choose` takes."""
    batch, m, n, k = op.sizes
    return (batch, m, n, k) if len(types.shape_of(op.a.type)) == 3 else (m, n, k)


def takes_scaled_dot(op: DotScaledOp, chip: ChipDescription) -> bool:
    """Whether an atom of the chip serves a product with scales: bytes are pairs along k, and scales are powers of two."""
    sides = (op.left, op.right)
    pairs = all(side.packing == "k" if side.packed else side.format.ir != _PAIR for side in sides)
    scales = [side.scale for side in sides if side.scale is not None]
    powers = bool(scales) and not any(types.is_float(scale.type) for scale in scales)
    return pairs and powers and serves_scaled(shape_of(op), types_of(op), chip)


def scales_of(op: DotOp, layouts: DotLayouts) -> list[tuple[SSAValue | None, LinearLayout]]:
    """The scales of a and b with the layouts that the atom wants; None for an operand without."""
    if layouts.scales is None or not isinstance(op, DotScaledOp):
        return []
    return [(op.left.scale, layouts.scales.a), (op.right.scale, layouts.scales.b)]


def lower(
    context: DotContext, a: Operand, b: Operand, acc: SSAValue, layouts: DotLayouts, scales: Sequence[SSAValue | None] = ()
) -> SSAValue:
    """a · b + acc as a lane value in `layouts.d`; `acc` is in that layout, `a`, `b` and their `scales` in theirs, None for ones."""
    builder = context.builder
    result = acc.type
    sums = lane.vector(layouts.d.registers, ELEMENTS[layouts.atom.d])
    acc = cast(builder, acc, layouts.atom.d)
    factors = _scales(builder, layouts, scales)
    a_of, b_of = _steps(builder, a, layouts.steps), _steps(builder, b, layouts.steps)
    for step in range(layouts.steps):
        left, right = _parts(builder, a_of(step), layouts, "a"), _parts(builder, b_of(step), layouts, "b")
        for i, j in layouts.recipe.products:
            first = i == j == 0
            acc = _atom(builder, layouts, [left[i, first], right[j, first], acc, *factors], step, sums)
    return cast(builder, acc, types.dtype_of(result).ir)


def _steps(builder: LaneBuilder, value: Operand, steps: int) -> Callable[[int], SSAValue]:
    if not isinstance(value, SSAValue):
        return value
    size = types.shape_of(value.type)[0] // steps
    return lambda step: builder.pick(value, range(step * size, (step + 1) * size))


def _scales(builder: LaneBuilder, layouts: DotLayouts, given: Sequence[SSAValue | None]) -> list[SSAValue]:
    """The scales of a dot that has some; of an operand without any, ones."""
    if layouts.scales is None:
        return []
    lie = (layouts.scales.a, layouts.scales.b)
    return [
        builder.constant(_ONE, lane.vector(layout.registers, types.i8)) if value is None else value
        for layout, value in zip(lie, given, strict=True)
    ]


def _atom(
    builder: LaneBuilder, layouts: DotLayouts, operands: Sequence[SSAValue], step: int, result: Attribute
) -> SSAValue:
    columns = zip(*layouts.repeats, strict=True)
    firsts = {name: tuple(column) for name, column in zip("abd", columns, strict=True)}
    if layouts.scales is not None:
        sizes = [layout.registers // layouts.steps for layout in (layouts.scales.a, layouts.scales.b)]
        columns = zip(*layouts.scales.repeats, strict=True)
        for name, column, size in zip(lane.AtomOp.SCALES, columns, sizes, strict=True):
            firsts[name] = tuple(first + step * size for first in column)
    op = lane.AtomOp.create(
        operands=list(operands), result_types=[result],
        properties={"atom": string_attr(layouts.atom.name), **{name: dense_i64(numbers) for name, numbers in firsts.items()}},
    )
    return builder.insert(op).results[0]


def cast(builder: LaneBuilder, value: SSAValue, to: str, unsigned: bool = False, rounding: str | None = None) -> SSAValue:
    """A value in another element type, by tile IR's name."""
    source, target = types.dtype_of(value.type), types.dtype_of(ELEMENTS[to])
    if source == target:
        return value
    row = "castf" if source.is_float else "extu" if unsigned else "exts"
    return builder.op(row, value, result=ELEMENTS[to], rounding=rounding)


def _parts(builder: LaneBuilder, value: SSAValue, layouts: DotLayouts, side: str) -> dict[tuple[int, bool], SSAValue]:
    """An operand's parts in the atom's type, by their number and whether all factors of the product are parts 0.

    Parts are cut toward zero, so that no part is larger than what it is taken from: rounding would send the largest f32 to
    infinity. Infinities and NaNs count in the product of parts 0 alone: elsewhere they would meet parts that are 0, and
    infinity times 0 is NaN. What they leave is NaN, by which they are known.
    """
    own, to = (layouts.types.a, layouts.atom.a) if side == "a" else (layouts.types.b, layouts.atom.b)
    if own == to and to != "f32":  # bytes of two elements among them, whose type does not tell
        return dict.fromkeys([(0, True)], value)
    last = max(i for pair in layouts.recipe.products for i in pair)
    if not last:
        return {(0, True): cast(builder, value, to, layouts.types.unsigned)}
    whole = _cut(builder, value, to)
    first = cast(builder, whole, "f32")
    rest = builder.op("subf", value, first)
    finite, zero = builder.op("eqf", rest, rest), builder.constant(0.0, value.type)
    rest = builder.op("select", finite, rest, zero)
    parts = {(0, True): whole, (0, False): cast(builder, builder.op("select", finite, first, zero), to, rounding="rtz")}
    for i in range(1, last):
        parts[i, False] = _cut(builder, rest, to)
        rest = builder.op("subf", rest, cast(builder, parts[i, False], "f32"))
    return {**parts, (last, False): cast(builder, rest, to, rounding="rtz")}


def _cut(builder: LaneBuilder, value: SSAValue, to: str) -> SSAValue:
    """f32 cut toward zero to bf16, or to the 10 bits of mantissa that tf32 has."""
    if to != "f32":
        return cast(builder, value, to, rounding="rtz")
    bits = builder.op("bitcast", value, result=types.i32)
    return builder.op("bitcast", builder.op("andi", bits, builder.constant(_TF32_BITS, bits.type)), result=types.f32)
