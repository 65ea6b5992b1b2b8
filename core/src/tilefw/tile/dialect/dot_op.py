"""Matrix products of tiles, with an accumulator: `tile.dot %a, %b, %acc tf32 : tensor<…>, tensor<…>, tensor<…>`.

Sums over K may be taken in any order, and rounded to the accumulator's type, or not, after each step. The products of formats
narrower than f32 are exact in f32; operands of f32 are multiplied as `input_precision` says.
"""

from __future__ import annotations

from typing import Self

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

from tilefw.tile import types
from tilefw.tile.dialect.base import PURE, TileOp, Value, string_attr, value_of
from tilefw.tile.dialect.op_text import parse_operands, parse_types_at_end, print_types

# What becomes of operands of f32 (Triton's names). `ieee` multiplies them as they are; `tf32` rounds them to 10 mantissa bits, or
# cuts them off there; `tf32x3`, `bf16x3` and `bf16x6` add up that many products of parts in the narrow format.
INPUT_PRECISIONS = ("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6")

# The accumulators of each operand type; the 8-bit floats mix with each other and share a row.
FP8 = ("fp8e5", "fp8e4nv", "fp8e5b16", "fp8e4b8", "fp8e4b15")
ACCUMULATORS: dict[str, tuple[str, ...]] = {
    "fp16": ("fp32", "fp16"), "bf16": ("fp32",), "fp32": ("fp32",), "fp64": ("fp64",), "int8": ("int32",),
    **dict.fromkeys(FP8, ("fp32", "fp16")),
}


class DotOp(TileOp):
    """`a` · `b` + `acc`: [M, K] · [K, N] + [M, N], or all three with one batch dim in front; the result has `acc`'s type.

    Element types: f16, bf16, f32, f64, i8 and any two 8-bit floats, with the accumulators of `ACCUMULATORS`. i8 is signed, or
    in both operands `unsigned`. Integer sums wrap. `input_precision` is for operands of f32; all others take "ieee". With
    `imprecise` a unit may keep the sums of 8-bit floats to 13 bits behind the leading one of the largest.
    """

    name = "tile.dot"
    operand_count = 3
    property_names = frozenset({"input_precision", "unsigned", "imprecise"})
    traits = PURE

    def __init__(
        self, a: Value, b: Value, acc: Value, input_precision: str = "ieee", unsigned: bool = False, imprecise: bool = False
    ) -> None:
        values = [value_of(a), value_of(b), value_of(acc)]
        properties: dict[str, Attribute] = {"input_precision": string_attr(input_precision)}
        if unsigned:
            properties["unsigned"] = UnitAttr()
        if imprecise:
            properties["imprecise"] = UnitAttr()
        super().__init__(operands=values, result_types=[values[2].type], properties=properties)

    @property
    def a(self) -> SSAValue:
        """The left matrix, [M, K] or [B, M, K]."""
        return self._operands[0]

    @property
    def b(self) -> SSAValue:
        """The right matrix, [K, N] or [B, K, N]."""
        return self._operands[1]

    @property
    def acc(self) -> SSAValue:
        """What is added, [M, N] or [B, M, N]."""
        return self._operands[2]

    @property
    def input_precision(self) -> str:
        """One of `INPUT_PRECISIONS`."""
        return self.word("input_precision", "ieee")

    @property
    def unsigned(self) -> bool:
        """Whether both operands of i8 are unsigned."""
        return "unsigned" in self.properties

    @property
    def imprecise(self) -> bool:
        """Whether sums of 8-bit floats may be kept shorter than the accumulator's type."""
        return "imprecise" in self.properties

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Batch (1 without a batch dim), M, N and K."""
        a, b = types.shape_of(self.a.type), types.shape_of(self.b.type)
        return (a[0] if len(a) == 3 else 1), a[-2], b[-1], a[-1]

    def onto(self, acc: SSAValue) -> DotOp:
        """The same product added to something else."""
        return DotOp(self.a, self.b, acc, self.input_precision, self.unsigned, self.imprecise)

    def problem(self) -> str | None:
        a, b, acc = self.operand_types
        return self.result_problem(acc) or shapes_problem(a, b, acc) or elements_problem(a, b, acc) or self._words_problem()

    def _words_problem(self) -> str | None:
        element = types.element_of(self.a.type)
        if self.input_precision not in INPUT_PRECISIONS:
            return f"input precision is {', '.join(INPUT_PRECISIONS)}, got {self.input_precision}"
        if self.input_precision != "ieee" and element != types.f32:
            return f"input precision {self.input_precision} is for operands of f32, got {element}"
        if self.imprecise and types.dtype_of(element).name not in FP8:
            return f"imprecise sums are of 8-bit floats, got {element}"
        return "unsigned operands are i8" if self.unsigned and element != types.i8 else None

    def print(self, printer: Printer) -> None:
        """Write the operands, properties and types behind the op's name."""
        printer.print_string(" ")
        printer.print_list(self._operands, printer.print_operand)
        if self.input_precision != "ieee":
            printer.print_string(f" {self.input_precision}")
        if self.unsigned:
            printer.print_string(" unsigned")
        if self.imprecise:
            printer.print_string(" imprecise")
        print_types(printer, self.attributes, self.operand_types)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
        position = parser.pos
        unresolved = parse_operands(parser)
        precision = next((word for word in INPUT_PRECISIONS if parser.parse_optional_keyword(word)), "ieee")
        unsigned = parser.parse_optional_keyword("unsigned") is not None
        imprecise = parser.parse_optional_keyword("imprecise") is not None
        attributes, found = parse_types_at_end(parser)
        if len(unresolved) != 3:
            parser.raise_error(f"tile.dot takes 3 operands, got {len(unresolved)}", position)
        a, b, acc = parser.resolve_operands(unresolved, found, position)
        op = cls(a, b, acc, precision, unsigned, imprecise)
        op.attributes = attributes
        return op


def shapes_problem(a: Attribute, b: Attribute, acc: Attribute) -> str | None:
    """What is wrong with the shapes of a dot, in words."""
    left, right, result = types.shape_of(a), types.shape_of(b), types.shape_of(acc)
    if not len(left) == len(right) == len(result) or len(left) not in (2, 3):
        return f"takes matrices, or batches of matrices, got {a}, {b} and {acc}"
    if left[-1] != right[-2]:
        return f"{a} has {left[-1]} columns and {b} has {right[-2]} rows"
    wanted = (*left[:-1], right[-1])
    if left[:-2] != right[:-2] or result != wanted:
        return f"{a} times {b} does not fit {acc}"
    return None


def elements_problem(a: Attribute, b: Attribute, acc: Attribute) -> str | None:
    """What is wrong with the element types of a dot, in words."""
    try:
        left, right, result = (types.dtype_of(type).name for type in (a, b, acc))
    except TypeError as error:
        return str(error)
    if left not in ACCUMULATORS:
        return f"multiplies no {types.element_of(a)}"
    if left != right and not (left in FP8 and right in FP8):
        return f"multiplies {types.element_of(a)} by itself, got {types.element_of(b)}"
    if result not in ACCUMULATORS[left]:
        return f"products of {types.element_of(a)} do not add up in {types.element_of(acc)}"
    return None
