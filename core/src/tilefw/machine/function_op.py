"""`machine.func`: the one xDSL op that carries a whole lean Function, printed and parsed as its text.

    machine.func {
    func @add target "chip"
    entry:
      exit
    }

The lines between the braces are the machine text; the closing brace is written alone on its line.
"""

from __future__ import annotations

from xdsl.ir import Data, Dialect, OpTraits
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tilefw.machine.inst import Function
from tilefw.machine.text import parse_function, print_function
from tilefw.tile.dialect.base import LeanOp


@irdl_attr_definition
class FunctionAttr(Data[Function]):
    """Holds a Function; as an attribute its text is one string literal."""

    name = "machine.function"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Function:
        with parser.in_angle_brackets():
            return parse_function(parser.parse_str_literal())

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(print_function(self.data))


class FuncOp(LeanOp):
    """A function of machine code."""

    name = "machine.func"
    traits = OpTraits(lambda: ())

    @property
    def function(self) -> Function:
        """The function that the op carries: the object itself, which passes change in place."""
        return self.properties["body"].data  # type: ignore[attr-defined]

    def verify_(self) -> None:
        """Raise VerifyException for operands, results, or other properties than the function."""
        if self._operands or self.results or self.properties.keys() != {"body"}:
            raise VerifyException(f"{self.name} has a body, and no operands or results")
        if not isinstance(self.properties["body"], FunctionAttr):
            raise VerifyException(f"the body of {self.name} is no machine function")

    @staticmethod
    def of(function: Function) -> FuncOp:
        """The op that carries a function, which is not copied."""
        return FuncOp.create(properties={"body": FunctionAttr(function)})

    def drop_all_references(self) -> None:
        """What xDSL asks of an op that is erased: the function goes with it."""
        super().drop_all_references()
        self.function.release()

    def print(self, printer: Printer) -> None:
        """Write the machine text of the function in braces."""
        printer.print_string(" {\n" + print_function(self.function) + "}", indent=0)

    @classmethod
    def parse(cls, parser: Parser) -> FuncOp:
        """Read what `print` writes; raises IRError at a line that is no machine text."""
        # The text has its own line parser (2 µs an instruction against 100 µs for generic ops), so the body is cut
        # out raw. `_resume_from` is private to xDSL's parser: this is the one place that uses it.
        parser.parse_punctuation("{")
        content = parser.lexer.input.content
        start = content.index("\n", content.rindex("{", 0, parser.pos)) + 1
        end = content.find("\n}", start - 1)
        if end < 0:
            parser.raise_error("machine.func: no closing brace at the start of a line")
        first_line = content.count("\n", 0, start) + 1
        function = parse_function(content[start : end + 1], parser.lexer.input.name, first_line)
        parser._resume_from(end + 2)
        return cls.of(function)


Machine = Dialect("machine", [FuncOp], [FunctionAttr])
