"""The op on all ranks' copies of an array at once: through a multicast address, which stands for one place of every rank's heap."""

from __future__ import annotations

from typing import Self

from xdsl.ir import Attribute, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

from tilefw.tile import types
from tilefw.tile.dialect.atomic_ops import KINDS, ORDERS, SCOPES, AtomicOp, access_parts, parse_access_operands, parse_word
from tilefw.tile.dialect.base import Value, string_attr
from tilefw.tile.dialect.memory_ops import parse_address, parse_address_types
from tilefw.tile.dialect.op_text import parse_optional_after

ACTIONS = ("load", "store", "update")
_FLOATS = (types.f16, types.bf16, types.f32, types.f64)
# The rows of the elementwise table that combine two elements, of integers and of floats.
_ROWS = {
    "add": ("addi", "addf"), "and": ("andi", ""), "or": ("ori", ""), "xor": ("xori", ""),
    **{kind: (kind, "") for kind in ("maxs", "maxu", "mins", "minu")}, **{kind: ("", kind) for kind in ("maxf", "minf")},
}
STORED = "xchg"  # the kind of a store, which combines nothing


def multicast_elements(action: str, kind: str) -> tuple[Attribute, ...]:
    """The element types of a multicast action: what is not combined in memory may be any float of 16 bits and more."""
    served = KINDS[kind].elements
    floats = _FLOATS if action != "update" and types.f32 in served else ()
    return (*served, *(float for float in floats if float not in served))


class MulticastOp(AtomicOp):
    """`tile.multicast load add relaxed system %p[%offsets], %value mask %m of %context : !tile.ptr<f32>[tensor<128xi32>]`.

    `%p` holds multicast addresses, `%context` is the node context. `load` gives the combination of what all ranks' copies hold, in
    no promised order, and `%value` where the mask is off; sums of 16-bit floats are made in fp32 and rounded once. `store` writes
    `%value` to every copy, `update` combines it with each, as one atomic access a copy. Loads and stores are ordered as plain ones;
    an update may be `relaxed` or `release`.
    """

    name = "tile.multicast"
    segment_names = ("pointer", "offsets", "value", "mask", "context")
    property_names = AtomicOp.property_names | {"action", "kind"}

    def __init__(
        self, action: str, kind: str, pointer: Value, value: Value, context: Value, offsets: Value | None = None,
        mask: Value | None = None, *, order: str = "relaxed", scope: str = "system",
    ) -> None:
        operands, segments, result = access_parts((pointer, offsets, value, mask, context))
        words = {"action": action, "kind": kind, "order": order, "scope": scope}
        super().__init__(
            operands=operands, result_types=[result], properties={**segments, **{k: string_attr(v) for k, v in words.items()}}
        )

    @property
    def action(self) -> str:
        """One of `ACTIONS`."""
        return self.word("action")

    @property
    def kind(self) -> str:
        """How elements are combined, a key of `KINDS`; that of an exchange for a store."""
        return self.word("kind")

    @property
    def context(self) -> SSAValue:
        """A pointer to the node context, which knows every rank's heap."""
        return self._operand("context")

    @property
    def row(self) -> str:
        """The row of the elementwise table by which a load combines two elements."""
        return _ROWS[self.kind][types.is_float(types.element_of(self.value.type))]

    @property
    def capability(self) -> str:
        """What a target that has the op itself claims."""
        element = types.dtype_of(types.element_of(self.value.type)).name
        words = {"load": ("load", KINDS[self.kind].name), "store": ("store",), "update": (KINDS[self.kind].name,)}[self.action]
        return ".".join(("multicast", *words, element))

    @property
    def elements(self) -> tuple[Attribute, ...]:
        """The element types that the action is there for."""
        return multicast_elements(self.action, self.kind)

    @property
    def what(self) -> str:
        """The op in an error message."""
        return f"multicast {self.action} {self.kind}"

    def rebuilt(self, pointer: Value, offsets: Value | None, mask: Value | None) -> Self:
        return type(self)(
            self.action, self.kind, pointer, self.value, self.context, offsets, mask, order=self.order, scope=self.scope
        )

    def value_problem(self, value_type: Attribute) -> str | None:
        if self.action not in ACTIONS or self.kind not in KINDS or (self.kind == STORED) != (self.action == "store"):
            return f"there is no multicast {self.action} {self.kind}"
        if self.context.type != types.pointer(types.i64):
            return f"the node context is {self.context.type}, expected {types.pointer(types.i64)}"
        if self.acquires or (self.releases and self.action != "update"):
            return f"a multicast {self.action} has no order {self.order}"
        return super().value_problem(value_type)

    def _words(self) -> tuple[str, ...]:
        return self.action, self.kind, self.order, self.scope

    def _print_tail(self, printer: Printer) -> None:
        printer.print_string(" of ")
        printer.print_operand(self.context)
        super()._print_tail(printer)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
        action, kind = parse_word(parser, "action", ACTIONS), parse_word(parser, "kind", tuple(KINDS))
        order, scope = parse_word(parser, "order", ORDERS), parse_word(parser, "scope", SCOPES)
        pointer, offsets = parse_address(parser)
        parser.parse_punctuation(",")
        value = parser.parse_unresolved_operand()
        mask = parse_optional_after(parser, "mask")
        parser.parse_keyword("of")
        context = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        pointer_type, offsets_type = parse_address_types(parser, offsets is not None)
        at, where, (operand,), masked = parse_access_operands(parser, (pointer, offsets, [value], mask), pointer_type, offsets_type)
        told = parser.resolve_operand(context, types.pointer(types.i64))
        op = cls(action, kind, at, operand, told, where, masked, order=order, scope=scope)
        op.attributes = attributes
        return op
