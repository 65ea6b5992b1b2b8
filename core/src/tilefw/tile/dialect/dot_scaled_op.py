"""Matrix products of tiles in formats with scales: `tile.dot_scaled %a by %s, %b by %t, %acc : tensor<…>, tensor<…>, …`.

The value of an element is what its bits say times the scale of its group: 32 or 16 neighbours along K share one. The formats are
those of OCP MX 1.0 (e2m1, e2m3, e3m2, e4m3, e5m2 with scales of e8m0) and NVFP4's (scales of e4m3); f16 and bf16 mix with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from xdsl.ir import Attribute, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from tilefw.api.dtypes import DTYPES, DType
from tilefw.tile import types
from tilefw.tile.dialect.base import PURE, TileOp, Value, dense_i32, string_attr, value_of
from tilefw.tile.dialect.dot_op import DotOp
from tilefw.tile.dialect.op_text import parse_optional_after, parse_types_at_end, print_types

# Element types of the operands by their names in tile IR; i8 holds two elements of e2m1 a byte, the first in the low bits.
FORMATS = ("fp4e2m1", "fp6e2m3", "fp6e3m2", "fp8e4nv", "fp8e5", "fp16", "bf16")
PACKED = "fp4e2m1"
# Along which dims of an operand a byte's two elements are neighbours.
PACKINGS = ("k", "outer")
GROUP_SIZES = (16, 32)
_PARTS = ("a", "b", "acc", "a_scale", "b_scale")


@dataclass(frozen=True, slots=True)
class ScaledOperand:
    """One factor of the product: its elements, the scales where there are any, and the dims of both."""

    value: SSAValue
    scale: SSAValue | None
    packing: str
    left: bool

    @property
    def packed(self) -> bool:
        """Whether a byte holds two elements."""
        return types.is_int(self.value.type)

    @property
    def format(self) -> DType:
        """The element format."""
        return DTYPES[PACKED] if self.packed else types.dtype_of(self.value.type)

    @property
    def k_dim(self) -> int:
        """Which dim of the value is summed over."""
        rank = len(types.shape_of(self.value.type))
        return rank - 1 if self.left else rank - 2

    @property
    def packed_dim(self) -> int:
        """Which dim of the value has two elements in each place, if `packed`."""
        rank = len(types.shape_of(self.value.type))
        return self.k_dim if self.packing == "k" else 2 * rank - 3 - self.k_dim

    @property
    def shape(self) -> tuple[int, ...]:
        """The operand's shape in elements, [M, K] or [K, N] behind a batch dim."""
        shape = types.shape_of(self.value.type)
        if not self.packed:
            return shape
        return tuple(2 * size if dim == self.packed_dim else size for dim, size in enumerate(shape))

    @property
    def groups(self) -> int:
        """How many scales a row of a, or a column of b, has; 1 without scales."""
        return 1 if self.scale is None else types.shape_of(self.scale.type)[-1]

    @property
    def scales_shape(self) -> tuple[int, ...]:
        """The shape that scales have for each row of a or column of b, without their last dim."""
        shape = self.shape
        return shape[:-1] if self.left else (*shape[:-2], shape[-1])


