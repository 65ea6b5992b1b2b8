"""The op classes of the elementwise rows: one small class a row, made from the row, for any dialect that wants them.

`build("addf", x, y)` makes an op of the tile dialect; `op_classes("lane")` makes the same rows as ops of another dialect.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, Literal

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tilefw.tile import types
from tilefw.tile.dialect.base import PURE, LeanOp, value_of
from tilefw.tile.elementwise import ROWS, ElementwiseRow

Rounding = Literal["rtne", "rtz"]
_ROUNDINGS: Mapping[str, StringAttr] = {"rtne": StringAttr("rtne"), "rtz": StringAttr("rtz")}

_KIND_TESTS = {
    "int": (types.is_int, "integers"),
    "float": (types.is_float, "floats"),
    "ptr": (types.is_pointer, "pointers"),
    "any": (lambda _: True, "elements"),
}


class ElementwiseOp(LeanOp):
    """An op of the table; `row` is its row. Written without IRDL, whose verifier and constructor cost five times ours."""

    row: ClassVar[ElementwiseRow]
    traits = PURE

    def __init__(self, *operands: SSAValue | Operation, result: Attribute | None = None, rounding: Rounding | None = None) -> None:
        values = [value_of(operand) for operand in operands]
        properties = {"rounding": _ROUNDINGS[rounding]} if rounding == "rtz" else {}
        super().__init__(operands=values, result_types=[result_type(self.row, values, result)], properties=properties)

    @property
    def result(self) -> SSAValue:
        """The one result."""
        return self.results[0]

    @property
    def rounding(self) -> Rounding:
        """How a cast to a narrower float rounds; nearest, ties to even, unless said otherwise."""
        return "rtz" if self.properties and self.properties.get("rounding") == _ROUNDINGS["rtz"] else "rtne"

    def print(self, printer: Printer) -> None:
        """Write the operands, properties and types behind the op's name."""
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_operand)
        if self.rounding != "rtne":
            printer.print_string(f" {self.rounding}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.operands[self.row.typed_by].type)
        if self.row.is_cast:
            printer.print_string(" to ")
            printer.print_attribute(self.results[0].type)

    @classmethod
    def parse(cls, parser: Parser) -> ElementwiseOp:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
        unresolved = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        row = cls.row
        rounding = parser.parse_optional_keyword("rtz") if row.rounding else None
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        to = None
        if row.is_cast:
            parser.parse_keyword("to")
            to = parser.parse_type()
        if len(unresolved) != len(row.operands):
            parser.raise_error(f"{cls.name} takes {len(row.operands)} operands, got {len(unresolved)}")
        bools = types.with_element(type, types.i1)
        values = [
            parser.resolve_operand(u, bools if kind == "bool" else type) for u, kind in zip(unresolved, row.operands, strict=True)
        ]
        result = {"same": type, "bool": bools}.get(row.result, to)
        assert result is not None
        properties = {"rounding": _ROUNDINGS["rtz"]} if rounding else {}
        return cls.create(operands=values, result_types=[result], properties=properties, attributes=attributes)

    def verify_(self) -> None:
        """Raise VerifyException for operands, a result or properties that the row does not have."""
        row = self.row
        operands = self._operands
        if len(operands) != len(row.operands):
            raise VerifyException(f"{self.name} takes {len(row.operands)} operands, got {len(operands)}")
        if len(self.results) != 1:
            raise VerifyException(f"{self.name} has one result, got {len(self.results)}")
        problem = check(row, [o.type for o in operands], self.results[0].type)
        if problem is not None:
            raise VerifyException(f"{self.name}: {problem}")
        if self.properties.keys() - ({"rounding"} if row.rounding else set()):
            raise VerifyException(f"{self.name} has no properties {', '.join(self.properties)}")
        if self.properties and self.properties["rounding"] not in _ROUNDINGS.values():
            raise VerifyException(f"{self.name}: rounding is rtne or rtz")


def result_type(row: ElementwiseRow, operands: list[SSAValue], result: Attribute | None) -> Attribute:
    """The type that the row's rule gives, or for casts the named one: a scalar type there means "of that element"."""
    type = operands[row.typed_by].type
    if row.result == "same":
        return type
    if row.result == "bool":
        return types.with_element(type, types.i1)
    if result is None:
        raise TypeError(f"{row.name} is a cast: name the result type")
    return result if types.shape_of(result) else types.with_element(type, result)


def check(row: ElementwiseRow, operands: list[Attribute], result: Attribute) -> str | None:
    """What is wrong with these types for the row, in words; None when nothing is."""
    type = operands[row.typed_by]
    for index, (kind, found) in enumerate(zip(row.operands, operands, strict=True)):
        wanted = types.with_element(type, types.i1) if kind == "bool" else type
        if found != wanted:
            return f"operand {index} is {found}, expected {wanted}"
    test, words = _KIND_TESTS[row.operands[row.typed_by].removeprefix("T:")]
    if not test(type):
        return f"takes {words}, got {type}"
    if row.result in ("same", "bool"):
        wanted = type if row.result == "same" else types.with_element(type, types.i1)
        return None if result == wanted else f"the result is {result}, expected {wanted}"
    test, words = _KIND_TESTS[row.result.removeprefix("to:")]
    if not test(result):
        return f"gives {words}, got {result}"
    if types.with_element(type, types.i1) != types.with_element(result, types.i1):
        return f"operand {type} and result {result} differ in shape"
    return None


def op_class(row: ElementwiseRow, dialect: str) -> type[ElementwiseOp]:
    """The op class `<dialect>.<row>`; the tile and lane dialects each have their own."""
    name = "".join(part.capitalize() for part in row.name.split("_")) + "Op"
    namespace: dict[str, Any] = {"name": f"{dialect}.{row.name}", "row": row, "__doc__": row.doc}
    return type(name, (ElementwiseOp,), namespace)


@cache
def op_classes(dialect: str) -> dict[str, type[ElementwiseOp]]:
    """The op class of every row, named `<dialect>.<row>`."""
    return {name: op_class(row, dialect) for name, row in ROWS.items()}


OPS = op_classes("tile")


def build(
    name: str, *operands: SSAValue | Operation, result: Attribute | None = None, rounding: Rounding | None = None
) -> ElementwiseOp:
    """The op of row `name` on `operands`; casts name their `result`, as a full type or an element type. Not yet inserted."""
    return OPS[name](*operands, result=result, rounding=rounding)
