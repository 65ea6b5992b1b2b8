"""Elements of a constant as an attribute: bytes in row-major order that are shared with who made them, not copied."""

from __future__ import annotations

from functools import cache

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer


@irdl_attr_definition
class StoredElements(Data[memoryview]):
    """`<"0000803f">`: read-only bytes, in hexadecimal where they are written."""

    name = "graph.elements"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> memoryview:
        """Read what `print_parameter` writes."""
        with parser.in_angle_brackets():
            text = parser.parse_str_literal()
        try:
            return memoryview(bytes.fromhex(text))
        except ValueError:
            parser.raise_error("expected an even number of hexadecimal digits")

    def print_parameter(self, printer: Printer) -> None:
        """Write `<"…">`."""
        with printer.in_angle_brackets():
            printer.print_string_literal(self.data.hex())


@cache
def tensor(shape: tuple[int, ...], element: Attribute) -> TensorType[Attribute]:
    """`tensor<shape x element>`, made once; of one element without dims, not the element's type itself."""
    return TensorType(element, shape)