class DotScaledOp(DotOp):
    """`a` · `b` + `acc` in f32, where groups of elements along K share a scale: [M, K] · [K, N] + [M, N], or a batch of them.

    `a` and `b` are floats of `FORMATS`, or i8 with two elements of e2m1 in a byte: neighbours along K or, where `a_packing` or
    `b_packing` is "outer", along M or N. Scales are [M, K / group] and [N, K / group], i8 for e8m0 (2^(byte - 127), 0xff is NaN)
    or f8E4M3FN. Products are exact; sums are taken in any order, and rounded to f32, or not, after each step.
    """

    name = "tile.dot_scaled"
    operand_count = None
    property_names = frozenset({"a_packing", "b_packing", "operandSegmentSizes"})
    traits = PURE

    def __init__(
        self, a: Value, b: Value, acc: Value, a_scale: Value | None = None, b_scale: Value | None = None,
        a_packing: str = "k", b_packing: str = "k",
    ) -> None:
        scales = [None if scale is None else value_of(scale) for scale in (a_scale, b_scale)]
        values = [value_of(value) for value in (a, b, acc)]
        sizes = (1, 1, 1, *(0 if scale is None else 1 for scale in scales))
        properties: dict[str, Attribute] = {"operandSegmentSizes": dense_i32(sizes)}
        for name, packing in (("a_packing", a_packing), ("b_packing", b_packing)):
            if packing != "k":
                properties[name] = string_attr(packing)
        present = [scale for scale in scales if scale is not None]
        TileOp.__init__(self, operands=[*values, *present], result_types=[values[2].type], properties=properties)

    def _part(self, name: str) -> SSAValue | None:
        index = _PARTS.index(name)
        sizes = self.integers("operandSegmentSizes")
        return self._operands[sum(sizes[:index])] if sizes[index] else None

    @property
    def left(self) -> ScaledOperand:
        """The left factor: `a`, its scales and its shape in elements."""
        return ScaledOperand(self._operands[0], self._part("a_scale"), self.word("a_packing", "k"), True)

    @property
    def right(self) -> ScaledOperand:
        """The right factor: `b`, its scales and its shape in elements."""
        return ScaledOperand(self._operands[1], self._part("b_scale"), self.word("b_packing", "k"), False)

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Batch (1 without a batch dim), M, N and K in elements."""
        a, b = self.left.shape, self.right.shape
        return (a[0] if len(a) == 3 else 1), a[-2], b[-1], a[-1]

    def onto(self, acc: SSAValue) -> DotScaledOp:
        """The same product added to something else."""
        a, b = self.left, self.right
        return DotScaledOp(a.value, b.value, acc, a.scale, b.scale, a.packing, b.packing)

    @property
    def groups(self) -> int:
        """Into how many groups K is divided; 1 when neither operand has scales."""
        return max(self.left.groups, self.right.groups)

    def problem(self) -> str | None:
        sizes = self.integers("operandSegmentSizes")
        fits = len(sizes) == 5 and sizes[:3] == (1, 1, 1) and all(size in (0, 1) for size in sizes[3:])
        if not fits or sum(sizes) != len(self._operands):
            return f"the operands are {', '.join(_PARTS)}, of which scales may be absent; got {len(self._operands)}"
        return (
            self.result_problem(self.acc.type) or self._elements_problem() or self._shapes_problem()
            or self._scale_problem(self.left) or self._scale_problem(self.right) or self._groups_problem()
        )

    def _elements_problem(self) -> str | None:
        if types.element_of(self.acc.type) != types.f32:
            return f"adds up in f32, got {self.acc.type}"
        for operand in (self.left, self.right):
            type = operand.value.type
            if operand.packing not in PACKINGS:
                return f"packing is {' or '.join(PACKINGS)}, got {operand.packing}"
            if types.element_of(type) != types.i8 and (not types.is_float(type) or operand.format.name not in FORMATS):
                return f"multiplies no {types.element_of(type)}"
            if types.element_of(type) != types.i8 and operand.packing != "k":
                return "only bytes of two elements have a packing"
        return None

    def _shapes_problem(self) -> str | None:
        found = f"got {self.a.type}, {self.b.type} and {self.acc.type}"
        shapes = [types.shape_of(value.type) for value in self._operands[:3]]
        if not len(shapes[0]) == len(shapes[1]) == len(shapes[2]) or len(shapes[0]) not in (2, 3):
            return f"takes matrices, or batches of matrices, {found}"
        left, right = self.left.shape, self.right.shape
        if left[:-2] != right[:-2] or left[-1] != right[-2] or shapes[2] != (*left[:-1], right[-1]):
            return f"[M, K] times [K, N] gives [M, N], {found}"
        return None

    def _scale_problem(self, operand: ScaledOperand) -> str | None:
        if operand.scale is None:
            return None
        type = operand.scale.type
        if types.element_of(type) != types.i8 and (not types.is_float(type) or types.dtype_of(type).name != "fp8e4nv"):
            return f"scales are i8 or f8E4M3FN, got {types.element_of(type)}"
        size = operand.shape[operand.k_dim]
        if types.shape_of(type)[:-1] != operand.scales_shape or size not in [group * operand.groups for group in GROUP_SIZES]:
            return f"a scale is for 16 or 32 elements along K of {operand.value.type}, got {type}"
        return None

    def _groups_problem(self) -> str | None:
        left, right = self.left, self.right
        if left.scale is None or right.scale is None or left.groups == right.groups:
            return None
        return f"both operands have as many scales along K, got {left.groups} and {right.groups}"

    def print(self, printer: Printer) -> None:
        """Write the operands, properties and types behind the op's name."""
        for operand in (self.left, self.right):
            printer.print_string(" ")
            printer.print_operand(operand.value)
            if operand.packing != "k":
                printer.print_string(f" {operand.packing}")
            if operand.scale is not None:
                printer.print_string(" by ")
                printer.print_operand(operand.scale)
            printer.print_string(",")
        printer.print_string(" ")
        printer.print_operand(self.acc)
        print_types(printer, self.attributes, self.operand_types)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
        position = parser.pos
        a, b = _parse_factor(parser), _parse_factor(parser)
        acc = parser.parse_unresolved_operand()
        attributes, found = parse_types_at_end(parser)
        unresolved = [a[0], b[0], acc, *(scale for scale in (a[2], b[2]) if scale is not None)]
        values = list(parser.resolve_operands(unresolved, found, position))
        scales = iter(values[3:])
        a_scale = None if a[2] is None else next(scales)
        b_scale = None if b[2] is None else next(scales)
        op = cls(values[0], values[1], values[2], a_scale, b_scale, a[1], b[1])
        op.attributes = attributes
        return op


def _parse_factor(parser: Parser) -> tuple[UnresolvedOperand, str, UnresolvedOperand | None]:
    """`%a outer by %s,`: the operand, its packing, its scale."""
    value = parser.parse_unresolved_operand()
    packing = "outer" if parser.parse_optional_keyword("outer") else "k"
    scale = parse_optional_after(parser, "by")
    parser.parse_punctuation(",")
    return value, packing, scale
