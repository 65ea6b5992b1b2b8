"""The op that carries a machine's own assembly text, which runs on every `pack` elements of its operands."""

from __future__ import annotations

from collections.abc import Sequence, Set

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, Operation, OpTraits
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind

from tilefw.tile import types
from tilefw.tile.dialect.asm_constraints import parse_constraints, register_count
from tilefw.tile.dialect.base import TileOp, Value, integer_attr, string_attr, value_of

_EFFECTS = frozenset({EffectInstance(MemoryEffectKind.READ), EffectInstance(MemoryEffectKind.WRITE)})


class TextEffects(MemoryEffect):
    """Assembly text may do anything to memory, unless its author calls it pure."""

    @classmethod
    def get_effects(cls, op: Operation) -> Set[EffectInstance]:
        """The op's effects."""
        return frozenset() if "pure" in op.properties else _EFFECTS


class InlineAsmBase(TileOp):
    """Text, constraints, `pack` and `pure`, which tile IR and lane IR share. Text that is not pure is kept, and moved over no
    access of memory."""

    property_names = frozenset({"text", "constraints", "pack", "pure"})
    result_count = None
    traits = OpTraits(lambda: (TextEffects(),))

    @property
    def text(self) -> str:
        """The assembly text; `$0` is the first result's first register, operands follow the results."""
        return self.word("text")

    @property
    def constraints(self) -> str:
        """The kinds of registers, as `asm_constraints.py` reads them."""
        return self.word("constraints")

    @property
    def pack(self) -> int:
        """How many elements of each operand one run of the text takes."""
        return self.integer("pack")

    def print(self, printer: Printer) -> None:
        """Write `pure`, text, constraints, `pack` and operands behind the op's name."""
        if "pure" in self.properties:
            printer.print_string(" pure")
        for text in (" ", self.text, ", ", self.constraints):
            (printer.print_string if text in (" ", ", ") else printer.print_string_literal)(text)
        printer.print_string(f" pack {self.pack}(")
        printer.print_list(self._operands, printer.print_operand)
        printer.print_string(")")
        printer.print_op_attributes(self.attributes)
        for word, values in ((" : (", self._operands), (") -> (", self.results)):
            printer.print_string(word)
            printer.print_list([value.type for value in values], printer.print_attribute)
        printer.print_string(")")

    @classmethod
    def parse(cls, parser: Parser) -> InlineAsmBase:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
        pure = parser.parse_optional_keyword("pure")
        text = parser.parse_str_literal()
        parser.parse_punctuation(",")
        constraints = parser.parse_str_literal()
        parser.parse_keyword("pack")
        pack = parser.parse_integer()
        position = parser.pos
        unresolved = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_function_type()
        operands = parser.resolve_operands(unresolved, type.inputs.data, position)
        made = _properties(text, constraints, pack, pure is not None)
        return cls.create(operands=operands, result_types=type.outputs.data, properties=made, attributes=attributes)


class InlineAsmOp(InlineAsmBase):
    """`tile.inline_asm pure "shl.b32 $0, $1, 3;", "=r,r" pack 4(%x) : (tensor<128xi8>) -> tensor<128xi8>`.

    All operands and results have one shape. Elements of less than 32 bits stand together in registers of 32 bits, `pack` allowing.
    Which elements one run gets is unspecified. Only a machine whose assembly language the text is has a meaning for it. `pure` text
    does nothing but compute its results from its operands: it is left out where nobody reads them, computed once or moved.
    """

    name = "tile.inline_asm"

    def __init__(
        self, text: str, constraints: str, pack: int, values: Sequence[Value], results: Sequence[Attribute], pure: bool = False
    ) -> None:
        super().__init__(
            operands=[value_of(value) for value in values], result_types=list(results),
            properties=_properties(text, constraints, pack, pure),
        )

    def problem(self) -> str | None:
        kinds = [value.type for value in (*self._operands, *self.results)]
        if len({types.shape_of(kind) for kind in kinds}) != 1:
            return "operands and results have one shape"
        if any(types.is_bool(types.element_of(kind)) for kind in kinds):
            return "an i1 stands in no register"
        if self.pack < 1 or self.pack & (self.pack - 1):
            return f"pack is a power of two, not {self.pack}"
        try:
            found = parse_constraints(self.constraints)
        except ValueError as error:
            return f"of the constraints {self.constraints!r}, {error}"
        wanted = [sum(register_count(element_bits(v.type), self.pack) for v in values) for values in (self.results, self._operands)]
        given = [len(found.results), len(found.operands)]
        if wanted == given:
            return None
        return f"results and operands take {wanted[0]} and {wanted[1]} registers, the constraints name {given[0]} and {given[1]}"


def _properties(text: str, constraints: str, pack: int, pure: bool) -> dict[str, Attribute]:
    made: dict[str, Attribute] = {"text": string_attr(text), "constraints": string_attr(constraints), "pack": integer_attr(pack)}
    return {**made, "pure": UnitAttr()} if pure else made


def element_bits(type: Attribute) -> int:
    """The bits of an element in registers; an address has 64."""
    return 64 if types.is_pointer(type) else types.dtype_of(type).storage_bits
