"""The expansions on elements in registers: how `Code` gets a row that the chip has no rule for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tilefw.simt.expand.builder import CASTS, TYPES, Legal
from tilefw.simt.expand.rules import RULES
from tilefw.simt.select.code import Code, Const, Element

# The same register under another name, on every chip: one form holds both.
_RENAMES = frozenset({"bitcast.i32.f32", "bitcast.f32.i32", "bitcast.i64.f64", "bitcast.f64.i64"})


@dataclass(frozen=True, slots=True)
class Typed:
    """An element and its type."""

    element: Element
    type: str


@cache
def expansion(key: str) -> Callable[..., Element] | None:
    """Core's rule for a row key; None where there is none."""
    rule = RULES.get(key)
    if rule is None:
        return None
    row, operand, *to = _parts(key)
    result = to or ()

    def expanded(code: Code, *elements: Element) -> Element:
        operands = [Typed(e, "i1" if row == "select" and i == 0 else operand) for i, e in enumerate(elements)]
        return rule(Legal(_CodeBuilder(code), RULES), *operands, *result).element

    return expanded


def _parts(key: str) -> list[str]:
    """Row, operand type and, for casts, result type; our own types are spelled with a dot (`!tile.fp8e4b15`)."""
    row, _, types = key.partition(".")
    if row not in CASTS:
        return [row, types]
    return [row, *next((s, t) for s in TYPES if types.startswith(f"{s}.") for t in TYPES if types == f"{s}.{t}")]


class _Rows:
    """The rows that need no expansion."""

    __slots__ = ("rules",)

    def __init__(self, rules: Mapping[str, Any]) -> None:
        self.rules = rules

    def __contains__(self, key: str) -> bool:
        return key in self.rules or key in _RENAMES


class _CodeBuilder:
    """`builder.ExpansionBuilder` over a `Code`."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self.rows: Any = _Rows(code.chip.rules)

    def op(self, row: str, operands: tuple[Typed, ...], result: str) -> Typed:
        if row == "bitcast":
            return self._renamed(operands[0], result)
        type_ = operands[1 if row == "select" else 0].type
        key = f"{row}.{type_}.{result}" if row in CASTS else f"{row}.{type_}"
        return Typed(self.code(key, *(o.element for o in operands)), result)

    def const(self, pattern: int, type_: str) -> Typed:
        return Typed(Const(type_, pattern), type_)

    def type_of(self, value: Typed) -> str:
        return value.type

    def bits(self, value: Typed) -> Typed:
        dtype = TYPES[value.type]
        if isinstance(value.element, Const) or dtype.bits == 32:
            return self._renamed(value, "i32")
        if dtype.bits == 1:
            return Typed(self.code("select.i32", value.element, self.code.i32(1), self.code.i32(0)), "i32")
        word = self.code(f"extu.i{dtype.storage_bits}.i32", value.element)
        # Formats narrower than a byte leave its upper bits undefined.
        return Typed(word if dtype.bits in (8, 16) else self.code("andi.i32", word, self.code.i32((1 << dtype.bits) - 1)), "i32")

    def narrow(self, value: Typed, type_: str) -> Typed:
        dtype = TYPES[type_]
        if isinstance(value.element, Const):
            return Typed(Const(type_, value.element.bits & ((1 << dtype.bits) - 1)), type_)
        if dtype.bits == 32:
            return self._renamed(value, type_)
        if dtype.bits == 1:
            return Typed(self.code("nei.i32", self.code("andi.i32", value.element, self.code.i32(1)), self.code.i32(0)), type_)
        return Typed(self.code(f"trunci.i32.i{dtype.storage_bits}", value.element), type_)

    def split(self, value: Typed) -> tuple[Typed, Typed]:
        if isinstance(value.element, Const):
            return self.const(value.element.bits & 0xFFFFFFFF, "i32"), self.const(value.element.bits >> 32, "i32")
        low, high = self.code.chip.unpack(self.code, 32, value.element, 2)
        return Typed(low, "i32"), Typed(high, "i32")

    def join(self, low: Typed, high: Typed, type_: str) -> Typed:
        if isinstance(low.element, Const) and isinstance(high.element, Const):
            return self.const(low.element.bits | high.element.bits << 32, type_)
        return Typed(self.code.chip.pack(self.code, 32, [low.element, high.element]), type_)

    def _renamed(self, value: Typed, type_: str) -> Typed:
        element = value.element
        return Typed(Const(type_, element.bits) if isinstance(element, Const) else element, type_)
